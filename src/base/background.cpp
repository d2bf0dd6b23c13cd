// SPDX-License-Identifier: Apache-2.0
#include "base/background.hpp"

#include <deque>
#include <system_error>

#include "base/progress.hpp"
#include "base/thread.hpp"
#include "quern/error.hpp"

namespace quern::base {
namespace {

struct Pool {
  const int process = ::getpid();
  Mutex mutex;
  std::deque<std::shared_ptr<Task>> queue QUERN_GUARDED_BY(mutex);
  unsigned threads QUERN_GUARDED_BY(mutex) = 0;

  std::shared_ptr<Task> next() QUERN_EXCLUDES(mutex) {
    const LockGuard lock(mutex);
    if (queue.empty()) {
      --threads;
      return nullptr;
    }
    std::shared_ptr<Task> task = std::move(queue.front());
    queue.pop_front();
    return task;
  }
};

std::atomic<Pool*> newest{nullptr};

/// Never destroyed: its threads may run until the process ends. A forked child, which has none of them and
/// may find the lock held, gets a pool of its own.
Pool& pool() {
  Pool* known = newest.load();
  while (known == nullptr || known->process != ::getpid()) {
    auto made = std::make_unique<Pool>();
    if (newest.compare_exchange_strong(known, made.get())) return *made.release();
  }
  return *known;
}

void work_off(Pool& of) {
  while (const std::shared_ptr<Task> task = of.next()) task->run();
}

/// The work is given back where no thread would ever take it.
void withdraw(Pool& of, const std::shared_ptr<Task>& task, const std::string& attempted,
              const std::system_error& error) {
  const LockGuard lock(of.mutex);
  if (--of.threads > 0) return;
  std::erase(of.queue, task);
  throw Error(ErrorCode::unsupported, "cannot " + attempted + " in the background: " + error.what() +
                                          "\nhint: raise the limit of threads (ulimit -u), or do it in the "
                                          "foreground");
}

}  // namespace

void Task::require_own_process() const {
  if (done() || process_ == ::getpid()) return;
  throw Error(ErrorCode::driver,
              "cannot " + attempted_ +
                  ": this process was forked while that was in progress, and does not have "
                  "the thread that does it\nhint: start the work again in the child");
}

void Task::wait() const {
  require_own_process();
  const LockGuard lock(mutex_);
  finished_.wait(mutex_, [&] { return done(); });
}

bool Task::wait_for(std::chrono::nanoseconds time) const {
  require_own_process();
  const LockGuard lock(mutex_);
  return finished_.wait_for(mutex_, time, [&] { return done(); });
}

void Task::rethrow() const {
  wait();
  if (error_ == nullptr && !never_begun_) return;
  try {
    if (error_ != nullptr) std::rethrow_exception(error_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || !stop_.load()) throw;
  }
  throw Error(ErrorCode::cancelled, "cannot " + attempted_ + ": it was cancelled by its handle");
}

void Task::finish(std::exception_ptr error) noexcept {
  work_ = nullptr;  // may close a session; before `done`, so that it is closed for waiting threads
  error_ = std::move(error);
  {
    const LockGuard lock(mutex_);
    state_.store(State::done);
  }
  finished_.notify_all();
}

void Task::cancel() noexcept {
  stop_.store(true);
  if (process_ != ::getpid()) return;  // the lock may be held by a thread that this process does not have
  State expected = State::waits;
  if (!state_.compare_exchange_strong(expected, State::runs)) return;
  never_begun_ = true;
  finish(nullptr);
}

void Task::run() noexcept {
  State expected = State::waits;
  if (!state_.compare_exchange_strong(expected, State::runs)) return;
  std::exception_ptr error;
  try {
    const StopScope stop(stop_);
    work_();
  } catch (...) {
    error = std::current_exception();
  }
  finish(std::move(error));
}

std::shared_ptr<Task> run_in_background(std::string attempted, std::function<void()> work) {
  auto task = std::make_shared<Task>(attempted, std::move(work));
  Pool& in = pool();
  {
    const LockGuard lock(in.mutex);
    in.queue.push_back(task);
    if (in.threads == kMostBackgroundThreads) return task;
    ++in.threads;
  }
  try {
    start_thread([&in] { work_off(in); });
  } catch (const std::system_error& error) {
    withdraw(in, task, attempted, error);
  }
  return task;
}

unsigned background_thread_count() {
  Pool& in = pool();
  const LockGuard lock(in.mutex);
  return in.threads;
}

}  // namespace quern::base
