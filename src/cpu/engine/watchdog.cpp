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

/// A thread that could not be made to leave, because it was in code that is not the kernel's, is asked again
/// this soon.
constexpr std::chrono::milliseconds kAskAgain{1};
constexpr std::chrono::milliseconds kLongestSleep{100};

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

Watchdog::Watch::Watch(Watchdog& watchdog, LaunchJob& job, Worker& worker)
    : watchdog_(watchdog), job_(job), worker_(worker) {
  if (!watchdog_.watches()) return;
  std::int64_t unset = 0;
  job_.started_ns.compare_exchange_strong(unset, now_ns());  // by the first of its threads
  watchdog_.add(*this);
}

Watchdog::Watch::~Watch() {
  if (watchdog_.watches()) watchdog_.remove(*this);
}

void Watchdog::add(Watch& watch) {
  const base::LockGuard lock(mutex_);
  watches_.push_back(&watch);
  if (started_) return changed_.notify_one();
  try {
    base::start_thread([this] { main(); });
    started_ = true;
  } catch (const std::system_error& error) {
    report(std::string("cannot start the thread that ends launches after QUERN_CPU_TIMEOUT: ") +
           error.what());
  }
}

void Watchdog::remove(const Watch& watch) {
  const base::LockGuard lock(mutex_);
  std::erase(watches_, &watch);
}

void Watchdog::main() {
  for (;;) {
    bool late = false;
    {
      const base::LockGuard lock(mutex_);
      changed_.wait(mutex_, [this]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return !watches_.empty(); });
      late = end_late();
    }
    std::this_thread::sleep_for(late ? kAskAgain : std::clamp(limit_ / 8, kAskAgain, kLongestSleep));
  }
}

/// True if some launch is over its time.
bool Watchdog::end_late() {
  bool late = false;
  const std::int64_t oldest = now_ns() - std::chrono::duration_cast<std::chrono::nanoseconds>(limit_).count();
  for (Watch* watch : watches_) {
    if (watch->job_.started_ns.load(std::memory_order_relaxed) > oldest) continue;
    late = true;
    watch->job_.timed_out.store(true, std::memory_order_relaxed);
    watch->job_.stopped.store(true, std::memory_order_relaxed);
    watch->worker_.ask_to_leave();
  }
  return late;
}

}  // namespace quern::cpu::engine
