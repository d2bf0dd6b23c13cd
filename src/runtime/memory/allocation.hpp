// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/thread_annotations.hpp"
#include "quern/stream.hpp"
#include "runtime/memory/own_streams.hpp"
#include "runtime/memory/resources.hpp"

namespace quern::runtime {

/// Allocates memory in a context, from the driver or from the allocator that the program has set.
/// Thread-safe.
class Allocation {
 public:
  /// `trim_spare` releases memory that the layer keeps for reuse; called if the driver is out of memory.
  Allocation(DriverContext& context, QueuedWork& work, Resources& resources, const OwnStreams& streams,
             std::function<void()> trim_spare)
      : context_(context),
        work_(work),
        resources_(resources),
        streams_(streams),
        trim_spare_(std::move(trim_spare)) {}
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  /// Device memory from the current allocator; `bytes` > 0. Throws OutOfMemory.
  std::shared_ptr<Resource> allocate(std::size_t bytes, StreamView stream = {});
  /// Runs an allocation of the driver; if out of memory, releases pending resources and tries once more, then
  /// throws OutOfMemory. `call` and `what` are for the message.
  void allocate_with_retry(const std::function<CUresult()>& attempt, std::string_view call, std::size_t bytes,
                           std::string_view what);
  std::size_t free_memory_bytes() const;

  /// Null: the driver's.
  void set_allocator(std::shared_ptr<DeviceAllocator> allocator) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<DeviceAllocator> allocator() const QUERN_EXCLUDES(mutex_);
  /// Registers a pool over this context's memory: give_up_pools() releases the memory that it keeps.
  std::shared_ptr<DeviceAllocator> note_pool(std::shared_ptr<DeviceAllocator> pool) QUERN_EXCLUDES(mutex_);
  /// Releases the free memory of pools before their context ends; the program may hold the pools longer. The
  /// newest pool is first: its memory may come from an older one.
  void give_up_pools() noexcept QUERN_EXCLUDES(mutex_);

 private:
  void make_room(DeviceAllocator* allocator);
  std::uint64_t allocate_from(DeviceAllocator& allocator, std::size_t bytes, StreamView stream);

  DriverContext& context_;
  QueuedWork& work_;
  Resources& resources_;
  const OwnStreams& streams_;
  const std::function<void()> trim_spare_;
  mutable base::Mutex mutex_;
  std::shared_ptr<DeviceAllocator> allocator_ QUERN_GUARDED_BY(mutex_);  ///< null: the driver's
  std::vector<std::weak_ptr<DeviceAllocator>> pools_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::runtime
