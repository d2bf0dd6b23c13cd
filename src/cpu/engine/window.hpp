// SPDX-License-Identifier: Apache-2.0
// The device window: the one reservation of virtual addresses that holds all that a kernel can name (see
// abi.hpp).
//
//   gap | lead | arena of device 0 | gap | ... | pinned host memory | gap | shared of worker 0 | gap | local
//   of worker 0 | gap | ...
//
// Everything is inaccessible until committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpu/engine/abi.hpp"
#include "cpu/ir/limits.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::engine {

struct Range {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  bool contains(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base) < bytes;
  }
};

/// Makes [base, base + bytes) readable and writable. False: the system refuses the memory. Page-aligned.
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
};

/// Immutable once made; thread-safe.
class Window {
 public:
  static Expected<std::unique_ptr<Window>> reserve(const WindowLayout& layout);

  std::byte* base() const noexcept { return base_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  bool contains(const void* address) const noexcept { return Range{base_, bytes_}.contains(address); }
  /// True also in the gaps before and after, where a checked base plus an offset can land.
  bool reaches(const void* address) const noexcept;
  /// True where emitted code sends misaligned accesses (abi.hpp), and no address that was ever valid leads.
  bool is_misaligned_mark(const void* address) const noexcept;

  Range arena(std::uint32_t device) const noexcept;
  Range host() const noexcept;
  Range shared(std::uint32_t worker) const noexcept;
  Range local(std::uint32_t worker) const noexcept;

 private:
  Window(std::byte* reservation, std::uint64_t reserved, const WindowLayout& layout);

  WindowLayout layout_;
  std::shared_ptr<void> reservation_;  ///< unmaps at the end
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace quern::cpu::engine
