// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/window.hpp"

#include "cpu/abi/warp_size.hpp"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace quern::cpu::engine {
namespace {

/// The properties that differ between the two kinds of window.
struct Geometry {
  std::uint64_t gap_bytes;       ///< before, after, and around window_base
  std::uint64_t part_gap_bytes;  ///< between the parts
  /// Nothing is allocated this close to window_base. For adjacent lanes only the first one's address is
  /// checked. If that lane does not run, its address may be before an array that the others access, so 4 GiB
  /// (compact: kCompactReachBytes) are reserved for that. The rest separates misaligned accesses, at
  /// window_base and a gap around it, from accesses that miss the first array by a gap.
  std::uint64_t lead_bytes;
  std::uint64_t shared_bytes;
};
constexpr Geometry kWide{.gap_bytes = kGapBytes,
                         .part_gap_bytes = kGapBytes,
                         .lead_bytes = 2 * kGapBytes + (std::uint64_t{4} << 30),
                         .shared_bytes = kSharedReservationBytes};
constexpr Geometry kCompact{.gap_bytes = kCompactGapBytes,
                            .part_gap_bytes = kCompactPartGapBytes,
                            .lead_bytes = 2 * kCompactGapBytes + kHugePageBytes,
                            .shared_bytes = kCompactSharedBytes};
static_assert(kCompactReachBytes <= kHugePageBytes);
static_assert(kWarpSize * std::uint64_t{ir::kMaxThreadLocalBytes} + kHugePageBytes < kCompactGapBytes);

const Geometry& geometry(const WindowLayout& layout) noexcept { return layout.compact ? kCompact : kWide; }

/// Offsets of the parts from window_base (which follows the first gap).
std::uint64_t arena_offset(const WindowLayout& layout, std::uint32_t device) noexcept {
  const Geometry& is = geometry(layout);
  return is.lead_bytes + device * round_up(layout.arena_bytes + is.part_gap_bytes, kHugePageBytes);
}
std::uint64_t host_offset(const WindowLayout& layout) noexcept {
  return arena_offset(layout, layout.device_count);
}
std::uint64_t locals_offset(const WindowLayout& layout) noexcept {
  return host_offset(layout) + layout.host_bytes + geometry(layout).part_gap_bytes;
}
std::uint64_t worker_offset(const WindowLayout& layout, std::uint32_t worker) noexcept {
  const Geometry& is = geometry(layout);
  const std::uint64_t first =
      locals_offset(layout) + (layout.compact ? layout.local_bytes + is.part_gap_bytes : 0);
  const std::uint64_t local = layout.compact ? 0 : kLocalReservationBytes + is.part_gap_bytes;
  return first + worker * (is.shared_bytes + is.part_gap_bytes + local);
}
/// A multiple of the size of huge pages if the window may grow.
std::uint64_t window_bytes(const WindowLayout& layout) noexcept {
  return round_up(worker_offset(layout, layout.worker_count) - geometry(layout).part_gap_bytes,
                  kHugePageBytes);
}

WindowLayout rounded(const WindowLayout& asked) noexcept {
  WindowLayout layout = asked;
  layout.arena_bytes = round_up(layout.arena_bytes, kHugePageBytes);
  layout.host_bytes = round_up(layout.host_bytes, kHugePageBytes);
  layout.local_bytes = round_up(layout.local_bytes, kHugePageBytes);
  return layout;
}

constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// An address range that the system usually leaves free, so that a window can grow: between 32 and 48 TiB, at
/// a different address in each process. The system treats it as a hint.
void* wished_address() noexcept {
  constexpr std::uint64_t kFirst = std::uint64_t{32} << 40, kStep = std::uint64_t{16} << 30, kSteps = 1024;
  std::uint64_t random = 0;
  if (const auto* const bytes = reinterpret_cast<const void*>(::getauxval(AT_RANDOM)))
    std::memcpy(&random, bytes, sizeof random);
  return reinterpret_cast<void*>(kFirst + random % kSteps * kStep);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

bool commit(std::byte* base, std::uint64_t bytes) noexcept {
  if (::mprotect(base, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  if (bytes >= kHugePageBytes) ::madvise(base, bytes, MADV_HUGEPAGE);
  return true;
}

void decommit(std::byte* base, std::uint64_t bytes) noexcept {
  // One call removes the pages, the protection and the advice, and lets the system merge the mappings.
  ::mmap(base, bytes, PROT_NONE, kFlags | MAP_FIXED, -1, 0);
}

std::uint64_t reservation_bytes(const WindowLayout& layout) noexcept {
  return window_bytes(rounded(layout)) + 2 * geometry(layout).gap_bytes + kHugePageBytes;
}

Window::Window(std::byte* reservation, const WindowLayout& layout)
    : layout_(layout),
      gap_bytes_(geometry(layout).gap_bytes),
      base_(reservation + gap_bytes_),
      bytes_(window_bytes(layout)),
      reservation_(reservation, [this](void* start) { ::munmap(start, reserved_bytes()); }) {}

Expected<std::unique_ptr<Window>> Window::reserve(const WindowLayout& asked) {
  const WindowLayout layout = rounded(asked);
  const std::uint64_t bytes = reservation_bytes(layout);
  void* start = ::mmap(wished_address(), bytes, PROT_NONE, kFlags, -1, 0);
  if (start == MAP_FAILED) {
    Diagnostic diagnostic;
    diagnostic.code = "address-space";
    diagnostic.message = fmt::format("cannot reserve {} MiB of addresses for the CPU device: {}", bytes >> 20,
                                     std::strerror(errno));
    diagnostic.hint = "raise `ulimit -v`, or lower QUERN_CPU_WORKERS or QUERN_CPU_MEMORY";
    return diagnostic;
  }
  // The operating system aligns to pages; arenas start at huge pages. Gaps and leads are multiples of huge
  // pages. The unused rest is unmapped.
  const std::uint64_t misaligned = reinterpret_cast<std::uintptr_t>(start) % kHugePageBytes;
  const std::uint64_t before = misaligned == 0 ? 0 : kHugePageBytes - misaligned;
  std::byte* const aligned = static_cast<std::byte*>(start) + before;
  if (before != 0) ::munmap(start, before);
  ::munmap(aligned + bytes - kHugePageBytes, kHugePageBytes - before);
  return std::unique_ptr<Window>(new Window(aligned, layout));
}

Range Window::grow(std::uint64_t bytes) {
  const base::LockGuard lock(mutex_);
  const std::uint64_t apart = round_up(geometry(layout_).part_gap_bytes, kHugePageBytes);
  const std::uint64_t usable = round_up(bytes, kHugePageBytes);
  std::byte* const old_end = base_ + this->bytes();
  std::byte* const behind = old_end + gap_bytes_;
#if defined(MAP_FIXED_NOREPLACE)
  constexpr int kOnlyThere = MAP_FIXED_NOREPLACE;
#else
  constexpr int kOnlyThere = 0;
#endif
  void* const got = ::mmap(behind, apart + usable, PROT_NONE, kFlags | kOnlyThere, -1, 0);
  if (got == MAP_FAILED) return {};
  if (got != behind) {  // older Linux kernels treat the address as a hint
    ::munmap(got, apart + usable);
    return {};
  }
  bytes_.fetch_add(apart + usable, std::memory_order_release);
  return {old_end + apart, usable};
}

bool Window::reaches(const void* address) const noexcept {
  return Range{base_ - gap_bytes_, reserved_bytes()}.contains(address);
}

bool Window::is_misaligned_mark(const void* address) const noexcept {
  return Range{base_ - gap_bytes_, 2 * gap_bytes_}.contains(address);
}

Range Window::arena(std::uint32_t device) const noexcept {
  return {base_ + arena_offset(layout_, device), layout_.arena_bytes};
}
Range Window::host() const noexcept { return {base_ + host_offset(layout_), layout_.host_bytes}; }
Range Window::shared(std::uint32_t worker) const noexcept {
  return {base_ + worker_offset(layout_, worker), geometry(layout_).shared_bytes};
}
Range Window::local(std::uint32_t worker) const noexcept {
  return {shared(worker).base + kSharedReservationBytes + kGapBytes, kLocalReservationBytes};
}
Range Window::locals() const noexcept { return {base_ + locals_offset(layout_), layout_.local_bytes}; }

}  // namespace quern::cpu::engine
