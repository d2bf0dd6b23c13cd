// SPDX-License-Identifier: Apache-2.0
// Decides whether warps of a block run in lockstep, how many of them, and which values they share. Pure; no
// LLVM.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

struct GangPlan {
  std::uint32_t width = 1;  ///< warps in lockstep; 1: no gang
  /// by Value: it has the same 32 lanes in every warp of the block; empty if width is 1
  std::vector<bool> shared;
};

/// `barriers`: the function contains barriers. `facts`: the analysis of the current function for its full
/// version.
GangPlan choose_gang(const ir::Function& function, const analysis::Analysis& facts,
                     const Specialisation& specialisation, bool barriers);

}  // namespace quern::cpu::cuts
