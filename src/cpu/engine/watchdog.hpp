// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::engine {

/// Ends launches that run for longer than a limit. Kernels carry no code for it: the threads inside get a
/// signal, as for a fault. Its thread starts with the first launch that is watched, and is never joined.
/// Thread-safe.
class Watchdog {
 public:
  /// A limit of 0: nothing is watched.
  explicit Watchdog(std::chrono::milliseconds limit) : limit_(limit) {}

  bool watches() const noexcept { return limit_.count() != 0; }

  /// While it lives, the worker's thread is made to leave the launch when that takes too long.
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
  };

 private:
  void add(Watch& watch) QUERN_EXCLUDES(mutex_);
  void remove(const Watch& watch) QUERN_EXCLUDES(mutex_);
  void main();
  bool end_late() QUERN_REQUIRES(mutex_);

  const std::chrono::milliseconds limit_;
  base::Mutex mutex_;
  base::ConditionVariable changed_;
  std::vector<Watch*> watches_ QUERN_GUARDED_BY(mutex_);
  bool started_ QUERN_GUARDED_BY(mutex_) = false;
};

}  // namespace quern::cpu::engine
