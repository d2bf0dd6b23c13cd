// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/watchdog.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/thread.hpp"
#include "cpu/engine/output.hpp"

namespace quern::cpu::engine {
namespace {

using Clock = std::chrono::steady_clock;

/// If a thread could not be interrupted, because it ran code outside the kernel, it is signalled again after
/// this time.
constexpr std::chrono::milliseconds kAskAgain{1};
/// The thread sleeps for this time while no launch is watched.
constexpr std::chrono::hours kForLong{1};
/// Longer limits are reduced to this one, so that a deadline fits the clock.
constexpr std::chrono::hours kLongestLimit{24 * 365};

}  // namespace

Watchdog::Watch::Watch(Watchdog& watchdog, LaunchJob& job, Worker& worker)
    : watchdog_(watchdog), job_(job), worker_(worker) {
  if (job.limit.count() == 0) return;
  const std::chrono::nanoseconds now = Clock::now().time_since_epoch();
  std::int64_t started = 0;  // the start of the first of its threads
  if (job_.started_ns.compare_exchange_strong(started, now.count())) started = now.count();
  deadline_ = Clock::time_point(std::chrono::nanoseconds(started)) +
              std::min<std::chrono::nanoseconds>(job.limit, kLongestLimit);
  watchdog_.add(*this);
}

Watchdog::Watch::~Watch() {
  if (job_.limit.count() != 0) watchdog_.remove(*this);
}

void Watchdog::add(Watch& watch) {
  const base::LockGuard lock(mutex_);
  watches_.push_back(&watch);
  if (started_) {
    if (watch.deadline_ >= wakes_) return;
    sooner_ = true;
    return changed_.notify_one();
  }
  try {
    base::start_thread([this] { main(); });
    started_ = true;
  } catch (const std::system_error& error) {
    report(std::string("cannot start the thread that ends launches after their time limit: ") + error.what());
  }
}

void Watchdog::remove(const Watch& watch) {
  const base::LockGuard lock(mutex_);
  std::erase(watches_, &watch);
}

/// Many short launches with a limit do not wake the thread: their deadlines are later than the one for which
/// it waits.
void Watchdog::main() {
  const base::LockGuard lock(mutex_);
  for (;;) {
    sooner_ = false;
    wakes_ = end_late();
    changed_.wait_for(mutex_, wakes_ - Clock::now(),
                      [this]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return sooner_; });
  }
}

std::chrono::steady_clock::time_point Watchdog::end_late() {
  const Clock::time_point now = Clock::now();
  Clock::time_point next = now + kForLong;
  for (Watch* watch : watches_) {
    if (watch->deadline_ > now) {
      next = std::min(next, watch->deadline_);
      continue;
    }
    watch->job_.timed_out.store(true, std::memory_order_relaxed);
    watch->job_.stopped.store(true, std::memory_order_relaxed);
    watch->worker_.ask_to_leave();
    next = std::min(next, now + kAskAgain);
  }
  return next;
}

}  // namespace quern::cpu::engine
