// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/thread_annotations.hpp"

namespace quern::cpu::engine {

/// Counts the threads that are destroying commands that have ended. A command may be the last owner of
/// memory: of a module that the program has unloaded since its launch. Callers that count free memory wait
/// for such threads.
class Disposal {
 public:
  /// Tells that the calling thread is about to destroy commands. Called under the scheduler's mutex.
  std::uint32_t begin() noexcept {
    ++counts_[epoch_];
    ++depth_of_thread;
    return epoch_;
  }
  /// `epoch`: what begin() returned.
  void end(std::uint32_t epoch) noexcept {
    --depth_of_thread;
    counts_[epoch].fetch_sub(1, std::memory_order_release);
  }

  /// Returns when all threads that had begun before the call have ended. `locked(f)` calls `f` under the
  /// scheduler's mutex. A thread that is destroying commands, whose owners may call anything, does not wait.
  template <class Locked>
  void wait(const Locked& locked) QUERN_EXCLUDES(waiting_) {
    if (depth_of_thread > 0) return;
    const base::LockGuard one(waiting_);
    std::uint32_t before = 0;
    locked([&] {
      before = epoch_;
      epoch_ ^= 1U;  // the threads of this epoch have ended: the last caller has waited for them
    });
    for (int tries = 0; counts_[before].load(std::memory_order_acquire) != 0; ++tries)
      if (tries < kMostYields)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kNap);
  }

 private:
  static constexpr int kMostYields = 100;
  static constexpr std::chrono::microseconds kNap{50};
  static inline thread_local std::uint32_t depth_of_thread = 0;
  base::Mutex waiting_;
  std::uint32_t epoch_ = 0;  ///< 0 or 1. The scheduler's mutex guards it.
  std::array<std::atomic<std::uint32_t>, 2> counts_{};
};

}  // namespace quern::cpu::engine
