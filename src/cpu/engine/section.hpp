// SPDX-License-Identifier: Apache-2.0
// Private to the two source files of the scheduler.
#pragma once

#include <utility>

#include "cpu/engine/scheduler.hpp"

namespace quern::cpu::engine {

class QUERN_SCOPED_CAPABILITY Scheduler::Section {
 public:
  explicit Section(Scheduler& scheduler) QUERN_ACQUIRE(scheduler.mutex_) : scheduler_(scheduler) {
    scheduler.mutex_.lock();
  }
  ~Section() QUERN_RELEASE() { unlock_for_good(); }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  /// Releases the mutex while `work` runs.
  template <class Work>
  void outside(Work&& work) QUERN_NO_THREAD_SAFETY_ANALYSIS {
    unlock_for_good();
    work();
    scheduler_.mutex_.lock();
  }
  /// Carries out the deferred actions, then waits on `condition`.
  template <class Predicate>
  void wait(base::ConditionVariable& condition, Predicate ready) QUERN_NO_THREAD_SAFETY_ANALYSIS {
    outside([] {});
    condition.wait(scheduler_.mutex_, ready);
  }
  /// The same, for at most `duration`. Returns false if the predicate did not become true in that time.
  template <class Duration, class Predicate>
  bool wait_for(base::ConditionVariable& condition, Duration duration,
                Predicate ready) QUERN_NO_THREAD_SAFETY_ANALYSIS {
    outside([] {});
    return condition.wait_for(scheduler_.mutex_, duration, ready);
  }

 private:
  void unlock_for_good() QUERN_NO_THREAD_SAFETY_ANALYSIS {
    if (scheduler_.progress_.deferred.empty()) return scheduler_.mutex_.unlock();  // most sections only read
    DeferredActions deferred = std::exchange(scheduler_.progress_.deferred, {});
    const std::uint32_t epoch = scheduler_.disposal_.begin();
    scheduler_.mutex_.unlock();
    scheduler_.carry_out(std::move(deferred));
    scheduler_.disposal_.end(epoch);
  }
  Scheduler& scheduler_;
};

}  // namespace quern::cpu::engine
