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

/// When the addresses of memory that was released are used again.
enum class Reuse : std::uint8_t {
  soon,
  late,  ///< only where there are no others: an address kept by mistake then faults instead of reaching
         ///< others
};

/// Address space that an arena spends on protection.
struct ArenaSpacing {
  std::uint64_t guard_bytes = std::uint64_t{1} << 20;  ///< inaccessible, behind each allocation
  /// Small allocations with pages of their own. Each takes two of the 65,530 mappings that Linux grants by
  /// default.
  std::uint32_t small_blocks = 8192;
};
/// The spacing for few addresses: at most an eighth of them for small allocations.
ArenaSpacing narrow_spacing(std::uint64_t address_bytes) noexcept;

/// Kernels must not grow the arena: a running kernel uses the window's bounds from the time of its launch.
enum class MayGrow : std::uint8_t { no, yes };

/// Allocates from one part of the window against a declared total. An allocation has pages of its own,
/// inaccessible guard zones on both sides, and is decommitted when released: a kernel that accesses memory
/// outside it faults. Only if thousands of small allocations live at once do further ones share slabs (the
/// number of mappings a process may have is limited). If its free addresses are too fragmented, the arena
/// grows. Thread-safe.
class Arena {
 public:
  /// Returns at least `bytes` more addresses; an empty range if there are none.
  using Grow = std::function<Range(std::uint64_t bytes)>;

  Arena(Range range, std::uint64_t total_bytes, ArenaSpacing spacing = {}, Grow grow = nullptr);

  /// At least 256-byte aligned; null if the total is exceeded, or the system refuses the memory. `bytes` > 0.
  std::byte* allocate(std::uint64_t bytes, MayGrow may_grow = MayGrow::yes) QUERN_EXCLUDES(mutex_);
  /// `base` came from allocate() and was not released since.
  void release(std::byte* base, Reuse reuse = Reuse::soon) QUERN_EXCLUDES(mutex_);

  /// Addresses without memory, at a multiple of `alignment` (a power of two); null if there are none.
  std::byte* reserve(std::uint64_t bytes, std::uint64_t alignment) QUERN_EXCLUDES(mutex_);
  /// Counts memory that lies elsewhere against the total. False if the total is exceeded.
  bool charge(std::uint64_t bytes) QUERN_EXCLUDES(mutex_);
  void discharge(std::uint64_t bytes) QUERN_EXCLUDES(mutex_);

  /// Where an allocation lies in a file (see make_memory_file()).
  struct FilePlace {
    int descriptor = -1;  ///< the arena's; closed with the release
    std::uint64_t offset = 0;
  };
  /// Moves an allocation into a file that other processes can map, at its address and with its contents. The
  /// file holds the whole block, that is, other small allocations too. Nothing may write there meanwhile. A
  /// negative descriptor: the system refuses. `device`: see make_memory_file().
  FilePlace share(std::byte* base, std::uint32_t device) QUERN_EXCLUDES(mutex_);

  std::uint64_t total_bytes() const noexcept { return total_bytes_; }
  std::uint64_t free_bytes() QUERN_EXCLUDES(mutex_);

 private:
  struct Block {
    std::uint64_t span = 0;       ///< addresses taken, the guard zone behind included
    std::uint64_t committed = 0;  ///< bytes that are accessible and count against the total
    bool small = false;
    int descriptor = -1;  ///< of the file that holds it; -1: no other process sees it
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
  /// False: there are no more.
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
  std::deque<Addresses> retired_ QUERN_GUARDED_BY(mutex_);  ///< to be used again late; the oldest first
  std::map<std::uint64_t, Block> blocks_ QUERN_GUARDED_BY(mutex_);  ///< by offset
  std::map<std::uint64_t, Slab> slabs_ QUERN_GUARDED_BY(mutex_);    ///< by the offset of their block
};

}  // namespace quern::cpu::engine
