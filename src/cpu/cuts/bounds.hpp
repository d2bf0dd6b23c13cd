// SPDX-License-Identifier: Apache-2.0
// Branches on whether an index lies below a bound: `if (i < n)`, and the end of loops over i. Pure; no LLVM.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/analysis/analysis.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// A comparison of a value that is base + a constant of each lane with a uniform value, read only by the
/// branch at the end of its block. If the last lane is below the bound, every lane is: full code tests that
/// first, with scalars, and compares lane by lane only if the test fails.
struct BoundedBranch {
  ir::Value comparison = ir::kNone;  ///< ir::kNone: the branch is none of these
  ir::Value index = ir::kNone;
  ir::Value bound = ir::kNone;
  std::int64_t reach = 0;  ///< the last lane's index minus the first one's; not negative
  bool is_signed = true;
  bool inclusive = false;  ///< index <= bound
  bool if_below = true;    ///< the comparison's result for an index below the bound
};

/// For each value, by how many instructions it is read.
std::vector<std::uint32_t> count_reads(const ir::Function& function);

/// Classifies the branch at the end of `block`.
BoundedBranch bounded_branch(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
                             const std::vector<std::uint32_t>& reads, ir::BlockId block);

}  // namespace quern::cpu::cuts
