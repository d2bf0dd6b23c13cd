// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "serve/worker/frames.hpp"
#include "serve/worker/shared_messages.hpp"

namespace quern::serve {

/// A worker, seen from the server. Thread-compatible: one thread at a time uses it.
class WorkerProcess {
 public:
  /// A child of this process, and the socket to it; NurseryProcess forks them.
  WorkerProcess(pid_t process, int socket) : process_(process), socket_(socket) {}
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  /// Kills it.
  ~WorkerProcess();

  const WorkerHello& hello() const noexcept { return hello_; }
  void set_hello(WorkerHello hello) { hello_ = std::move(hello); }
  int socket() const noexcept { return socket_; }
  /// Requires that the worker has no request: its socket is readable only if it has ended.
  bool has_ended() const noexcept;
  std::uint64_t request_count() const noexcept { return request_count_; }

  /// Sends a request and waits for the answer while `goes_on` is true. After anything but `frame` the worker
  /// is of no use any more.
  Receive ask(const Frame& request, const std::function<bool()>& goes_on, Frame& answer);

  /// "signal 9 (Killed)", "status 1": how it ended, after it is killed.
  std::string end();

 private:
  pid_t process_ = -1;
  int socket_ = -1;
  std::uint64_t request_count_ = 0;
  WorkerHello hello_;
};

}  // namespace quern::serve
