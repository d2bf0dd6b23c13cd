// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/window.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace quern::cpu::engine {
namespace {

/// Nothing lies this near to window_base. Of lanes that are next to each other the first one's address is
/// checked, and where that lane does not run it may lie before an array that the others are inside of: 4 GiB
/// are for that. The rest keeps misaligned accesses, at window_base and a gap around it, apart from those
/// that miss the first array by a gap.
constexpr std::uint64_t kLeadBytes = 2 * kGapBytes + (std::uint64_t{4} << 30);

/// Where the parts lie, counted from window_base (which follows the first gap).
std::uint64_t arena_offset(const WindowLayout& layout, std::uint32_t device) noexcept {
  return kLeadBytes + device * (layout.arena_bytes + kGapBytes);
}
std::uint64_t host_offset(const WindowLayout& layout) noexcept {
  return arena_offset(layout, layout.device_count);
}
std::uint64_t worker_offset(const WindowLayout& layout, std::uint32_t worker) noexcept {
  return host_offset(layout) + layout.host_bytes + kGapBytes +
         worker * (kSharedReservationBytes + kGapBytes + kLocalReservationBytes + kGapBytes);
}

}  // namespace

bool commit(std::byte* base, std::uint64_t bytes) noexcept {
  if (::mprotect(base, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  if (bytes >= kHugePageBytes) ::madvise(base, bytes, MADV_HUGEPAGE);
  return true;
}

void decommit(std::byte* base, std::uint64_t bytes) noexcept {
  // One call drops the pages, the protection and the advice, and lets the kernel merge the mappings again.
  ::mmap(base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

Window::Window(std::byte* reservation, std::uint64_t reserved, const WindowLayout& layout)
    : layout_(layout),
      reservation_(reservation, [reserved](void* start) { ::munmap(start, reserved); }),
      base_(reservation + kGapBytes),
      bytes_(worker_offset(layout, layout.worker_count) - kGapBytes) {}

Expected<std::unique_ptr<Window>> Window::reserve(const WindowLayout& asked) {
  WindowLayout layout = asked;
  layout.arena_bytes = round_up(layout.arena_bytes, kHugePageBytes);
  layout.host_bytes = round_up(layout.host_bytes, kHugePageBytes);
  const std::uint64_t bytes = kGapBytes + worker_offset(layout, layout.worker_count) + kHugePageBytes;
  void* start = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    Diagnostic diagnostic;
    diagnostic.code = "address-space";
    diagnostic.message = fmt::format("cannot reserve {} GiB of addresses for the CPU device: {}", bytes >> 30,
                                     std::strerror(errno));
    diagnostic.hint = "raise `ulimit -v`, or lower QUERN_CPU_WORKERS or QUERN_CPU_MEMORY";
    return diagnostic;
  }
  // The kernel aligns to pages; arenas start at huge pages. kGapBytes and kLeadBytes are multiples of one.
  const std::uint64_t misaligned = reinterpret_cast<std::uintptr_t>(start) % kHugePageBytes;
  std::byte* aligned = static_cast<std::byte*>(start) + (misaligned == 0 ? 0 : kHugePageBytes - misaligned);
  if (aligned != start) ::munmap(start, static_cast<std::size_t>(aligned - static_cast<std::byte*>(start)));
  const std::uint64_t kept = bytes - static_cast<std::uint64_t>(aligned - static_cast<std::byte*>(start));
  return std::unique_ptr<Window>(new Window(aligned, kept, layout));
}

bool Window::reaches(const void* address) const noexcept {
  return Range{base_ - kGapBytes, bytes_ + 2 * kGapBytes}.contains(address);
}

bool Window::is_misaligned_mark(const void* address) const noexcept {
  return Range{base_ - kGapBytes, 2 * kGapBytes}.contains(address);
}

Range Window::arena(std::uint32_t device) const noexcept {
  return {base_ + arena_offset(layout_, device), layout_.arena_bytes};
}
Range Window::host() const noexcept { return {base_ + host_offset(layout_), layout_.host_bytes}; }
Range Window::shared(std::uint32_t worker) const noexcept {
  return {base_ + worker_offset(layout_, worker), kSharedReservationBytes};
}
Range Window::local(std::uint32_t worker) const noexcept {
  return {base_ + worker_offset(layout_, worker) + kSharedReservationBytes + kGapBytes,
          kLocalReservationBytes};
}

}  // namespace quern::cpu::engine
