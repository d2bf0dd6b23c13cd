// SPDX-License-Identifier: Apache-2.0
// The device window: the one reservation of virtual addresses that holds all that a kernel can name (see
// abi.hpp).
//
//   gap | lead | arena of device 0 | gap | ... | pinned host memory | gap | shared of worker 0 | gap | local
//   of worker 0 | gap | ...
//
// A compact window has small gaps, and one part for the local memory of all workers:
//
//   gap | lead | arenas | pinned host memory | local memory | shared of worker 0 | gap | ... | gap
//
// Everything is inaccessible until committed. A window grows at its end, where the addresses behind it are
// free.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/thread_annotations.hpp"
#include "cpu/abi/limits.hpp"
#include "cpu/abi/state.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::engine {

struct Range {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  bool contains(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base) < bytes;
  }
};

/// Makes [base, base + bytes) readable and writable. False if the system refuses the memory. Page-aligned.
bool commit(std::byte* base, std::uint64_t bytes) noexcept;
/// Gives the pages back and makes the range inaccessible again.
void decommit(std::byte* base, std::uint64_t bytes) noexcept;

inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20;
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

/// A worker's local memory may be addressed by a 32-bit offset from any lane's base, like its shared memory.
inline constexpr std::uint64_t kLocalReservationBytes = kSharedReservationBytes;
/// Local memory of a block: 1,024 threads.
inline constexpr std::uint64_t kMaxLocalBytes = std::uint64_t{1024} * ir::kMaxThreadLocalBytes;

struct WindowLayout {
  std::uint32_t device_count = 1;
  std::uint64_t arena_bytes = 0;  ///< addresses a device; more than its memory, for guard zones
  std::uint64_t host_bytes = 0;   ///< addresses for pinned host memory
  std::uint32_t worker_count = 1;
  bool compact = false;
  std::uint64_t local_bytes = 0;  ///< compact: addresses for the local memory of all workers together
};

/// Addresses that a window of that layout takes at first.
std::uint64_t reservation_bytes(const WindowLayout& layout) noexcept;

/// Thread-safe.
class Window {
 public:
  static Expected<std::unique_ptr<Window>> reserve(const WindowLayout& layout);

  bool compact() const noexcept { return layout_.compact; }
  std::byte* base() const noexcept { return base_; }
  /// A launch that began before the window grew uses the earlier size.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_acquire); }
  std::uint64_t reserved_bytes() const noexcept { return bytes() + 2 * gap_bytes_; }
  bool contains(const void* address) const noexcept { return Range{base_, bytes()}.contains(address); }
  /// True also for the gaps before and after, where a checked base plus an offset can point.
  bool reaches(const void* address) const noexcept;
  /// True for the addresses that emitted code substitutes for misaligned ones (abi.hpp); no valid address
  /// leads there.
  bool is_misaligned_mark(const void* address) const noexcept;

  Range arena(std::uint32_t device) const noexcept;
  Range host() const noexcept;
  Range shared(std::uint32_t worker) const noexcept;
  /// The local memory of one worker; for a window that is not compact.
  Range local(std::uint32_t worker) const noexcept;
  /// The local memory of all workers; for a compact window.
  Range locals() const noexcept;

  /// Adds `bytes` addresses at the window's end, in a separate range. Empty if the addresses behind it are in
  /// use, or the process may not have more. The result is a multiple of kHugePageBytes at least that large.
  Range grow(std::uint64_t bytes) QUERN_EXCLUDES(mutex_);

 private:
  Window(std::byte* reservation, const WindowLayout& layout);

  const WindowLayout layout_;
  const std::uint64_t gap_bytes_;
  std::byte* base_ = nullptr;
  std::atomic<std::uint64_t> bytes_ = 0;
  base::Mutex mutex_;
  std::shared_ptr<void> reservation_;  ///< unmaps at the end, asking the window how much
};

}  // namespace quern::cpu::engine
