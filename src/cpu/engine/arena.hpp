// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/engine/window.hpp"

namespace quern::cpu::engine {

/// When the addresses of released memory are reused.
enum class Reuse : std::uint8_t {
  soon,
  late,  ///< only where there are no others: an address kept by mistake then faults instead of reaching
         ///< others
};

/// Addresses that an arena reserves for protection.
struct ArenaSpacing {
  std::uint64_t guard_bytes = std::uint64_t{1} << 20;  ///< inaccessible, after each allocation
  /// The number of small allocations that get separate pages. Each needs two of the 65,530 mappings that
  /// Linux allows by default.
  std::uint32_t small_blocks = 8192;
};
/// The spacing for few addresses: small allocations use at most an eighth of them.
ArenaSpacing narrow_spacing(std::uint64_t address_bytes) noexcept;

/// Says whether an allocation may grow the arena. Allocations by kernels must not: a running kernel uses the
/// window's bounds from the time of its launch.
enum class MayGrow : std::uint8_t { no, yes };

/// Allocates from one part of the window, up to a declared total. An allocation has separate pages with
/// inaccessible guard zones on both sides, and is decommitted when released, so a kernel that accesses memory
/// outside it faults. Only if thousands of small allocations are live do further ones share slabs (the number
/// of mappings of a process is limited). The arena grows if its free addresses are too fragmented.
/// Thread-safe.
class Arena {
 public:
  /// Returns at least `bytes` more addresses, or an empty range if there are none.
  using Grow = std::function<Range(std::uint64_t bytes)>;

  Arena(Range range, std::uint64_t total_bytes, ArenaSpacing spacing = {}, Grow grow = nullptr);

  /// Aligned to at least 256 bytes. Null if the total is exceeded or the system refuses the memory. `bytes` >
  /// 0.
  std::byte* allocate(std::uint64_t bytes, MayGrow may_grow = MayGrow::yes) QUERN_EXCLUDES(mutex_);
  /// `base` must come from allocate() and must not have been released.
  void release(std::byte* base, Reuse reuse = Reuse::soon) QUERN_EXCLUDES(mutex_);

  /// Reserves addresses without memory, at a multiple of `alignment` (a power of two). Null if there are
  /// none.
  std::byte* reserve(std::uint64_t bytes, std::uint64_t alignment) QUERN_EXCLUDES(mutex_);
  /// Counts memory outside the arena against the total. Returns false if the total is exceeded.
  bool charge(std::uint64_t bytes) QUERN_EXCLUDES(mutex_);
  void discharge(std::uint64_t bytes) QUERN_EXCLUDES(mutex_);

  /// The position of an allocation in a file (see make_memory_file()).
  struct FilePlace {
    int descriptor = -1;  ///< owned by the arena, which closes it when the allocation is released
    std::uint64_t offset = 0;
  };
  /// Moves an allocation into a file that other processes can map; its address and contents do not change.
  /// The file holds the whole block, which may contain other small allocations. Nothing may write to the
  /// block meanwhile. The descriptor is negative if the system refuses. `device`: see make_memory_file().
  FilePlace share(std::byte* base, std::uint32_t device) QUERN_EXCLUDES(mutex_);

  std::uint64_t total_bytes() const noexcept { return total_bytes_; }
  std::uint64_t free_bytes() QUERN_EXCLUDES(mutex_);

 private:
  struct Block {
    std::uint64_t span = 0;       ///< addresses used, including the guard zone after the block
    std::uint64_t committed = 0;  ///< bytes that are accessible and count against the total
    bool small = false;
    int descriptor = -1;  ///< file that holds the block; -1: no other process has access to it
  };
  /// Equal pieces of one block.
  struct Slab {
    std::uint64_t piece_bytes = 0;
    std::vector<std::uint32_t> free_pieces;
    std::uint32_t used = 0;
  };

  std::byte* allocate_block(std::uint64_t bytes, bool small, MayGrow may_grow) QUERN_REQUIRES(mutex_);
  std::uint64_t block_of(std::uint64_t offset) QUERN_REQUIRES(mutex_);
  void release_block(std::uint64_t offset, Reuse reuse) QUERN_REQUIRES(mutex_);
  std::byte* allocate_piece(std::uint64_t bytes, MayGrow may_grow) QUERN_REQUIRES(mutex_);
  bool take_addresses(std::uint64_t span, std::uint64_t alignment, std::uint64_t& offset)
      QUERN_REQUIRES(mutex_);
  bool find_addresses(std::uint64_t span, std::uint64_t alignment, std::uint64_t& offset)
      QUERN_REQUIRES(mutex_);
  /// Returns false if there are no more addresses.
  bool add_addresses(std::uint64_t span) QUERN_REQUIRES(mutex_);
  void give_addresses(std::uint64_t offset, std::uint64_t span) QUERN_REQUIRES(mutex_);

  const Range range_;
  const std::uint64_t total_bytes_;
  const ArenaSpacing spacing_;
  const Grow grow_;
  base::Mutex mutex_;
  std::uint64_t used_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint32_t small_block_count_ QUERN_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, std::uint64_t> free_addresses_ QUERN_GUARDED_BY(mutex_);  ///< offset -> span
  struct Addresses {
    std::uint64_t offset = 0;
    std::uint64_t span = 0;
  };
  std::deque<Addresses> retired_ QUERN_GUARDED_BY(mutex_);          ///< will be reused late; the oldest first
  std::map<std::uint64_t, Block> blocks_ QUERN_GUARDED_BY(mutex_);  ///< by offset
  std::map<std::uint64_t, Slab> slabs_ QUERN_GUARDED_BY(mutex_);    ///< by the offset of their block
};

}  // namespace quern::cpu::engine
