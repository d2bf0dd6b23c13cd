// SPDX-License-Identifier: Apache-2.0
// Schedules the lanes of a warp and the warps of a block: turns and barriers. No object with a destructor is
// alive while a step runs or quern_cpu_yield is called, since ending a launch does not run destructors.
#include "cpu/abi/warps.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

#include "cpu/abi/facts.hpp"
#include "cpu/abi/limits.hpp"
#include "cpu/abi/warp_size.hpp"

namespace quern::cpu::engine {
namespace {

constexpr std::uint32_t kMaxWarps = 32;
/// All lanes may spin for this many rounds before other warps run.
constexpr std::uint32_t kRoundsInStep = 32;
/// The largest number of turns in a step, for loops of any kind.
constexpr std::uint32_t kTurnsInStep = 1u << 16;

std::uint32_t bit(std::uint32_t lane) { return 1u << lane; }

template <class Function>
void for_each_lane(std::uint32_t lanes, const Function& function) {
  for (; lanes != 0; lanes &= lanes - 1) function(static_cast<std::uint32_t>(std::countr_zero(lanes)));
}

template <class Predicate>
std::uint32_t lanes_where(const WarpFrame& frame, const Predicate& predicate) {
  std::uint32_t lanes = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
    if (predicate(frame.pc[lane])) lanes |= bit(lane);
  return lanes;
}

bool marked(std::uint32_t at, std::uint32_t mark) {
  return at != lane_pc::kEnded && (at & lane_pc::kMarks) == mark;
}

// --- barriers

/// A barrier of a block, since it was last complete.
struct Barrier {
  std::uint32_t waiting[kMaxWarps];  ///< lanes by warp
  std::uint32_t arrived;             ///< threads that arrived without waiting
  std::uint32_t expected;            ///< expected threads; 0: all threads of the block
  std::uint32_t true_lanes;
  std::uint32_t arrived_lanes;
  std::uint32_t location;
  bool in_use;
};

struct Team {
  std::byte* frames = nullptr;
  std::uint32_t frame_bytes = 0;
  std::uint32_t warps = 0;
  Barrier barriers[ir::kBarriers];

  WarpFrame& frame(std::uint32_t warp) const {
    return *reinterpret_cast<WarpFrame*>(frames + std::size_t{warp} * frame_bytes);
  }
  std::uint32_t warp_of(const WarpFrame* frame) const {
    return static_cast<std::uint32_t>(
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(frame) - frames) / frame_bytes);
  }
};

/// The number of threads that `lanes` of a warp count as. A warp whose live lanes have all arrived counts as
/// 32 (PTX ISA, "bar", "barrier": thread counts are those of whole warps).
std::uint32_t threads_of(std::uint32_t lanes, std::uint32_t live) {
  if (lanes == 0) return 0;
  return (live & ~lanes) == 0 ? kWarpSize : static_cast<std::uint32_t>(std::popcount(lanes));
}

bool is_complete(const Team& team, const Barrier& barrier) {
  std::uint32_t threads = barrier.arrived;
  for (std::uint32_t warp = 0; warp < team.warps; ++warp) {
    const std::uint32_t live = team.frame(warp).live;
    if (barrier.expected == 0 && (live & ~barrier.waiting[warp]) != 0) return false;
    threads += threads_of(barrier.waiting[warp], live);
  }
  return threads >= barrier.expected;
}

/// Releases all lanes that wait at the barrier.
void open(Team& team, Barrier& barrier) {
  for (std::uint32_t warp = 0; warp < team.warps; ++warp) {
    WarpFrame& frame = team.frame(warp);
    for_each_lane(barrier.waiting[warp], [&](std::uint32_t lane) {
      frame.pc[lane] &= ~lane_pc::kMarks;
      frame.true_lanes[lane] = barrier.true_lanes;
      frame.arrived_lanes[lane] = barrier.arrived_lanes;
    });
  }
  std::memset(&barrier, 0, sizeof barrier);
}

/// Called after threads have ended: other threads may have waited only for them.
void open_complete(Team& team) {
  for (Barrier& barrier : team.barriers)
    if (barrier.in_use && barrier.expected == 0 && is_complete(team, barrier)) open(team, barrier);
}

[[noreturn]] void stuck(WorkerState* worker, std::uint32_t location, std::uint32_t lanes,
                        ir::Trap why = ir::Trap::divergent_barrier) {
  worker->fault_location = location;
  worker->fault_lane = lanes == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(lanes));
  quern_cpu_trap(worker, static_cast<std::uint32_t>(why));
}

// --- warps

/// Stores the running warp, for reports.
void note_warp(WorkerState* worker, std::uint32_t warp) {
  worker->warp_index = warp;
  worker->running_warps = warp;
}

void begin(WarpFrame& frame, std::uint32_t lanes) {
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
    frame.pc[lane] = (lanes & bit(lane)) != 0 ? 0 : lane_pc::kEnded;
  frame.live = lanes;
  frame.turns = 0;
  frame.rounds = 0;
  frame.location = ir::kNone;
}

bool can_go_on(const WarpFrame& frame) {
  return frame.live != 0 && lanes_where(frame, [](std::uint32_t at) { return at < lane_pc::kAsleep; }) != 0;
}

std::uint32_t location_of_wait(const Team& team, std::uint32_t warp) {
  for (const Barrier& barrier : team.barriers)
    if (barrier.waiting[warp] != 0) return barrier.location;
  return ir::kNone;
}

/// The result of one round over the warps.
struct Round {
  bool ran = false;       ///< some warp ran
  bool progress = false;  ///< some warp did more than wait
};

Round run_round(const LaunchState* launch, WorkerState* worker, const WarpSteps& steps, Team& team,
                const std::uint32_t (&ctaid)[3]) {
  Round round;
  for (std::uint32_t warp = 0; warp < team.warps; ++warp) {
    WarpFrame& frame = team.frame(warp);
    if (!can_go_on(frame)) continue;
    round.ran = true;
    frame.rounds = 0;
    note_warp(worker, warp);
    const std::uint32_t live = frame.live;
    const StepWarp step = warp < steps.full_count ? steps.full : steps.partial;
    const std::uint32_t end = step(launch, worker, &frame, ctaid[0], ctaid[1], ctaid[2], warp);
    if (end != static_cast<std::uint32_t>(StepEnd::spinning)) round.progress = true;
    if (frame.live != live) open_complete(team);
  }
  return round;
}

}  // namespace

extern "C" {

void quern_cpu_run_warps(const LaunchState* launch, WorkerState* worker, const WarpSteps* steps,
                         std::uint32_t ctaid_x, std::uint32_t ctaid_y, std::uint32_t ctaid_z) {
  Team team{};
  team.frames = worker->frames;
  team.frame_bytes = steps->frame_bytes;
  team.warps = steps->full_count + (steps->rest != 0 ? 1 : 0);
  for (std::uint32_t warp = 0; warp < team.warps; ++warp)
    begin(team.frame(warp), warp < steps->full_count ? 0xffffffffu : steps->rest);
  worker->team = &team;
  const std::uint32_t ctaid[3] = {ctaid_x, ctaid_y, ctaid_z};
  for (;;) {
    const Round round = run_round(launch, worker, *steps, team, ctaid);
    if (!round.ran) break;
    if (!round.progress) quern_cpu_yield(worker);
  }
  worker->team = nullptr;
  for (std::uint32_t warp = 0; warp < team.warps; ++warp) {
    if (team.frame(warp).live == 0) continue;
    note_warp(worker, warp);
    stuck(worker, location_of_wait(team, warp), team.frame(warp).live);
  }
}

std::uint32_t quern_cpu_choose_pc(WorkerState* worker, WarpFrame* frame) {
  if (frame->turns % kTurnsInStep == 0) return static_cast<std::uint32_t>(StepEnd::spinning);
  const std::uint32_t ready = lanes_where(*frame, [](std::uint32_t at) { return at < lane_pc::kSpinning; });
  if (ready != 0) {  // takes the lane after the one that the number of turns selects
    const int turn = static_cast<int>(frame->turns / kFairTurns % kWarpSize);
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(std::rotr(ready, turn)) + turn) % kWarpSize;
    return frame->pc[lane];
  }
  const std::uint32_t spinning =
      lanes_where(*frame, [](std::uint32_t at) { return marked(at, lane_pc::kSpinning); });
  if (spinning != 0) {
    std::uint32_t least = lane_pc::kEnded;
    for_each_lane(spinning, [&](std::uint32_t lane) {
      frame->pc[lane] &= ~lane_pc::kMarks;
      if (frame->pc[lane] < least) least = frame->pc[lane];
    });
    return ++frame->rounds % kRoundsInStep == 0 ? static_cast<std::uint32_t>(StepEnd::spinning) : least;
  }
  if (frame->live == 0) return lane_pc::kEnded;
  const bool at_barrier =
      lanes_where(*frame, [](std::uint32_t at) { return marked(at, lane_pc::kAtBarrier); }) != 0;
  if (!at_barrier) stuck(worker, frame->location, frame->live);
  return static_cast<std::uint32_t>(StepEnd::waiting);
}

std::uint32_t quern_cpu_sync_lanes(WarpFrame* frame, std::uint32_t at, std::uint32_t location) {
  const auto is_here = [&](std::uint32_t other) {
    return other != lane_pc::kEnded && (other & ~(lane_pc::kMarks | lane_pc::kReleased)) == at &&
           other < lane_pc::kAtBarrier;
  };
  const std::uint32_t here = lanes_where(*frame, is_here);
  // A warp_sync synchronises with members at any other warp_sync. Other operations synchronise only with
  // members at the same instruction.
  const std::uint32_t present =
      (at & lane_pc::kSync) == 0 ? here : lanes_where(*frame, [](std::uint32_t other) {
        return other < lane_pc::kAtBarrier && (other & lane_pc::kSync) != 0 &&
               (other & lane_pc::kReleased) == 0;
      });
  std::uint32_t ready = 0;
  std::uint32_t met = 0;
  for_each_lane(here, [&](std::uint32_t lane) {
    const std::uint32_t members = frame->members[lane] & frame->live;
    if ((frame->pc[lane] & lane_pc::kReleased) != 0) {
      ready |= bit(lane);
    } else if ((members & ~present) == 0) {
      ready |= bit(lane);
      met |= members;
    } else {
      frame->pc[lane] = at | lane_pc::kAsleep;
      frame->location = location;
    }
  });
  for_each_lane(ready, [&](std::uint32_t lane) { frame->pc[lane] = at; });
  for_each_lane(met & ~here, [&](std::uint32_t lane) {
    frame->pc[lane] = (frame->pc[lane] & ~lane_pc::kMarks) | lane_pc::kReleased;
  });
  return ready;
}

void quern_cpu_end_lanes(WarpFrame* frame, std::uint32_t lanes) {
  if (lanes == 0) return;
  frame->live &= ~lanes;
  for_each_lane(lanes, [&](std::uint32_t lane) { frame->pc[lane] = lane_pc::kEnded; });
  for (std::uint32_t& at : frame->pc)  // the lanes that wait for these members
    if (marked(at, lane_pc::kAsleep)) at &= ~lane_pc::kMarks;
}

void quern_cpu_arrive_at_barrier(WorkerState* worker, WarpFrame* frame, std::uint32_t lanes,
                                 std::uint32_t next, std::uint32_t how, std::uint32_t id, std::uint32_t count,
                                 std::uint32_t yes, std::uint32_t location) {
  if (id >= ir::kBarriers) stuck(worker, location, lanes, ir::Trap::no_such_barrier);
  if (count % kWarpSize != 0) stuck(worker, location, lanes, ir::Trap::barrier_of_part);
  Team& team = *static_cast<Team*>(worker->team);
  Barrier& barrier = team.barriers[id];
  const bool waits = how == static_cast<std::uint32_t>(BarrierStep::wait);
  for_each_lane(lanes,
                [&](std::uint32_t lane) { frame->pc[lane] = waits ? next | lane_pc::kAtBarrier : next; });
  barrier.in_use = true;
  barrier.expected = count;
  barrier.location = location;
  barrier.true_lanes += static_cast<std::uint32_t>(std::popcount(yes & lanes));
  barrier.arrived_lanes += static_cast<std::uint32_t>(std::popcount(lanes));
  if (waits)
    barrier.waiting[team.warp_of(frame)] |= lanes;
  else
    barrier.arrived += threads_of(lanes, frame->live);
  if (is_complete(team, barrier)) open(team, barrier);
}

}  // extern "C"

}  // namespace quern::cpu::engine
