// SPDX-License-Identifier: Apache-2.0
// Finds the integers of 32 and 64 bits that 16 bits can hold and that come from bytes: sums of pixels or of
// flags. A vector of a warp has a half or a quarter of the registers then.
#pragma once

#include <vector>

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::analysis {

/// True for operations that give in fewer bits what they give in more, if all numbers fit.
bool may_narrow(ir::Op op);

/// By ir::Value: the value (of a comparison: its operands) differs between lanes, is a number of 32 or 64
/// bits between -2^15 and 2^15 - 1, and is computed from widened numbers of at most 16 bits and from values
/// that are the same in all lanes. Computed with 16 bits and sign-extended, the result is the same.
std::vector<bool> find_halves(const ir::Function& function, const Analysis& analysis);

}  // namespace quern::cpu::analysis
