// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "base/thread_annotations.hpp"
#include "runtime/memory/release.hpp"

namespace quern::runtime {

/// The pending releases of one context (rows F1-F6). Dropping a last reference schedules a release; crossing
/// a limit performs all pending ones; while deferred nothing is released, also if memory is exhausted. A
/// release that fails ends that flush: the item is dropped and reported, the rest stay. Thread-safe; no
/// release runs under the queue's lock.
class DeallocQueue {
 public:
  struct Limits {
    std::size_t count = 10;  ///< releases pending beyond this many trigger a flush
    std::size_t size_bytes = SIZE_MAX;
  };
  /// Releases one item; returns the reason of a failure, or an empty text.
  using ReleaseFunction = std::function<std::string(const Release&)>;
  using Report = std::function<void(const std::string&)>;

  DeallocQueue(Limits limits, ReleaseFunction release, Report report)
      : limits_(limits), release_(std::move(release)), report_(std::move(report)) {}

  void schedule(const Release& item) noexcept QUERN_EXCLUDES(mutex_);
  /// Releases all pending resources, unless deferred.
  void flush() noexcept QUERN_EXCLUDES(mutex_);
  /// Nests; resume() of the outermost one flushes.
  void defer() noexcept QUERN_EXCLUDES(mutex_);
  void resume() noexcept QUERN_EXCLUDES(mutex_);
  bool is_deferred() const noexcept QUERN_EXCLUDES(mutex_);
  std::size_t pending_count() const noexcept QUERN_EXCLUDES(mutex_);
  std::size_t pending_bytes() const noexcept QUERN_EXCLUDES(mutex_);

 private:
  bool push(const Release& item) QUERN_EXCLUDES(mutex_);
  std::optional<Release> take() noexcept QUERN_EXCLUDES(mutex_);
  bool release_one(const Release& item) noexcept;

  const Limits limits_;
  const ReleaseFunction release_;
  const Report report_;
  mutable base::Mutex mutex_;
  std::deque<Release> pending_ QUERN_GUARDED_BY(mutex_);
  std::size_t pending_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
  unsigned deferred_ QUERN_GUARDED_BY(mutex_) = 0;
};

/// The limits of the environment: QUERN_MAX_PENDING_DEALLOCS_COUNT and _RATIO (of the device's memory), or
/// Numba's names for them. A value that is not a number in range is ignored.
DeallocQueue::Limits limits_from_environment(std::size_t device_memory_bytes);

}  // namespace quern::runtime
