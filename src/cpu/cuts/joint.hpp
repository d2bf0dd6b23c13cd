// SPDX-License-Identifier: Apache-2.0
// Finds additions that the warps of a gang make as one. Pure; no LLVM.
#pragma once

#include <vector>

#include "cpu/analysis/analysis.hpp"
#include "cpu/cuts/gang_plan.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// An integer sum at one address for all lanes of all warps, whose old values are used: each lane takes its
/// places from a counter. One operation adds the operands of all warps, and the lanes and warps before a lane
/// determine its old value. `patterns`: those of the full version.
bool is_joint(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
              const GangPlan& gang, ir::Value value);

/// True if an instruction of code under masks may run without any lane. `patterns`: those of its version.
bool may_run_empty(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
                   ir::Value value);

/// The number of instructions at the start of `block` that the warps of a gang may run in lockstep although
/// some warps have no lanes there: the last one is joint, the others are pure and few. 0: there is no such
/// part.
std::size_t find_joint_head(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
                            const GangPlan& gang, ir::BlockId block);

}  // namespace quern::cpu::cuts
