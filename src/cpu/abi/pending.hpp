// SPDX-License-Identifier: Apache-2.0
// Gathered updates of global memory (docs/decisions/0045-gathered-atomics.md): a worker applies the atomic
// operations of its threads to values of its own, and these to memory later, each by one locked instruction.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::cpu::engine {

struct WorkerState;

/// The operations that are gathered: any order of them gives the same value, or, of fadd, one that differs by
/// rounding.
enum class PendingOp : std::uint32_t { add, and_, or_, xor_, smin, smax, umin, umax, fadd };

/// The pending updates of the addresses [first, first + bytes): `memory` contains the operand that is still
/// to be applied to each element, or the operation's identity. Emitted code reads `first`, `bytes` and
/// `memory`.
struct PendingWindow {
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;  ///< 0: the window is closed
  std::byte* memory = nullptr;
  /// Emitted code counts: the warps gathered since the values were last applied, and the warps outside the
  /// window until it asks for another one (quern_cpu_open_pending).
  std::uint32_t hits = 0;
  std::uint32_t patience = 1;
  std::uint32_t next_patience = 1;
  PendingOp op = PendingOp::add;
  std::uint32_t element_bytes = 4;
  std::uint32_t reserved = 0;
};
/// Windows of a worker. A kernel uses one for each array and operation.
inline constexpr std::uint32_t kPendingWindows = 4;
/// The largest size of a window. `first` and `bytes` are multiples of kPendingAlignment, the size of the
/// largest access of a lane, so an access is in the window or outside.
inline constexpr std::uint64_t kPendingBytes = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kPendingAlignment = 32;

/// The addresses and the memory of a window.
struct PendingPlace {
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;      ///< 0: no window
  std::byte* memory = nullptr;  ///< kPendingBytes, aligned to cache lines
};

/// Called for a warp that updates elements between `lowest` and `highest`, outside the window. Opens or moves
/// the window if that is worthwhile.
extern "C" void quern_cpu_open_pending(WorkerState* worker, std::uint32_t window, std::uint32_t op,
                                       std::uint32_t element_bytes, std::uint64_t lowest,
                                       std::uint64_t highest);
/// Applies the pending updates of the windows in the bit set `windows`, which the kernel needs in memory now.
extern "C" void quern_cpu_apply_pending(WorkerState* worker, std::uint32_t windows);

/// Applies all pending updates. Must be called after the worker's last block of a launch.
void apply_all_pending(WorkerState& worker) noexcept;

/// Returns a window that contains the addresses from `lowest` to before `end`, if their updates may be late.
/// Defined by the scheduler.
PendingPlace place_pending(WorkerState& worker, std::uint32_t window, std::uint64_t lowest,
                           std::uint64_t end) noexcept;

}  // namespace quern::cpu::engine
