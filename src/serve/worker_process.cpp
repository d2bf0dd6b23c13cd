// SPDX-License-Identifier: Apache-2.0
#include "serve/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "serve/worker.hpp"

namespace quern::serve {
namespace {

constexpr std::uint64_t kMaxAnswerBytes = std::uint64_t{256} << 20;
// The variables that the search for NVRTC reads. The worker drops it before its first request.
constexpr const char* kVariables[] = {"QUERN_NVRTC", "QUERN_HIDE_TOOLKIT", "CUDA_HOME",
                                      "CUDA_PATH",   "LD_LIBRARY_PATH",    "HOME",
                                      "VIRTUAL_ENV", "CONDA_PREFIX",       "PYENV_ROOT"};

Diagnostic failure(const std::string& reason) {
  Diagnostic diagnostic;
  diagnostic.code = "worker";
  diagnostic.message = "cannot start a worker: " + reason;
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

/// 0, or the error's number. All other descriptors of the server close by themselves in the new process.
int spawn(pid_t& process, int socket, std::uint64_t memory_bytes) {
  std::error_code error_code;
  // The search for NVRTC looks beside the program, whose path the loader takes from here.
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error_code).string();
  std::vector<std::string> words{program, fmt::format("--worker={}", memory_bytes)};
  std::vector<std::string> variables = environment();
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  // Neither can it write to the server's log.
  for (const int output : {1, 2})
    posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, socket, kWorkerSocket);
  set_signals(attributes);
  const int error = ::posix_spawn(&process, "/proc/self/exe", &actions, &attributes, pointers(words).data(),
                                  pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

Expected<WorkerProcess> WorkerProcess::start(std::uint64_t memory_bytes, std::chrono::milliseconds patience) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return failure(std::strerror(errno));
  // dup2 of a descriptor to itself would leave it to close at the exec.
  const int theirs = pair[1] == kWorkerSocket ? ::fcntl(pair[1], F_DUPFD_CLOEXEC, 10) : pair[1];
  pid_t process = -1;
  const int error = spawn(process, theirs, memory_bytes);
  ::close(pair[1]);
  if (theirs != pair[1]) ::close(theirs);
  if (error != 0) {
    ::close(pair[0]);
    return failure(std::strerror(error));
  }
  WorkerProcess worker(process, pair[0]);
  const std::int64_t deadline =
      base::now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(patience).count();
  Frame frame;
  const Receive got =
      receive_frame(worker.socket_, kMaxAnswerBytes, [&] { return base::now_ns() < deadline; }, frame);
  if (got == Receive::stopped) return failure("it did not begin to work in time");
  if (got != Receive::frame) return failure("it ended with " + worker.end());
  Expected<WorkerHello> hello = read_hello(frame.text);
  if (!hello) return std::move(hello).errors();
  worker.hello_ = *std::move(hello);
  return worker;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      request_count_(other.request_count_),
      hello_(std::move(other.hello_)) {}

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(socket_, other.socket_);
  std::swap(request_count_, other.request_count_);
  std::swap(hello_, other.hello_);
  return *this;
}

WorkerProcess::~WorkerProcess() { end(); }

Receive WorkerProcess::ask(const Frame& request, const std::function<bool()>& goes_on, Frame& answer) {
  ++request_count_;
  // A worker reads its requests whole before it works on them, so this does not wait for long.
  if (!send_frame(socket_, request)) return Receive::closed;
  return receive_frame(socket_, kMaxAnswerBytes, goes_on, answer);
}

std::string WorkerProcess::end() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (process_ < 0) return "no process";
  int status = 0;
  // One that has ended by itself keeps its own status.
  pid_t ended = ::waitpid(process_, &status, WNOHANG);
  if (ended == 0) {
    ::kill(process_, SIGKILL);
    do {
      ended = ::waitpid(process_, &status, 0);
    } while (ended < 0 && errno == EINTR);
  }
  process_ = -1;
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("status {}", WEXITSTATUS(status));
}

}  // namespace quern::serve
