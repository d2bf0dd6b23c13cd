// SPDX-License-Identifier: Apache-2.0
// The device window: the one reservation of virtual addresses that contains everything a kernel can access
// (see abi/state.hpp).
//
//   gap | lead | arena of device 0 | gap | ... | pinned host memory | gap | shared of worker 0 | gap | local
//   of worker 0 | gap | ...
//
// A compact window has small gaps, and one part for the local memory of all workers:
//
//   gap | lead | arenas | pinned host memory | local memory | shared of worker 0 | gap | ... | gap
//
// Everything is inaccessible until committed. A window grows at its end if the addresses after it are free.
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

/// Makes [base, base + bytes) readable and writable. Returns false if the system refuses. Page-aligned.
bool commit(std::byte* base, std::uint64_t bytes) noexcept;
/// Returns the pages to the system and makes the range inaccessible again.
void decommit(std::byte* base, std::uint64_t bytes) noexcept;

inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20;
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

/// A worker's local memory may be addressed by a 32-bit offset from any lane's base, like its shared memory.
inline constexpr std::uint64_t kLocalReservationBytes = kSharedReservationBytes;
/// Local memory of a block of 1,024 threads.
inline constexpr std::uint64_t kMaxLocalBytes = std::uint64_t{1024} * ir::kMaxThreadLocalBytes;

struct WindowLayout {
  std::uint32_t device_count = 1;
  std::uint64_t arena_bytes = 0;  ///< addresses for each device; more than its memory, because of guard zones
  std::uint64_t host_bytes = 0;   ///< addresses for pinned host memory
  std::uint32_t worker_count = 1;
  bool compact = false;
  std::uint64_t local_bytes = 0;  ///< compact window: addresses for the local memory of all workers together
};

/// The addresses that a window with that layout reserves at first.
std::uint64_t reservation_bytes(const WindowLayout& layout) noexcept;

/// See the top of this file. Thread-safe.
class Window {
 public:
  static Expected<std::unique_ptr<Window>> reserve(const WindowLayout& layout);

  bool compact() const noexcept { return layout_.compact; }
  std::byte* base() const noexcept { return base_; }
  /// A launch that started before the window grew uses the earlier size.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_acquire); }
  std::uint64_t reserved_bytes() const noexcept { return bytes() + 2 * gap_bytes_; }
  bool contains(const void* address) const noexcept { return Range{base_, bytes()}.contains(address); }
  /// True also in the gaps before and after the window, where a checked base plus an offset can point.
  bool reaches(const void* address) const noexcept;
  /// True for the addresses by which emitted code replaces misaligned ones (abi/state.hpp). No valid address
  /// leads there.
  bool is_misaligned_mark(const void* address) const noexcept;

  Range arena(std::uint32_t device) const noexcept;
  Range host() const noexcept;
  Range shared(std::uint32_t worker) const noexcept;
  /// The local memory of one worker, in a window that is not compact.
  Range local(std::uint32_t worker) const noexcept;
  /// The local memory of all workers, in a compact window.
  Range locals() const noexcept;

  /// Adds `bytes` addresses at the window's end, as a separate range. Empty if the addresses after the window
  /// are in use, or the process cannot map more. The size of the result is a multiple of kHugePageBytes and
  /// at least `bytes`.
  Range grow(std::uint64_t bytes) QUERN_EXCLUDES(mutex_);

 private:
  Window(std::byte* reservation, const WindowLayout& layout);

  const WindowLayout layout_;
  const std::uint64_t gap_bytes_;
  std::byte* base_ = nullptr;
  std::atomic<std::uint64_t> bytes_ = 0;
  base::Mutex mutex_;
  std::shared_ptr<void> reservation_;  ///< unmaps the window at the end, with its size at that time
};

}  // namespace quern::cpu::engine
