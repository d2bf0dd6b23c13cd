// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/nursery.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

#include "serve/worker/frames.hpp"
#include "serve/worker/header_builder.hpp"
#include "serve/worker/sandbox.hpp"
#include "serve/worker/worker.hpp"

namespace quern::serve {
namespace {

constexpr std::uint64_t kMaxRequestBytes = std::uint64_t{1} << 20;

/// Compiles once, so that all that NVRTC loads is loaded before workers are forked.
Expected<void> warm_up(session::RequestCompiler& compiler) {
  abi::KernelRequest request;
  request.source.text = "extern \"C\" __global__ void warm_up(int* p) { p[threadIdx.x] = 1; }\n";
  auto image = compiler.compile(request);
  if (!image) return std::move(image).errors();
  return {};
}

class Nursery {
 public:
  explicit Nursery(bool limits) : server_(::getppid()) { hello_.sandbox.limits = limits; }

  bool prepare(bool precompiled_headers) {
    const session::CompilerFacts facts = compiler_.facts();
    hello_.nvrtc_path = facts.nvrtc_path;
    hello_.nvrtc_version = facts.nvrtc_version;
    hello_.headers_version = facts.headers_version;
    hello_.libraries = facts.libraries;
    hello_.header_contents = facts.header_contents;
    hello_.quern = facts.quern;
    hello_.include_directories = facts.include_directories;
    if (facts.nvrtc_path.empty())
      hello_.problem = to_string(facts.missing);
    else if (const Expected<void> warm = warm_up(compiler_); !warm)
      hello_.problem = to_string(warm.errors());
    else if (precompiled_headers)
      builder_.prepare();
    ::clearenv();
    return send_frame(kNurserySocket, {0, write_hello(hello_), ""});
  }

  void run() {
    for (;;) {
      pollfd ready[] = {
          {kNurserySocket, POLLIN, 0}, {kHeaderSocket, POLLIN, 0}, {builder_.ended(), POLLIN, 0}};
      if (::poll(ready, 3, -1) < 0) continue;
      if (ready[0].revents != 0 && !fork_worker()) return;
      if (ready[1].revents != 0 && !begin_header()) return;
      if (ready[2].revents != 0 && !finish_header()) return;
    }
  }

 private:
  bool fork_worker() {
    Frame frame;
    if (receive_frame(kNurserySocket, kMaxRequestBytes, {}, frame) != Receive::frame) return false;
    const int socket = receive_descriptor(kNurserySocket);
    if (socket < 0) return false;
    // A child of the server, which waits for it. Not fork(), which cannot do that; this process has one
    // thread, so that no lock of the C library is held.
    const long process = ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (process == 0) begin_worker(socket);
    ::close(socket);
    return send_frame(kNurserySocket, {0, std::to_string(process), ""});
  }

  [[noreturn]] void begin_worker(int socket) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, "quern-worker");
    if (::getppid() != server_) ::_exit(1);  // it has ended already
    ::close(kNurserySocket);
    ::close(kHeaderSocket);
    if (builder_.ended() >= 0) ::close(builder_.ended());
    run_worker(socket, compiler_, hello_);
  }

  bool begin_header() {
    Frame frame;
    if (receive_frame(kHeaderSocket, kMaxRequestBytes, {}, frame) != Receive::frame) return false;
    const Expected<remote::CompileMessage> message = remote::read_compile_message(frame.text);
    if (message && builder_.begin(message->request)) return true;
    return send_frame(kHeaderSocket, {1, "no process could be started for it", ""});
  }

  bool finish_header() {
    const Expected<std::uint64_t> size = builder_.finish();
    return send_frame(kHeaderSocket, size ? Frame{0, std::to_string(*size), ""}
                                          : Frame{1, size.errors().front().message, ""});
  }

  const pid_t server_;
  session::RequestCompiler compiler_;
  WorkerHello hello_;
  HeaderBuilder builder_{compiler_, hello_};
};

}  // namespace

int nursery_main(const NurseryOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "quern-nursery");
  // NVRTC's heap for precompiled headers is address space of all its processes.
  const std::uint64_t heap_bytes = options.precompiled_headers ? HeaderBuilder::kMostFileBytes : 0;
  const std::uint64_t memory_bytes = options.memory_bytes == 0 ? 0 : options.memory_bytes + heap_bytes;
  const bool limits = limit_resources({memory_bytes, HeaderBuilder::kMostFileBytes});
  if (::chdir("/") != 0) return 1;
  Nursery nursery(limits);
  if (!nursery.prepare(options.precompiled_headers)) return 1;
  nursery.run();
  // Skips exit handlers: the process holds nothing that must be written.
  ::_exit(0);
}

}  // namespace quern::serve
