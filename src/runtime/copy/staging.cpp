// SPDX-License-Identifier: Apache-2.0
#include "runtime/copy/staging.hpp"

#include <algorithm>
#include <bit>

#include "runtime/device/exit.hpp"

namespace quern::runtime {
namespace {

constexpr std::size_t kSmallestBlock = 4096;

}  // namespace

StagingPool::Block StagingPool::find_free(std::size_t bytes) {
  const base::LockGuard lock(mutex_);
  const auto found =
      std::find_if(free_.begin(), free_.end(), [&](const Block& block) { return block.bytes == bytes; });
  if (found == free_.end()) return {};
  const Block block = *found;
  free_.erase(found);
  free_bytes_ -= block.bytes;
  return block;
}

std::shared_ptr<std::byte> StagingPool::take(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallestBlock));
  work_.reap();
  Block block = find_free(size);
  if (block.address == nullptr) {
    const CurrentContext current(context_);
    void* address = nullptr;
    allocation_.allocate_with_retry(
        [&] { return context_.api().cuMemHostAlloc(&address, size, CU_MEMHOSTALLOC_PORTABLE); },
        "cuMemHostAlloc", size, "page-locked memory for a queued copy");
    block = {static_cast<std::byte*>(address), size};
    if (!expect_back()) {
      release(block);
      throw std::bad_alloc();
    }
  }
  return {block.address, [this, block](std::byte*) { give_back(block); }};
}

/// Reserves space in the list for one more block, so that give_back() allocates no memory.
bool StagingPool::expect_back() noexcept {
  const base::LockGuard lock(mutex_);
  try {
    free_.reserve(block_count_ + 1);
  } catch (const std::bad_alloc&) {
    return false;
  }
  ++block_count_;
  return true;
}

void StagingPool::give_back(const Block& block) noexcept {
  const bool deferred = resources_.queue().is_deferred();
  {
    const base::LockGuard lock(mutex_);
    if (deferred || free_bytes_ + block.bytes <= kMostFreeBytes) {
      free_.push_back(block);  // expect_back() reserved space
      free_bytes_ += block.bytes;
      return;
    }
    --block_count_;
  }
  release(block);
}

void StagingPool::release(const Block& block) noexcept {
  if (process_is_exiting()) return;
  try {
    const CurrentContext current(context_);
    if (context_.api().cuMemFreeHost(block.address) == CUDA_SUCCESS) return;
  } catch (...) {  // the context is lost
  }
  if (context_.lost()) context_.release_lost_host_memory(block.address);
}

StagingPool::Block StagingPool::take_free(std::size_t keep_bytes) noexcept {
  const base::LockGuard lock(mutex_);
  if (free_bytes_ <= keep_bytes) return {};
  const Block block = free_.back();
  free_.pop_back();
  free_bytes_ -= block.bytes;
  --block_count_;
  return block;
}

void StagingPool::trim(std::size_t keep_bytes) noexcept {
  if (resources_.queue().is_deferred()) return;
  // One by one, not swapped: the list keeps the space that expect_back() reserved for blocks in use.
  for (Block block = take_free(keep_bytes); block.address != nullptr; block = take_free(keep_bytes))
    release(block);
}

}  // namespace quern::runtime
