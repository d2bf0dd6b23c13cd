// SPDX-License-Identifier: Apache-2.0
// Finds loops whose next iteration masked code begins before it knows whether any lane takes part. Pure; no
// LLVM.
#pragma once

#include <vector>

#include "cpu/analysis/analysis.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// By BlockId: the last block of the eager loop around it, which returns to the header; ir::kNone: there is
/// none. Many loops compare elements until they differ. Full code runs the first iteration; how many lanes
/// leave it is left to chance, whether any does is not. So full code does not ask whether all have left:
/// masked code runs the second iteration even without lanes, as a mispredicted branch costs more than that.
///
/// An innermost loop is eager if
///  - its lanes may leave it at different iterations, and everything in it may run without lanes: pure
///    operations, and loads of one element without an order;
///  - it has few operations, ends depending on what it loads, and its lanes load neighbours.
/// `masked`: the safe analysis of a function that the dispatcher does not run. `full`: the patterns of full
/// code; null: the last condition is not asked for.
std::vector<ir::BlockId> find_eager_loops(const ir::Function& function, const analysis::Analysis& masked,
                                          const std::vector<analysis::LanePattern>* full);

}  // namespace quern::cpu::cuts
