// SPDX-License-Identifier: Apache-2.0
// The structs that emitted code and the scheduler share. Emitted code reads them by offsetof; nothing else is
// shared.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace quern::cpu::engine {

/// The device window: one reserved range of virtual addresses that holds everything a kernel can name: the
/// arena of device memory, the shared and the local memory of each worker, with inaccessible gaps between. A
/// generic or global address p is valid only if p - window_base < window_bytes (unsigned); emitted code
/// replaces any other by window_base + window_bytes, which is inaccessible, so that it faults; and one that
/// is not a multiple of the access's size by window_base, around which kGapBytes are inaccessible. kGapBytes
/// of inaccessible space before, after and between the parts take every access at a checked base plus a
/// constant or a scaled 32-bit offset.
inline constexpr std::uint64_t kGapBytes = std::uint64_t{40} << 30;
/// A worker's shared memory is the start of a 4 GiB + kSharedTailBytes reservation: a 32-bit shared offset
/// needs no check.
inline constexpr std::uint64_t kSharedReservationBytes = (std::uint64_t{4} << 30) + (std::uint64_t{2} << 30);

// A compact window, for processes that may not reserve that many addresses. Emitted code (Specialisation's
// `compact`) checks the address of every lane there, 32-bit offsets and shared memory included; only
// constants up to kCompactReachBytes are added after a check, and a few hundred bytes of the access itself.

/// Before and after a compact window, and around window_base. A misaligned access of local memory lands up to
/// 32 * ir::kMaxThreadLocalBytes behind window_base.
inline constexpr std::uint64_t kCompactGapBytes = std::uint64_t{20} << 20;
inline constexpr std::uint64_t kCompactReachBytes = std::uint64_t{64} << 10;
/// The limit for offsets into a worker's shared memory; the part of it that a block cannot have is
/// inaccessible.
inline constexpr std::uint64_t kCompactSharedBytes = std::uint64_t{128} << 10;
/// Between the parts of a compact window: a checked shared offset is at most kCompactReachBytes outside, and
/// as much is added to it.
inline constexpr std::uint64_t kCompactPartGapBytes = std::uint64_t{256} << 10;
static_assert(kCompactPartGapBytes >= 3 * kCompactReachBytes);

/// One launch; read-only for emitted code, the same for all workers.
struct LaunchState {
  const std::byte* params =
      nullptr;  ///< kernel parameters at their PTX offsets, 16-byte aligned, padded by 64 bytes
  const std::uint64_t* symbols =
      nullptr;  ///< by ir::Module::symbols index: window address; for shared: offset in shared memory
  std::byte* window_base = nullptr;
  std::uint64_t window_bytes = 0;
  std::uint32_t grid[3]{1, 1, 1};
  std::uint32_t block[3]{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t total_shared_bytes = 0;
  std::uint64_t grid_id = 0;
  std::uint32_t sm_count = 1;
  std::uint32_t reserved = 0;
  /// Device memory for barriers between the blocks of a cooperative launch (%envreg1 and %envreg2, as
  /// cooperative_groups reads them); 0: not a cooperative launch.
  std::uint64_t grid_workspace = 0;
};

/// One worker; emitted code runs a block wholly on one worker.
struct WorkerState {
  std::byte* shared_base = nullptr;  ///< inside the window
  std::byte* local_base =
      nullptr;  ///< inside the window; lane l of warp w has local_stride bytes at (w * 32 + l) * local_stride
  std::uint64_t local_stride = 0;  ///< the kernel's local bytes, rounded up to 16
  std::byte* frames =
      nullptr;  ///< warp frames of a kernel with barriers: warp w at w * frame_bytes; 64-byte aligned
  std::uint32_t worker_index = 0;
  std::uint32_t reserved = 0;
  // Written by emitted code just before it calls the trap helper, for the report.
  std::uint32_t fault_location = 0;
  std::uint32_t fault_lane = 0;
  void* scheduler = nullptr;  ///< the scheduler's own; helpers hand it back
  // For reports (assert): the running block (linear, x fastest) and the warp in it. Emitted code may write
  // them; the scheduler sets them to "unknown" before each chunk.
  std::uint64_t block_index = ~std::uint64_t{0};
  std::uint32_t warp_index = ~std::uint32_t{0};
  std::uint32_t reserved2 = 0;
  // For the report of a fault: blocks of the running chunk that are not done, the running one included; the
  // warp that runs, or the first of a gang, with their number above kRunningWarpBits.
  std::uint64_t blocks_left = 0;
  std::uint32_t running_warps = ~std::uint32_t{0};
  std::uint32_t reserved3 = 0;
  void* team = nullptr;  ///< the warps of the running block, where the dispatcher runs them (warps.cpp)
};
inline constexpr unsigned kRunningWarpBits = 16;
inline constexpr std::uint32_t kRunningWarpMask = (std::uint32_t{1} << kRunningWarpBits) - 1;
inline constexpr std::uint64_t kUnknownIndex = ~std::uint64_t{0};
inline constexpr std::uint32_t kUnknownWarp = ~std::uint32_t{0};

/// Before kernel code runs: no block and no warp of it does yet.
inline void forget_running_threads(WorkerState& worker) noexcept {
  worker.block_index = kUnknownIndex;
  worker.warp_index = kUnknownWarp;
  worker.blocks_left = 0;
  worker.running_warps = kUnknownWarp;
}

/// Alignment of a lane's local memory, and of an activation's part of it.
inline constexpr std::uint64_t kLocalAlignment = 16;

/// Runs blocks first_block .. first_block + count - 1 of the grid (x fastest).
using RunBlocks = void (*)(const LaunchState*, WorkerState*, std::uint64_t first_block, std::uint64_t count);

/// Raises ir::Trap `trap` from emitted code: never returns (the scheduler unwinds the worker). Defined by the
/// scheduler.
extern "C" [[noreturn]] void quern_cpu_trap(WorkerState* worker, std::uint32_t trap);

/// %globaltimer. Does not return if the launch shall end. Defined by the scheduler.
extern "C" std::uint64_t quern_cpu_global_timer();

/// PTX bounds the time by twice the argument, and the argument by a millisecond. Does not return if the
/// launch shall end. Defined by the scheduler.
extern "C" void quern_cpu_nanosleep(std::uint32_t nanoseconds);

/// Device functions that the host carries out for one lane: ir::HostCall. `args` are the lane's arguments, 8
/// bytes each; returns the 8-byte result. May not return (assertfail). Defined by the scheduler.
extern "C" std::uint64_t quern_cpu_host_call(WorkerState* worker, const LaunchState* launch,
                                             std::uint32_t call, const std::uint64_t* args);

}  // namespace quern::cpu::engine
