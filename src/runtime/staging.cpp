// SPDX-License-Identifier: Apache-2.0
#include "runtime/staging.hpp"

#include <algorithm>
#include <bit>

#include "runtime/context.hpp"
#include "runtime/exit.hpp"

namespace quern::runtime {
namespace {

constexpr std::size_t kSmallestBlock = 4096;
constexpr std::size_t kMostFreeBytes = std::size_t{64} << 20;

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
  context_.reap();
  Block block = find_free(size);
  if (block.address == nullptr) {
    const CurrentContext current(context_);
    void* address = nullptr;
    context_.allocate_with_retry(
        [&] { return context_.api().cuMemHostAlloc(&address, size, CU_MEMHOSTALLOC_PORTABLE); },
        "cuMemHostAlloc", size, "page-locked memory for a queued copy");
    block = {static_cast<std::byte*>(address), size};
  }
  return {block.address, [this, block](std::byte*) { give_back(block); }};
}

void StagingPool::give_back(const Block& block) noexcept {
  {
    const base::LockGuard lock(mutex_);
    if (free_bytes_ + block.bytes <= kMostFreeBytes) {
      free_.push_back(block);  // a failure to remember it ends the program, as noexcept says: 16 bytes
      free_bytes_ += block.bytes;
      return;
    }
  }
  release(block);
}

void StagingPool::release(const Block& block) noexcept {
  if (process_is_exiting() || context_.lost()) return;
  try {
    const CurrentContext current(context_);
    context_.api().cuMemFreeHost(block.address);
  } catch (...) {  // the context is gone, and the memory with it
  }
}

void StagingPool::trim() noexcept {
  std::vector<Block> blocks;
  {
    const base::LockGuard lock(mutex_);
    blocks.swap(free_);
    free_bytes_ = 0;
  }
  for (const Block& block : blocks) release(block);
}

}  // namespace quern::runtime
