// SPDX-License-Identifier: Apache-2.0
// The structs that emitted code and the scheduler share. Emitted code reads them by offsetof.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cpu/abi/bias.hpp"
#include "cpu/abi/pending.hpp"

namespace quern::cpu::engine {

/// The device window: one reserved range of virtual addresses that holds everything a kernel can access: the
/// arena of device memory, and the shared and local memory of each worker, with inaccessible gaps between
/// them. A generic or global address p is valid only if p - window_base < window_bytes (unsigned). Emitted
/// code replaces any other address by window_base + window_bytes, which is inaccessible, so that the access
/// faults. It replaces an address that is not a multiple of the access's size by window_base, around which
/// kGapBytes are inaccessible. There are kGapBytes of inaccessible space before, after and between the parts:
/// every access at a checked base plus a constant or a scaled 32-bit offset stays in the part or its gaps.
inline constexpr std::uint64_t kGapBytes = std::uint64_t{40} << 30;
/// A worker's shared memory is at the start of a reservation of 4 GiB + kSharedTailBytes, so a 32-bit shared
/// offset needs no check.
inline constexpr std::uint64_t kSharedReservationBytes = (std::uint64_t{4} << 30) + (std::uint64_t{2} << 30);

// A compact window, for processes that cannot reserve that many addresses. There, emitted code
// (Specialisation::compact) checks the address of every lane, including 32-bit offsets and shared memory.
// Only constants up to kCompactReachBytes, and a few hundred bytes of the access itself, are added after a
// check.

/// The gaps before and after a compact window, and around window_base. A misaligned access of local memory is
/// replaced by an address up to 32 * ir::kMaxThreadLocalBytes after window_base.
inline constexpr std::uint64_t kCompactGapBytes = std::uint64_t{20} << 20;
inline constexpr std::uint64_t kCompactReachBytes = std::uint64_t{64} << 10;
/// The limit for offsets into a worker's shared memory. The part that a block cannot use is inaccessible.
inline constexpr std::uint64_t kCompactSharedBytes = std::uint64_t{128} << 10;
/// The gaps between the parts of a compact window. A checked shared offset is at most kCompactReachBytes
/// outside, and at most kCompactReachBytes are added to it.
inline constexpr std::uint64_t kCompactPartGapBytes = std::uint64_t{256} << 10;
static_assert(kCompactPartGapBytes >= 3 * kCompactReachBytes);

/// The state of one launch; read-only for emitted code, the same for all workers.
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
  /// Device memory for barriers between the blocks of a cooperative launch; cooperative_groups reads its
  /// address from %envreg1 and %envreg2. 0: the launch is not cooperative.
  std::uint64_t grid_workspace = 0;
  /// Of CodeFacts::streamed, the parameters whose arrays are too large for the caches.
  std::uint64_t streams = 0;
};

inline constexpr unsigned kUntestedSlots = 32;

/// The state of one worker. A block runs entirely on one worker.
struct WorkerState {
  std::byte* shared_base = nullptr;  ///< inside the window
  std::byte* local_base =
      nullptr;  ///< inside the window; lane l of warp w has local_stride bytes at (w * 32 + l) * local_stride
  std::uint64_t local_stride = 0;  ///< the kernel's local bytes, rounded up to 16
  std::byte* frames =
      nullptr;  ///< warp frames of a kernel with barriers: warp w at w * frame_bytes; 64-byte aligned
  std::uint32_t worker_index = 0;
  std::uint32_t reserved = 0;
  // Emitted code writes these just before it calls the trap helper, for the report.
  std::uint32_t fault_location = 0;
  std::uint32_t fault_lane = 0;
  void* scheduler = nullptr;  ///< data of the scheduler; helpers pass it back
  // For reports (assert): the running block (linear, x fastest) and the running warp in it. Emitted code may
  // write them. The scheduler sets them to "unknown" before each chunk.
  std::uint64_t block_index = ~std::uint64_t{0};
  std::uint32_t warp_index = ~std::uint32_t{0};
  std::uint32_t reserved2 = 0;
  // For the report of a fault: the number of blocks of the current chunk that are not complete, including the
  // running one; and the running warp, or the first one of a gang, with the number of warps above
  // kRunningWarpBits.
  std::uint64_t blocks_left = 0;
  std::uint32_t running_warps = ~std::uint32_t{0};
  std::uint32_t reserved3 = 0;
  void* team = nullptr;  ///< the warps of the running block if the dispatcher runs them (warps.cpp)
  BiasView bias;
  PendingWindow pending[kPendingWindows];
  /// Counts the executions for which a store does not test whether its lanes write neighbours. The index is
  /// the number of the store's address modulo kUntestedSlots. Any value gives right results.
  std::uint8_t untested[kUntestedSlots] = {};
};
inline constexpr unsigned kRunningWarpBits = 16;
inline constexpr std::uint32_t kRunningWarpMask = (std::uint32_t{1} << kRunningWarpBits) - 1;
inline constexpr std::uint64_t kUnknownIndex = ~std::uint64_t{0};
inline constexpr std::uint32_t kUnknownWarp = ~std::uint32_t{0};

/// Called before kernel code runs: no block or warp is running yet.
inline void forget_running_threads(WorkerState& worker) noexcept {
  worker.block_index = kUnknownIndex;
  worker.warp_index = kUnknownWarp;
  worker.blocks_left = 0;
  worker.running_warps = kUnknownWarp;
}

/// Alignment of a lane's local memory, and of the part of an activation.
inline constexpr std::uint64_t kLocalAlignment = 16;

/// Runs blocks first_block .. first_block + count - 1 of the grid (x fastest).
using RunBlocks = void (*)(const LaunchState*, WorkerState*, std::uint64_t first_block, std::uint64_t count);

/// Raises ir::Trap `trap` from emitted code. Does not return: the scheduler leaves the kernel's code. Defined
/// by the scheduler.
extern "C" [[noreturn]] void quern_cpu_trap(WorkerState* worker, std::uint32_t trap);

/// Returns %globaltimer. Does not return if the launch must end. Defined by the scheduler.
extern "C" std::uint64_t quern_cpu_global_timer();

/// Sleeps. PTX limits the time to twice the argument, and the argument to a millisecond. Does not return if
/// the launch must end. Defined by the scheduler.
extern "C" void quern_cpu_nanosleep(std::uint32_t nanoseconds);

/// Executes a device function on the host for one lane (ir::HostCall). `args` are the lane's arguments, 8
/// bytes each; the result has 8 bytes. May not return (assertfail). Defined by the scheduler.
extern "C" std::uint64_t quern_cpu_host_call(WorkerState* worker, const LaunchState* launch,
                                             std::uint32_t call, const std::uint64_t* args);

}  // namespace quern::cpu::engine
