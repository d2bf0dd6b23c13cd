// SPDX-License-Identifier: Apache-2.0
// Clang's thread-safety annotations (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html) and a mutex that
// carries them.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define QUERN_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define QUERN_THREAD_ATTRIBUTE(x)
#endif

#define QUERN_CAPABILITY(x) QUERN_THREAD_ATTRIBUTE(capability(x))
#define QUERN_SCOPED_CAPABILITY QUERN_THREAD_ATTRIBUTE(scoped_lockable)
#define QUERN_GUARDED_BY(x) QUERN_THREAD_ATTRIBUTE(guarded_by(x))
#define QUERN_REQUIRES(...) QUERN_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define QUERN_EXCLUDES(...) QUERN_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define QUERN_ACQUIRE(...) QUERN_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define QUERN_RELEASE(...) QUERN_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define QUERN_TRY_ACQUIRE(...) QUERN_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define QUERN_NO_THREAD_SAFETY_ANALYSIS QUERN_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace quern::base {

class QUERN_CAPABILITY("mutex") Mutex {
 public:
  void lock() QUERN_ACQUIRE() { mutex_.lock(); }
  void unlock() QUERN_RELEASE() { mutex_.unlock(); }
  bool try_lock() QUERN_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

class QUERN_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Mutex& mutex) QUERN_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~LockGuard() QUERN_RELEASE() { mutex_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits on a Mutex that the caller holds.
class ConditionVariable {
 public:
  template <class Predicate>
  void wait(Mutex& mutex, Predicate ready) QUERN_REQUIRES(mutex) QUERN_NO_THREAD_SAFETY_ANALYSIS {
    condition_.wait(mutex, ready);
  }
  /// Returns false if it was not ready in that time.
  template <class Duration, class Predicate>
  bool wait_for(Mutex& mutex, Duration duration, Predicate ready)
      QUERN_REQUIRES(mutex) QUERN_NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait_for(mutex, duration, ready);
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace quern::base
