// SPDX-License-Identifier: Apache-2.0
#include "serve/worker.hpp"

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "serve/frames.hpp"
#include "serve/sandbox.hpp"
#include "serve/shared_messages.hpp"
#include "session/request_compiler.hpp"

namespace quern::serve {
namespace {

constexpr std::uint64_t kMaxRequestBytes = std::uint64_t{1} << 30;

// Answers from memory go before compiles where processors are few. Not by much: other programs on the machine
// go before compiles as well then.
constexpr int kNiceness = 3;

/// Compiles once, so that all that NVRTC loads is loaded before the sandbox is entered.
Expected<void> warm_up(session::RequestCompiler& compiler) {
  abi::KernelRequest request;
  request.source.text = "extern \"C\" __global__ void warm_up(int* p) { p[threadIdx.x] = 1; }\n";
  auto image = compiler.compile(request);
  if (!image) return std::move(image).errors();
  return {};
}

/// The folders that a worker reads: the toolkit's headers, and the libraries beside NVRTC.
std::vector<std::string> readable_folders(const session::CompilerFacts& facts) {
  std::vector<std::string> folders = facts.include_directories;
  if (!facts.nvrtc_path.empty())
    folders.push_back(std::filesystem::path(facts.nvrtc_path).parent_path().string());
  return folders;
}

WorkerHello prepare(session::RequestCompiler& compiler, bool limits) {
  WorkerHello hello;
  const session::CompilerFacts facts = compiler.facts();
  hello.nvrtc_path = facts.nvrtc_path;
  hello.nvrtc_version = facts.nvrtc_version;
  hello.headers_version = facts.headers_version;
  hello.include_directories = facts.include_directories;
  if (facts.nvrtc_path.empty())
    hello.problem = to_string(facts.missing);
  else if (const Expected<void> warm = warm_up(compiler); !warm)
    hello.problem = to_string(warm.errors());
  ::clearenv();
  hello.sandbox = enter_sandbox(readable_folders(facts));
  hello.sandbox.limits = limits;
  if (!limits) hello.sandbox.missing += "; resource limits could not be set";
  return hello;
}

Frame answer(session::RequestCompiler& compiler, const Frame& asked) {
  Expected<remote::CompileMessage> message = remote::read_compile_message(asked.text);
  if (!message) return error_frame(message.errors());
  abi::KernelRequest request = std::move(message->request);
  for (remote::HeaderEntry& header : message->headers)
    request.headers.push_back({std::move(header.name), std::move(header.text)});
  const auto image = compiler.compile(request);
  if (!image) return error_frame(image.errors());
  return image_frame(**image);
}

}  // namespace

int worker_main(std::uint64_t memory_bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  [[maybe_unused]] const int niceness = ::nice(kNiceness);
  const bool limits = limit_resources({memory_bytes});
  if (::chdir("/") != 0) return 1;
  session::RequestCompiler compiler;
  const WorkerHello hello = prepare(compiler, limits);
  if (!send_frame(kWorkerSocket, {0, write_hello(hello), ""})) return 1;
  Frame frame;
  while (receive_frame(kWorkerSocket, kMaxRequestBytes, {}, frame) == Receive::frame)
    if (!send_frame(kWorkerSocket, answer(compiler, frame))) break;
  // Without exit handlers: the process holds nothing that must be written, and some would need more.
  ::_exit(0);
}

}  // namespace quern::serve
