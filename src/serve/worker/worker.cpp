// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/worker.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "serve/worker/frames.hpp"
#include "serve/worker/sandbox.hpp"
#include "serve/worker/temporary_file.hpp"

namespace quern::serve {
namespace {

constexpr std::uint64_t kMaxRequestBytes = std::uint64_t{1} << 30;

// With few processors, answers from memory take precedence over compiles. The difference is small, since
// other programs on the machine take precedence, too.
constexpr int kNiceness = 3;

/// More than NVRTC's heap for precompiled headers, which has 256 MiB.
constexpr std::uint64_t kTemporaryBytes = std::uint64_t{288} << 20;

/// NVRTC reports "Permission denied" for an existing file outside the sandbox, which the author must not
/// learn.
void hide_reasons(Diagnostics& diagnostics) {
  constexpr std::string_view kCannotOpen = "cannot open source file \"";
  for (Diagnostic& each : diagnostics)
    if (const std::size_t end = each.message.rfind("\": ");
        each.message.starts_with(kCannotOpen) && end != std::string::npos && end >= kCannotOpen.size())
      each.message.resize(end + 1);
}

Frame answer(session::RequestCompiler& compiler, const Frame& asked) {
  Expected<remote::CompileMessage> message = remote::read_compile_message(asked.text);
  if (!message) return error_frame(message.errors());
  abi::KernelRequest request = std::move(message->request);
  for (remote::HeaderEntry& header : message->headers)
    request.headers.push_back({std::move(header.name), std::move(header.text)});
  const std::uint64_t uses = compiler.precompiled_use_count();
  const auto image = compiler.compile(request);
  if (!image) {
    Diagnostics errors = image.errors();
    hide_reasons(errors);
    return error_frame(errors);
  }
  Frame frame = image_frame(**image);
  if (compiler.precompiled_use_count() != uses) frame.status = kFastImageFrame;
  return frame;
}

}  // namespace

std::vector<std::string> readable_folders(const WorkerHello& hello) {
  std::vector<std::string> folders = hello.include_directories;
  if (!hello.nvrtc_path.empty())
    folders.push_back(std::filesystem::path(hello.nvrtc_path).parent_path().string());
  return folders;
}

void run_worker(int socket, session::RequestCompiler& compiler, WorkerHello hello) {
  [[maybe_unused]] const int niceness = ::nice(kNiceness);
  ::clearenv();
  ::setenv("TMPDIR", kTemporaryFolder, 1);
  make_temporary_file(kTemporaryBytes);
  const bool limits = limit_files(kTemporaryBytes) && hello.sandbox.limits;
  hello.sandbox = enter_sandbox(readable_folders(hello));
  hello.sandbox.limits = limits;
  if (!limits) hello.sandbox.missing += "; resource limits could not be set";
  if (!send_frame(socket, {0, write_hello(hello), ""})) ::_exit(1);
  Frame frame;
  while (receive_frame(socket, kMaxRequestBytes, {}, frame) == Receive::frame)
    if (!send_frame(socket, answer(compiler, frame))) break;
  // Skips exit handlers: the process holds nothing that must be written, and some would need more.
  ::_exit(0);
}

}  // namespace quern::serve
