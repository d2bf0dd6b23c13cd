// SPDX-License-Identifier: Apache-2.0
// Finds the values that are equal in all warps of a block. Pure: the input is IR, the output are facts.
#pragma once

#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::analysis {

/// By ir::Value: every full warp of the block computes the same 32 lanes, each time it reaches the value's
/// block together with the others or after them. Loads count if a program without data races cannot observe
/// the difference.
std::vector<bool> find_shared(const ir::Function& function, const Specialisation& specialisation);

}  // namespace quern::cpu::analysis
