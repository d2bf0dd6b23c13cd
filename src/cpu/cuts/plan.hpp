// SPDX-License-Identifier: Apache-2.0
// Decisions about a function that are made before LLVM IR exists: where it is cut, which versions its blocks
// have, which values leave their blocks. The passes of passes.hpp set them. No LLVM.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/cuts/bounds.hpp"
#include "cpu/cuts/gang_plan.hpp"
#include "cpu/cuts/lane_loops.hpp"
#include "cpu/cuts/serial_regions.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// Every block is emitted in up to two of these versions. Full: all 32 lanes of the warp run, without masks;
/// branches are real branches; patterns come from the optimistic analysis. Masked: some lanes run; blocks run
/// in Analysis::order, and a block is skipped if no lane waits at it; patterns come from the safe analysis.
/// Lane: one lane of masked code runs a loop alone, as scalar code (lane_loops.hpp).
enum class Version : std::uint8_t { full, masked, lane };

struct Plan {
  const ir::Module* module = nullptr;
  const ir::Function* function = nullptr;
  analysis::Analysis uncut;   ///< optimistic, before the cuts that depend on it; empty after them
  analysis::Analysis full;    ///< optimistic; not valid if has_full is false
  analysis::Analysis masked;  ///< safe
  bool has_full = false;
  bool has_barriers = false;
  std::vector<std::vector<ir::Value>>
      tested;  ///< by BlockId: assumed values to test at its end, which is a br (full version)
  std::vector<ir::Value> barrier;  ///< by BlockId: the barrier before its br, or ir::kNone
  std::vector<bool> ends;  ///< by BlockId: lanes that reach it have no further effect before ret or exit
  std::vector<bool> masked_needed;  ///< by BlockId: it has a masked version
  std::vector<bool>
      reenter;  ///< by BlockId: its masked version continues in the full one if all lanes are at it
  std::vector<bool> crosses;  ///< by Value: it has a slot, because it is a phi or read outside its block
  std::vector<std::vector<ir::Value>>
      live_in;  ///< by BlockId: values defined before it and read in or after it

  std::vector<BoundedBranch> bounded;             ///< by BlockId: the comparison at its end; for full code
  std::vector<BoundedBranches> bounded_together;  ///< by BlockId: the same for several comparisons

  /// By Value: a store may bypass the caches if the launch finds the array of the parameter at this byte
  /// large; ir::kNone: never. No instruction of the kernel lets other workers look for its stores while it
  /// runs.
  std::vector<std::uint32_t> streamed;

  ir::AtomicUse atomics = ir::AtomicUse::none;  ///< of the kernel and the functions that it calls

  GangPlan gang;
  /// by BlockId: it has only a terminator, at which the warps of a gang may diverge
  std::vector<bool> parts;
  /// by BlockId of a branch: the blocks that the warps of a gang run one after another; without gangs, those
  /// that full code runs with some of the lanes. Empty without full code.
  std::vector<SerialRegion> serial;
  /// by BlockId: the gang has code for the block in which its warps are in lockstep; without gangs, full code
  /// has the block outside of such regions. Empty without full code.
  std::vector<bool> lockstep;

  /// Lanes may wait for each other: the dispatcher runs the masked version, and full code contains no
  /// barriers.
  bool dispatched = false;
  /// by BlockId: its first instruction if lanes wait at it, otherwise ir::kNone
  std::vector<ir::Value> waits;
  std::vector<bool> full_needed;  ///< by BlockId: it has a full version, if has_full
  std::vector<bool> spins;  ///< by BlockId: lanes that return to it from a later block let others run first

  /// Their blocks have neither a full nor a masked version, except that masked code begins them at the
  /// header.
  std::vector<LaneLoop> lane_loops;
  std::vector<std::uint32_t> lane_loop;  ///< by BlockId: index into `lane_loops`, or ir::kNone
  analysis::Analysis lane;               ///< facts about the values of that code, if there are such loops

  /// by BlockId: the last block of the loop around it whose iterations may run without lanes
  /// (eager_loops.hpp), or ir::kNone
  std::vector<ir::BlockId> eager;

  /// True if full code of one warp runs the blocks behind this branch with some of the lanes.
  bool runs_region_alone(ir::BlockId branch) const {
    return gang.width <= 1 && !serial.empty() && serial[branch].join != ir::kNone;
  }

  const analysis::Analysis& facts(Version version) const {
    return version == Version::full ? full : version == Version::masked ? masked : lane;
  }
};

/// Functions with more instructions get only masked code, as functions of quick code do: compiling two
/// versions would take too long.
inline constexpr std::size_t kMaxTwoVersionInsts = 3000;

/// Returns the plan with masked code only, for the last, partial warp of a block.
Plan masked_only(const Plan& plan);

}  // namespace quern::cpu::cuts
