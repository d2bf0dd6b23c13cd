// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_annotations.hpp"
#include "runtime/memory/allocation.hpp"
#include "runtime/memory/resources.hpp"
#include "runtime/work/driver_context.hpp"
#include "runtime/work/queued_work.hpp"

namespace quern::runtime {

/// Page-locked staging blocks for queued copies of pageable memory: the driver copies asynchronously only
/// from page-locked memory. Block sizes are powers of two, and blocks are reused. While cleanup is deferred,
/// no block is returned to the driver. Thread-safe.
class StagingPool {
 public:
  static constexpr std::size_t kMostFreeBytes = std::size_t{64} << 20;

  StagingPool(const DriverContext& context, QueuedWork& work, Resources& resources, Allocation& allocation)
      : context_(context), work_(work), resources_(resources), allocation_(allocation) {}
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  /// At least `bytes` of page-locked memory; the last reference gives it back. Throws OutOfMemory.
  std::shared_ptr<std::byte> take(std::size_t bytes) QUERN_EXCLUDES(mutex_);
  /// Gives unused blocks back to the driver until no more than `keep_bytes` are left.
  void trim(std::size_t keep_bytes = 0) noexcept QUERN_EXCLUDES(mutex_);

 private:
  struct Block {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
  };
  Block find_free(std::size_t bytes) QUERN_EXCLUDES(mutex_);
  Block take_free(std::size_t keep_bytes) noexcept QUERN_EXCLUDES(mutex_);
  bool expect_back() noexcept QUERN_EXCLUDES(mutex_);
  void give_back(const Block& block) noexcept QUERN_EXCLUDES(mutex_);
  void release(const Block& block) noexcept;

  const DriverContext& context_;
  QueuedWork& work_;
  Resources& resources_;
  Allocation& allocation_;
  base::Mutex mutex_;
  std::vector<Block> free_ QUERN_GUARDED_BY(mutex_);
  std::size_t free_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
  std::size_t block_count_ QUERN_GUARDED_BY(mutex_) = 0;  ///< free or in use
};

}  // namespace quern::runtime
