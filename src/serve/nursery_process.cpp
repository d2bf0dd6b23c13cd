// SPDX-License-Identifier: Apache-2.0
#include "serve/nursery_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "serve/worker/frames.hpp"
#include "serve/worker/shared_messages.hpp"

namespace quern::serve {
namespace {

constexpr std::uint64_t kMaxHelloBytes = std::uint64_t{16} << 20;
// The variables that the search for NVRTC reads. The worker drops it before its first request.
constexpr const char* kVariables[] = {"QUERN_NVRTC", "QUERN_HIDE_TOOLKIT", "CUDA_HOME",
                                      "CUDA_PATH",   "LD_LIBRARY_PATH",    "HOME",
                                      "VIRTUAL_ENV", "CONDA_PREFIX",       "PYENV_ROOT"};

Diagnostic failure(const std::string& reason) {
  Diagnostic diagnostic;
  diagnostic.code = "worker";
  diagnostic.message = "cannot start a process that compiles: " + reason;
  return diagnostic;
}

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (const char* name : kVariables)
    if (const char* value = std::getenv(name)) variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// All signals as a new process has them: the server's threads block most.
void set_signals(posix_spawnattr_t& attributes) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/// Two sockets that are connected, above the numbers that the new process gives them.
struct SocketPair {
  int ours = -1, theirs = -1;

  SocketPair() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return;
    ours = pair[0];
    theirs = ::fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
    ::close(pair[1]);
  }
  ~SocketPair() {
    for (const int each : {ours, theirs})
      if (each >= 0) ::close(each);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  bool good() const { return ours >= 0 && theirs >= 0; }
  int take() { return std::exchange(ours, -1); }
};

/// 0, or the error's number. All other descriptors of the server close by themselves in the new process.
int spawn(pid_t& process, int workers, int headers, const NurseryOptions& options) {
  std::error_code error_code;
  // The search for NVRTC looks beside the program, whose path the loader takes from here.
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error_code).string();
  std::vector<std::string> words{
      program, fmt::format("--nursery={},{}", options.memory_bytes, options.precompiled_headers ? 1 : 0)};
  std::vector<std::string> variables = environment();
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  // It cannot write to the server's log either.
  for (const int output : {1, 2})
    posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, workers, kNurserySocket);
  posix_spawn_file_actions_adddup2(&actions, headers, kHeaderSocket);
  set_signals(attributes);
  const int error = ::posix_spawn(&process, "/proc/self/exe", &actions, &attributes, pointers(words).data(),
                                  pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

std::function<bool()> until(std::chrono::milliseconds timeout) {
  const std::int64_t deadline =
      base::now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout).count();
  return [deadline] { return base::now_ns() < deadline; };
}

Expected<WorkerHello> first_message(int socket, std::chrono::milliseconds timeout) {
  Frame frame;
  const Receive got = receive_frame(socket, kMaxHelloBytes, until(timeout), frame);
  if (got == Receive::stopped) return failure("it did not begin to work in time");
  if (got != Receive::frame) return failure("it has ended");
  return read_hello(frame.text);
}

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Expected<std::shared_ptr<NurseryProcess>> NurseryProcess::start(const NurseryOptions& options,
                                                                std::chrono::milliseconds timeout) {
  SocketPair workers, headers;
  if (!workers.good() || !headers.good()) return failure(std::strerror(errno));
  pid_t process = -1;
  if (const int error = spawn(process, workers.theirs, headers.theirs, options); error != 0)
    return failure(std::strerror(error));
  std::shared_ptr<NurseryProcess> nursery(new NurseryProcess(workers.take(), headers.take()));
  nursery->process_ = process;
  ::close(std::exchange(workers.theirs, -1));
  ::close(std::exchange(headers.theirs, -1));
  Expected<WorkerHello> hello = first_message(nursery->workers_, timeout);
  if (!hello) return std::move(hello).errors();
  nursery->hello_ = *std::move(hello);
  return nursery;
}

NurseryProcess::~NurseryProcess() {
  ::close(workers_);
  ::close(headers_);
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Expected<WorkerProcess> NurseryProcess::fork_worker(std::chrono::milliseconds timeout) {
  SocketPair pair;
  if (!pair.good()) return failure(std::strerror(errno));
  Frame answer;
  {
    const base::LockGuard lock(mutex_);
    if (!send_frame(workers_, {kForkFrame, "", ""}) || !send_descriptor(workers_, pair.theirs) ||
        receive_frame(workers_, kMaxHelloBytes, until(timeout), answer) != Receive::frame)
      return failure("the process that workers are forked from has ended");
  }
  const std::optional<pid_t> process = number_of<pid_t>(answer.text);
  if (!process || *process <= 0) return failure("it could not be forked");
  ::close(std::exchange(pair.theirs, -1));
  WorkerProcess worker(*process, pair.take());
  Expected<WorkerHello> hello = first_message(worker.socket(), timeout);
  if (!hello) return failure(hello.errors().front().message + ": " + worker.end());
  worker.set_hello(*std::move(hello));
  return worker;
}

Expected<std::uint64_t> NurseryProcess::precompile(const abi::KernelRequest& lines,
                                                   const std::function<bool()>& goes_on) {
  const Expected<std::string> text = remote::write_compile_message({lines, {}});
  if (!text) return text.errors();
  Frame answer;
  if (!send_frame(headers_, {0, *text, ""}) ||
      receive_frame(headers_, kMaxHelloBytes, goes_on, answer) != Receive::frame)
    return failure("the process that workers are forked from has ended");
  const std::optional<std::uint64_t> size = number_of<std::uint64_t>(answer.text);
  if (answer.status != 0 || !size) return failure(answer.text);
  ++header_count_;
  return *size;
}

}  // namespace quern::serve
