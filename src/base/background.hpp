// SPDX-License-Identifier: Apache-2.0
// Work on threads of the process's own, which exist only while there is some.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "base/thread_annotations.hpp"

namespace quern::base {

/// One piece of work. Thread-safe.
class Task {
 public:
  /// `attempted` is for messages: "load x.cu".
  Task(std::string attempted, std::function<void()> work)
      : attempted_(std::move(attempted)), work_(std::move(work)) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  bool done() const noexcept { return state_.load() == State::done; }
  /// Throws Error(driver) in a forked child, where the work is never done.
  void wait() const QUERN_EXCLUDES(mutex_);
  bool wait_for(std::chrono::nanoseconds time) const QUERN_EXCLUDES(mutex_);
  /// Waits; throws what the work threw.
  void rethrow() const;
  void cancel() noexcept QUERN_EXCLUDES(mutex_);
  /// Does the work on this thread, unless it was cancelled.
  void run() noexcept QUERN_EXCLUDES(mutex_);

 private:
  enum class State : std::uint8_t { waits, runs, done };
  void finish(std::exception_ptr error) noexcept QUERN_EXCLUDES(mutex_);
  void require_own_process() const;

  const std::string attempted_;
  const int process_ = ::getpid();
  std::function<void()> work_;  // belongs to the thread that takes state_ from `waits`
  std::exception_ptr error_;    // written before `done`, as is the following
  bool never_begun_ = false;    // cancelled
  std::atomic<State> state_{State::waits};
  std::atomic<bool> stop_{false};
  mutable Mutex mutex_;
  mutable ConditionVariable finished_;
};

/// The largest number of threads that work at once.
inline constexpr unsigned kMostBackgroundThreads = 4;

/// Queues the work. Throws Error(unsupported) if the system starts no thread and none of ours is running.
std::shared_ptr<Task> run_in_background(std::string attempted, std::function<void()> work);

/// Threads that work or look for work now.
unsigned background_thread_count();

}  // namespace quern::base
