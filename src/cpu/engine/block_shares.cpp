// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/block_shares.hpp"

#include <algorithm>

namespace quern::cpu::engine {

Chunk take_chunk(std::atomic<std::uint64_t>& next, std::uint64_t end, std::uint64_t parts) noexcept {
  constexpr std::uint64_t kMostBlocks = 1024;
  const std::uint64_t begin = next.load(std::memory_order_relaxed);
  if (begin >= end) return {};
  const std::uint64_t count = std::clamp<std::uint64_t>((end - begin) / parts, 1, kMostBlocks);
  const std::uint64_t first = next.fetch_add(count, std::memory_order_relaxed);
  if (first >= end) return {};
  return {first, std::min(count, end - first)};
}

BlockShares::BlockShares(std::uint64_t blocks, std::uint32_t shares)
    : count_(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 1, shares))),
      shares_(std::make_unique<Share[]>(count_)),
      left_(blocks == 0 ? 0 : count_) {
  const std::uint64_t each = blocks / count_, longer = blocks % count_;
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    shares_[i].next.store(first, std::memory_order_relaxed);
    first += each + (i < longer ? 1 : 0);
    shares_[i].end = first;
  }
}

std::uint32_t BlockShares::join(std::uint32_t processor) noexcept {
  const std::uint32_t own = processor % count_;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const std::uint32_t share = (own + i) % count_;
    if (!shares_[share].joined.exchange(true, std::memory_order_relaxed)) return share;
  }
  return own;
}

Chunk BlockShares::take(std::uint32_t& share) noexcept {
  for (std::uint32_t i = 0; i < count_ && !exhausted(); ++i) {
    const std::uint32_t from = (share + i) % count_;
    const Chunk chunk = take_from(shares_[from]);
    if (chunk.count == 0) continue;
    share = from;
    return chunk;
  }
  return {};
}

Chunk BlockShares::take_from(Share& share) noexcept {
  const Chunk chunk = take_chunk(share.next, share.end, kParts);
  if (chunk.count > 0 && chunk.first + chunk.count == share.end)
    left_.fetch_sub(1, std::memory_order_relaxed);
  return chunk;
}

}  // namespace quern::cpu::engine
