// SPDX-License-Identifier: Apache-2.0
// Finds branches at which a gang need not end although its warps may disagree: the warps run the blocks up to
// the point where all paths meet one after another, and continue from there in lockstep. The same for full
// code of one warp, where few lanes, known at compile time, run these blocks. Pure; no LLVM.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/analysis/analysis.hpp"
#include "cpu/cuts/gang_plan.hpp"
#include "cpu/cuts/known_lanes.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// The blocks on the paths from a branch to its immediate postdominator. If the postdominator is outside a
/// loop that contains the branch, they include that loop and the branch itself.
struct SerialRegion {
  ir::BlockId join = ir::kNone;     ///< the postdominator; ir::kNone: the branch has no such region
  std::vector<ir::BlockId> blocks;  ///< in Analysis::order
  std::vector<bool> all_lanes;      ///< by index into `blocks`: a warp runs the block with all its lanes
  /// By index into `blocks`: the lanes with which a warp runs the block, if it does, or 0: they are not
  /// known. Empty if find_serial_regions did not look for them.
  std::vector<std::uint32_t> known_lanes;
  /// The first instructions of this block, which is a successor of the branch, are run by all warps together
  /// before each runs the rest: an addition that they make as one, and what it needs (find_joint_head).
  /// ir::kNone: there is no such block.
  ir::BlockId joint_block = ir::kNone;
  std::size_t joint_head = 0;
  bool together = false;  ///< all warps may take the same edge with all lanes, which is tested first
};

/// True if all warps always leave the block to the same successor, with all lanes. `patterns`: those of the
/// full version.
bool leave_together(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
                    const GangPlan& gang, ir::BlockId block);

/// By BlockId of a branch at which warps may disagree, or lanes if the gang is one warp. A region has no
/// barriers, no calls, no ends of threads, no blocks with `tests`, no phis in it or after it that assume
/// lanes to arrive together, and a limited size. That of one warp also has no loops, and blocks of known
/// lanes only. `facts`: those of the full version. `known`: finds the lanes; null: they are not looked for.
std::vector<SerialRegion> find_serial_regions(const ir::Function& function, const analysis::Analysis& facts,
                                              const GangPlan& gang,
                                              const std::vector<std::vector<ir::Value>>& tests,
                                              KnownLanes* known);

/// By BlockId: warps in lockstep may reach the block.
std::vector<bool> find_lockstep_blocks(const ir::Function& function,
                                       const std::vector<SerialRegion>& regions);

}  // namespace quern::cpu::cuts
