// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "base/thread_annotations.hpp"
#include "driver/driver_table.hpp"
#include "runtime/work/driver_context.hpp"
#include "runtime/work/waiting.hpp"

namespace quern::runtime {

/// Host memory that queued copies of a context have not filled yet. In CUDA a copy to pageable memory has
/// ended when its call returns; quern's is queued, so code that reads host memory on the calling thread first
/// waits for the copies into it, and a later copy into it follows them. Each target has an event behind its
/// copy: later work on the stream is not waited for, and the stream may be gone. Thread-safe.
class HostTargets : public std::enable_shared_from_this<HostTargets> {
  struct Expected {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    CUevent copied = nullptr;
    CUstream stream = nullptr;
  };
  /// The event goes back to free_ with the last reference.
  using List = std::list<std::shared_ptr<const Expected>>;

 public:
  /// The target of one copy. The queued work keeps it.
  class Target {
   public:
    Target(std::shared_ptr<HostTargets> all, List::iterator self)
        : all_(std::move(all)), self_(self), expected_(*self) {}
    ~Target() { filled(); }  // of work that was not queued or did not run
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    /// Called by the queued work when the memory has its values.
    void filled() noexcept QUERN_EXCLUDES(all_->mutex_);
    /// Called once that work is queued. Throws DriverError.
    void queued() const;

   private:
    /// At process exit the driver may run the work after the context has gone.
    const std::shared_ptr<HostTargets> all_;
    const List::iterator self_;
    const std::shared_ptr<const Expected> expected_;
    bool listed_ QUERN_GUARDED_BY(all_->mutex_) = true;
  };

  HostTargets(const DriverContext& context, Waiting& waiting) : context_(context), waiting_(waiting) {}
  HostTargets(const HostTargets&) = delete;
  HostTargets& operator=(const HostTargets&) = delete;

  /// The memory is expected to get values from a copy on `stream`, until filled(). The context is current.
  /// Throws DriverError.
  std::shared_ptr<Target> expect(const std::byte* begin, std::size_t size_bytes, CUstream stream)
      QUERN_EXCLUDES(mutex_);
  /// Returns when all copies into this memory that were queued before have run. Throws as
  /// Waiting::synchronize() for their streams. It does not wait in a callback, which would be a deadlock.
  void wait_for(const std::byte* begin, std::size_t size_bytes) {
    if (count_.load(std::memory_order_acquire) != 0) [[unlikely]]
      wait_for_overlapping(begin, begin + size_bytes);
  }
  /// Work that is queued on `stream` from now on runs after the copies into this memory that were queued
  /// before, on any stream. The context is current. Throws DriverError.
  void order_behind(const std::byte* begin, std::size_t size_bytes, CUstream stream) QUERN_EXCLUDES(mutex_);
  /// Destroys the events that are not in use.
  void trim() noexcept QUERN_EXCLUDES(mutex_);

 private:
  CUevent take_event() QUERN_EXCLUDES(mutex_);
  void give_back(CUevent event) noexcept QUERN_EXCLUDES(mutex_);
  void wait_for_overlapping(const std::byte* begin, const std::byte* end) QUERN_EXCLUDES(mutex_);
  List overlapping(const std::byte* begin, const std::byte* end) QUERN_EXCLUDES(mutex_);

  const DriverContext& context_;
  Waiting& waiting_;
  std::atomic<std::size_t> count_{0};  ///< of expected_
  base::Mutex mutex_;
  List expected_ QUERN_GUARDED_BY(mutex_);
  std::vector<CUevent> free_ QUERN_GUARDED_BY(mutex_);
  std::size_t event_count_ QUERN_GUARDED_BY(mutex_) = 0;  ///< free or in use
};

}  // namespace quern::runtime
