// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::engine {

/// Ends launches that run for longer than their limit. Kernels carry no code for it: the threads inside get a
/// signal, as for a fault. Its thread starts with the first launch that is watched, and is never joined.
/// Thread-safe.
class Watchdog {
 public:
  /// While it lives, the worker's thread is made to leave the launch when that takes longer than job.limit.
  class Watch {
   public:
    Watch(Watchdog& watchdog, LaunchJob& job, Worker& worker);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    friend class Watchdog;
    Watchdog& watchdog_;
    LaunchJob& job_;
    Worker& worker_;
    std::chrono::steady_clock::time_point deadline_{};
  };

 private:
  void add(Watch& watch) QUERN_EXCLUDES(mutex_);
  void remove(const Watch& watch) QUERN_EXCLUDES(mutex_);
  void main();
  /// Ends launches beyond their deadline; returns the time of the next check.
  std::chrono::steady_clock::time_point end_late() QUERN_REQUIRES(mutex_);

  base::Mutex mutex_;
  base::ConditionVariable changed_;
  std::vector<Watch*> watches_ QUERN_GUARDED_BY(mutex_);
  bool started_ QUERN_GUARDED_BY(mutex_) = false;
  /// The thread looks then, or when it is notified.
  std::chrono::steady_clock::time_point wakes_ QUERN_GUARDED_BY(mutex_);
  bool sooner_ QUERN_GUARDED_BY(mutex_) = false;  ///< some deadline is before that
};

}  // namespace quern::cpu::engine
