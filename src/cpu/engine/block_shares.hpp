// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace quern::cpu::engine {

/// Consecutive blocks of a grid that one worker runs; `count` 0: there are none.
struct Chunk {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Takes a part of the blocks from `next` to `end`: large parts first, and the last blocks one by one.
/// Workers look for a fault of another worker after each. `parts`: the blocks that are left are divided by
/// this number.
Chunk take_chunk(std::atomic<std::uint64_t>& next, std::uint64_t end, std::uint64_t parts) noexcept;

/// The blocks of a grid that no worker has taken, in as many shares as there are workers. A worker first
/// takes the blocks of the share that belongs to its processor, then those of others: so launches over the
/// same arrays find them in the caches that they left them in, and workers do not write to neighbouring
/// lines. Thread-safe.
class BlockShares {
 public:
  /// A worker that shares its blocks with nobody takes a sixteenth of them at first.
  static constexpr std::uint64_t kParts = 16;

  BlockShares(std::uint64_t blocks, std::uint32_t shares);

  /// The share with which a worker begins that runs on `processor` now: each worker another one, as long as
  /// there are any.
  std::uint32_t join(std::uint32_t processor) noexcept;
  /// Takes blocks of `share`, or, if none are left, of another share, which `share` then is.
  Chunk take(std::uint32_t& share) noexcept;
  /// True if all blocks are taken.
  bool exhausted() const noexcept { return left_.load(std::memory_order_relaxed) == 0; }

 private:
  /// On its own pair of cache lines, since processors prefetch lines in pairs.
  struct alignas(128) Share {
    std::atomic<std::uint64_t> next{0};
    std::uint64_t end = 0;
    std::atomic<bool> joined{false};
  };
  Chunk take_from(Share& share) noexcept;

  const std::uint32_t count_;
  const std::unique_ptr<Share[]> shares_;
  std::atomic<std::uint32_t> left_;  ///< shares with blocks that are not taken
};

}  // namespace quern::cpu::engine
