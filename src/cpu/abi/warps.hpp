// SPDX-License-Identifier: Apache-2.0
// Warps whose lanes do not run in lockstep: data shared by their emitted code
// (cpu/emit/warp/dispatched_code.hpp) and the functions that it calls. Each lane has a program counter (PC),
// at which it continues. The dispatcher in the emitted code runs one block after another, each for the lanes
// whose PC it is. docs/decisions/0004-dispatcher.md gives the reasons.
#pragma once

#include <cstdint>

#include "cpu/abi/state.hpp"
#include "cpu/abi/warp_size.hpp"

namespace quern::cpu::engine {

/// A lane's PC is the rank of a block, in the order of the code, with marks in higher bits. The smallest PC
/// of the warp's lanes runs next, so marks with lower values are more urgent.
namespace lane_pc {
inline constexpr std::uint32_t kRank = (1u << 27) - 1;
/// the lane is at a warp_sync whose members have arrived
inline constexpr std::uint32_t kReleased = 1u << 27;
inline constexpr std::uint32_t kSync = 1u << 28;  ///< the block begins with a warp_sync
inline constexpr std::uint32_t kWaits =
    1u << 29;  ///< the block begins with an operation that waits for other lanes
inline constexpr std::uint32_t kSpinning =
    1u << 30;  ///< the lane took the back edge of a loop in which it may wait for others
/// the lane waits at such a block for members that have not arrived
inline constexpr std::uint32_t kAsleep = 2u << 30;
/// the lane waits at a barrier and continues there when the barrier is complete
inline constexpr std::uint32_t kAtBarrier = 3u << 30;
inline constexpr std::uint32_t kMarks = 3u << 30;
inline constexpr std::uint32_t kEnded = 0xffffffffu;
}  // namespace lane_pc

/// The head of a warp's frame. The memory for its values follows.
struct alignas(64) WarpFrame {
  std::uint32_t pc[kWarpSize];
  std::uint32_t members[kWarpSize];     ///< membermasks of the waiting lanes
  std::uint32_t true_lanes[kWarpSize];  ///< the result of a barrier_reduce, for each lane that it released
  std::uint32_t arrived_lanes[kWarpSize];
  std::uint32_t live;      ///< lanes that have not ended
  std::uint32_t turns;     ///< number of blocks run so far
  std::uint32_t rounds;    ///< number of times since the start of the step that all lanes were spinning
  std::uint32_t location;  ///< location of the last wait: an index into KernelCode::locations
};
inline constexpr std::uint32_t kWarpFrameBytes = sizeof(WarpFrame);
/// After this many turns, a lane other than the one with the least PC runs.
inline constexpr std::uint32_t kFairTurns = 256;

/// The result of a step; the numbers are not valid PCs.
enum class StepEnd : std::uint32_t {
  spinning = lane_pc::kSpinning,  ///< lanes may wait for other warps, which must run now
  /// every lane that has not ended waits at a barrier, or for lanes that wait there
  waiting = lane_pc::kAtBarrier,
  ended = lane_pc::kEnded,
};
/// Runs a warp until it ends or has to wait. Returns a StepEnd.
using StepWarp = std::uint32_t (*)(const LaunchState*, WorkerState*, WarpFrame*, std::uint32_t ctaid_x,
                                   std::uint32_t ctaid_y, std::uint32_t ctaid_z, std::uint32_t warp);

/// The code of the warps of a block: `full` warps have 32 lanes, and one more has the lanes `rest` unless
/// that is 0.
struct WarpSteps {
  StepWarp full = nullptr;
  StepWarp partial = nullptr;
  std::uint32_t full_count = 0;
  std::uint32_t rest = 0;
  std::uint32_t frame_bytes = 0;
};

extern "C" {
/// Runs one block: its warps run in turn, one step at a time. Counts the arrivals at barriers.
void quern_cpu_run_warps(const LaunchState* launch, WorkerState* worker, const WarpSteps* steps,
                         std::uint32_t ctaid_x, std::uint32_t ctaid_y, std::uint32_t ctaid_z);
/// Returns the PC to run next, if the least PC is marked or another lane must run; or a StepEnd.
std::uint32_t quern_cpu_choose_pc(WorkerState* worker, WarpFrame* frame);
/// Returns the lanes among those at `at` whose members have all arrived. The other lanes wait.
std::uint32_t quern_cpu_sync_lanes(WarpFrame* frame, std::uint32_t at, std::uint32_t location);
/// The lanes' threads have ended.
void quern_cpu_end_lanes(WarpFrame* frame, std::uint32_t lanes);
/// Records that `lanes` arrive at barrier `id` for `count` threads (0: all threads of the block), and
/// continue at `next`. `how`: a BarrierStep. `yes`: the lanes in which the predicate of a barrier_reduce is
/// true.
void quern_cpu_arrive_at_barrier(WorkerState* worker, WarpFrame* frame, std::uint32_t lanes,
                                 std::uint32_t next, std::uint32_t how, std::uint32_t id, std::uint32_t count,
                                 std::uint32_t yes, std::uint32_t location);
/// Called if the block can only wait for others. This thread runs other work, if there is any, and returns
/// when it is this block's turn again. Defined by the scheduler.
void quern_cpu_yield(WorkerState* worker);
}

enum class BarrierStep : std::uint32_t { wait, arrive };

}  // namespace quern::cpu::engine
