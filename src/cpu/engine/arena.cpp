// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "base/held_signal.hpp"
#include "cpu/engine/backing.hpp"

namespace quern::cpu::engine {
namespace {

constexpr std::uint64_t kNarrowGuardBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kSmallBytes = 16384;
/// An arena that grows requests at least this many addresses.
constexpr std::uint64_t kGrowthBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kSlabBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMinPieceBytes = 256;

/// Returns false if the file cannot hold the bytes.
bool write_all(int descriptor, const std::byte* from, std::uint64_t bytes) noexcept {
  const base::HeldSignal quiet(SIGXFSZ);
  for (std::uint64_t done = 0; done < bytes;) {
    const ::ssize_t count = ::pwrite(descriptor, from + done, bytes - done, static_cast<off_t>(done));
    if (count <= 0) return false;
    done += static_cast<std::uint64_t>(count);
  }
  return true;
}

}  // namespace

ArenaSpacing narrow_spacing(std::uint64_t address_bytes) noexcept {
  ArenaSpacing spacing;
  spacing.guard_bytes = kNarrowGuardBytes;
  const std::uint64_t blocks = address_bytes / 8 / (kSmallBytes + kNarrowGuardBytes);
  spacing.small_blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(spacing.small_blocks, blocks));
  return spacing;
}

Arena::Arena(Range range, std::uint64_t total_bytes, ArenaSpacing spacing, Grow grow)
    : range_(range), total_bytes_(total_bytes), spacing_(spacing), grow_(std::move(grow)) {
  free_addresses_.emplace(0, range.bytes);
}

std::byte* Arena::allocate(std::uint64_t bytes, MayGrow may_grow) {
  if (bytes > total_bytes_) return nullptr;
  const base::LockGuard lock(mutex_);
  const bool small = bytes <= kSmallBytes;
  if (small && small_block_count_ >= spacing_.small_blocks) return allocate_piece(bytes, may_grow);
  return allocate_block(bytes, small, may_grow);
}

std::uint64_t Arena::free_bytes() {
  const base::LockGuard lock(mutex_);
  return total_bytes_ - used_bytes_;
}

std::byte* Arena::allocate_block(std::uint64_t bytes, bool small, MayGrow may_grow) {
  const std::uint64_t committed = round_up(bytes, kPageBytes);
  if (committed > total_bytes_ - used_bytes_) return nullptr;
  const std::uint64_t alignment = committed >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  const std::uint64_t span = committed + spacing_.guard_bytes;
  std::uint64_t offset = 0;
  if (!take_addresses(span, alignment, offset)) {
    if (may_grow == MayGrow::no || !add_addresses(span + alignment)) return nullptr;
    if (!take_addresses(span, alignment, offset)) return nullptr;
  }
  if (!commit(range_.base + offset, committed)) {
    give_addresses(offset, span);
    return nullptr;
  }
  blocks_.emplace(offset, Block{span, committed, small});
  used_bytes_ += committed;
  if (small) ++small_block_count_;
  return range_.base + offset;
}

std::byte* Arena::allocate_piece(std::uint64_t bytes, MayGrow may_grow) {
  const std::uint64_t piece_bytes = std::max(std::bit_ceil(bytes), kMinPieceBytes);
  auto slab = std::find_if(slabs_.begin(), slabs_.end(), [&](const auto& entry) {
    return entry.second.piece_bytes == piece_bytes && !entry.second.free_pieces.empty();
  });
  if (slab == slabs_.end()) {
    std::byte* base = allocate_block(kSlabBytes, false, may_grow);
    if (base == nullptr) return nullptr;
    slab = slabs_.emplace(static_cast<std::uint64_t>(base - range_.base), Slab{}).first;
    slab->second.piece_bytes = piece_bytes;
    for (auto piece = static_cast<std::uint32_t>(kSlabBytes / piece_bytes); piece-- > 0;)
      slab->second.free_pieces.push_back(piece);
  }
  const std::uint32_t piece = slab->second.free_pieces.back();
  slab->second.free_pieces.pop_back();
  ++slab->second.used;
  return range_.base + slab->first + piece * piece_bytes;
}

std::byte* Arena::reserve(std::uint64_t bytes, std::uint64_t alignment) {
  const base::LockGuard lock(mutex_);
  alignment = std::max(alignment, kPageBytes);
  std::uint64_t offset = 0, span = 0;
  if (__builtin_add_overflow(bytes, spacing_.guard_bytes, &span) || span > UINT64_MAX / 4 - alignment)
    return nullptr;
  if (!take_addresses(span, alignment, offset) &&
      (!add_addresses(span + alignment) || !take_addresses(span, alignment, offset)))
    return nullptr;
  blocks_.emplace(offset, Block{span, 0, false});
  return range_.base + offset;
}

bool Arena::charge(std::uint64_t bytes) {
  const base::LockGuard lock(mutex_);
  if (bytes > total_bytes_ - used_bytes_) return false;
  used_bytes_ += bytes;
  return true;
}

void Arena::discharge(std::uint64_t bytes) {
  const base::LockGuard lock(mutex_);
  used_bytes_ -= bytes;
}

std::uint64_t Arena::block_of(std::uint64_t offset) {
  auto slab = slabs_.upper_bound(offset);
  if (slab == slabs_.begin()) return offset;
  --slab;
  return offset - slab->first < kSlabBytes ? slab->first : offset;
}

Arena::FilePlace Arena::share(std::byte* base, std::uint32_t device) {
  const auto offset = static_cast<std::uint64_t>(base - range_.base);
  const base::LockGuard lock(mutex_);
  const std::uint64_t start = block_of(offset);
  const auto found = blocks_.find(start);
  if (found == blocks_.end()) return {};
  Block& block = found->second;
  if (block.descriptor >= 0) return {block.descriptor, offset - start};
  const int descriptor = make_memory_file(block.committed, device);
  if (descriptor < 0) return {};
  std::byte* const at = range_.base + start;
  if (!write_all(descriptor, at, block.committed) ||
      ::mmap(at, block.committed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, descriptor,
             0) == MAP_FAILED) {
    ::close(descriptor);
    return {};
  }
  block.descriptor = descriptor;
  return {descriptor, offset - start};
}

void Arena::release(std::byte* base, Reuse reuse) {
  const auto offset = static_cast<std::uint64_t>(base - range_.base);
  const base::LockGuard lock(mutex_);
  auto slab = slabs_.upper_bound(offset);
  if (slab != slabs_.begin()) {
    --slab;
    if (offset - slab->first < kSlabBytes) {
      slab->second.free_pieces.push_back(
          static_cast<std::uint32_t>((offset - slab->first) / slab->second.piece_bytes));
      if (--slab->second.used != 0) return;
      release_block(slab->first, reuse);
      slabs_.erase(slab);
      return;
    }
  }
  release_block(offset, reuse);
}

void Arena::release_block(std::uint64_t offset, Reuse reuse) {
  const auto block = blocks_.find(offset);
  if (block == blocks_.end()) return;
  if (block->second.committed != 0) decommit(range_.base + offset, block->second.committed);
  if (block->second.descriptor >= 0) ::close(block->second.descriptor);
  used_bytes_ -= block->second.committed;
  if (block->second.small) --small_block_count_;
  if (reuse == Reuse::late)
    retired_.push_back({offset, block->second.span});
  else
    give_addresses(offset, block->second.span);
  blocks_.erase(block);
}

bool Arena::take_addresses(std::uint64_t span, std::uint64_t alignment, std::uint64_t& offset) {
  while (!find_addresses(span, alignment, offset)) {
    if (retired_.empty()) return false;
    const Addresses oldest = retired_.front();
    retired_.pop_front();
    give_addresses(oldest.offset, oldest.span);
  }
  return true;
}

bool Arena::find_addresses(std::uint64_t span, std::uint64_t alignment, std::uint64_t& offset) {
  for (auto range = free_addresses_.begin(); range != free_addresses_.end(); ++range) {
    const auto [start, size] = *range;
    const auto base = reinterpret_cast<std::uintptr_t>(range_.base);
    offset = round_up(base + start, alignment) - base;
    if (offset - start > size || size - (offset - start) < span) continue;
    free_addresses_.erase(range);
    if (offset != start) free_addresses_.emplace(start, offset - start);
    const std::uint64_t end = offset + span;
    if (end != start + size) free_addresses_.emplace(end, start + size - end);
    return true;
  }
  return false;
}

bool Arena::add_addresses(std::uint64_t span) {
  if (!grow_) return false;
  Range more = grow_(std::max(span, kGrowthBytes));
  if (more.bytes == 0) more = grow_(span);
  if (more.bytes == 0) return false;
  give_addresses(static_cast<std::uint64_t>(more.base - range_.base), more.bytes);
  return true;
}

void Arena::give_addresses(std::uint64_t offset, std::uint64_t span) {
  auto next = free_addresses_.lower_bound(offset);
  if (next != free_addresses_.end() && offset + span == next->first) {
    span += next->second;
    next = free_addresses_.erase(next);
  }
  if (next != free_addresses_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += span;
      return;
    }
  }
  free_addresses_.emplace(offset, span);
}

}  // namespace quern::cpu::engine
