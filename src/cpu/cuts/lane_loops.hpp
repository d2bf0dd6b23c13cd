// SPDX-License-Identifier: Apache-2.0
// Finds loops that the lanes of a warp run one after another, as scalar code. Pure; no LLVM.
#pragma once

#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// A loop whose iterations depend on data, like one over the elements of a row of a sparse matrix. Lanes in
/// lockstep would gather each element and iterate until the longest row ends. Or several such loops, one
/// after the other, with what is between them and, perhaps, a branch before the first one: a lane runs all of
/// them before the next lane begins, so that it reads its data once.
struct LaneLoop {
  /// A loop of few iterations, of which `copies`, one behind the other, have no branch between them. A lane
  /// that has left it repeats its last iteration until the end of the last copy.
  struct Short {
    ir::BlockId header = ir::kNone;
    ir::BlockId latch = ir::kNone;  ///< the header, or a block that only returns to it
    unsigned copies = 1;
  };

  std::vector<ir::BlockId> blocks;  ///< in Analysis::order; the first one is the only entry
  std::vector<ir::Value> reads;  ///< values from outside that it reads, but the operands of its header's phis
  std::vector<Short> short_loops;

  ir::BlockId header() const { return blocks.front(); }
};

/// Returns the loops, none inside another one. `masked`: the safe analysis of a function that the dispatcher
/// does not run. A loop is run lane by lane if
///  - it only computes and loads: lanes and other threads cannot see the order in which its lanes run;
///  - its lanes may leave it at different iterations, for a reason in the data;
///  - its addresses do not follow from elements that earlier iterations loaded, so that the processor can
///    execute loads of several lanes at once;
///  - gathers would be most of its work.
/// `lockstep`: the patterns of the version in which the lanes would otherwise run. Null: the last two are not
/// asked for, nor a reason in the data.
std::vector<LaneLoop> find_lane_loops(const ir::Function& function, const analysis::Analysis& masked,
                                      const std::vector<analysis::LanePattern>* lockstep, Isa isa);

/// The facts about the values of one lane while it runs alone: all are the same in "all" lanes. The result
/// has no structure (blocks, loops).
analysis::Analysis facts_of_one_lane(const analysis::Analysis& masked);

}  // namespace quern::cpu::cuts
