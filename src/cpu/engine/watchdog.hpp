// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::engine {

/// Ends launches that exceed their time limit. Kernels contain no code for it: their threads receive a
/// signal, as for a fault. The watchdog's thread starts with the first launch that is watched, and is never
/// joined. Thread-safe.
class Watchdog {
 public:
  /// During its lifetime, the worker's thread is made to leave the launch when job.limit is exceeded.
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
  /// The time at which the thread checks next, unless it is notified earlier.
  std::chrono::steady_clock::time_point wakes_ QUERN_GUARDED_BY(mutex_);
  bool sooner_ QUERN_GUARDED_BY(mutex_) = false;  ///< some deadline is before wakes_
};

}  // namespace quern::cpu::engine
