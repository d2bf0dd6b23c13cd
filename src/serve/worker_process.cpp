// SPDX-License-Identifier: Apache-2.0
#include "serve/worker_process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace quern::serve {
namespace {

constexpr std::uint64_t kMaxAnswerBytes = std::uint64_t{256} << 20;

}  // namespace

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

bool WorkerProcess::has_ended() const noexcept {
  pollfd ready{socket_, POLLIN, 0};
  return ::poll(&ready, 1, 0) != 0;
}

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
  // A worker that has ended by itself keeps its status.
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
