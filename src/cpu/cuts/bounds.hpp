// SPDX-License-Identifier: Apache-2.0
// Recognises branches that compare an index with a bound: `if (i < n)`, and the end of loops over i. Pure; no
// LLVM.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/analysis/analysis.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// A comparison of (base + a constant for each lane) with a uniform value, used only by the branch at the end
/// of its block. If the last lane is below the bound, every lane is. So full code tests the last lane first,
/// with scalars, and compares lane by lane only if that test fails.
struct BoundedBranch {
  ir::Value comparison = ir::kNone;  ///< ir::kNone: the branch has no such comparison
  ir::Value index = ir::kNone;
  ir::Value bound = ir::kNone;
  std::int64_t reach = 0;  ///< the index in the last lane minus that in the first one; not negative
  bool is_signed = true;
  bool inclusive = false;  ///< index <= bound
  bool if_below = true;    ///< the comparison's result for an index below the bound
};

/// A branch on several such comparisons and conditions that are the same in all lanes: `if (x >= width || y
/// >= height)`. If every comparison holds that the last lane is below its bound, and the other conditions
/// agree, all lanes go one way.
struct BoundedBranches {
  std::vector<BoundedBranch> comparisons;  ///< empty: the branch has no such condition
  std::vector<ir::Value> uniform;          ///< each must be `if_below`
  bool if_below = true;                    ///< the condition if everything is below its bound
};

/// The number of instructions that read each value.
std::vector<std::uint32_t> count_reads(const ir::Function& function);

/// Classifies the branch at the end of `block`.
BoundedBranch bounded_branch(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
                             const std::vector<std::uint32_t>& reads, ir::BlockId block);

/// Classifies the branch at the end of `block` if its condition is computed in that block.
BoundedBranches bounded_branches(const ir::Function& function,
                                 const std::vector<analysis::LanePattern>& patterns, ir::BlockId block);

}  // namespace quern::cpu::cuts
