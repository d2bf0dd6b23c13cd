// SPDX-License-Identifier: Apache-2.0
// Finds remainders of indices that go around an edge: `(x + 1) % width` where a branch has tested x < width.
#pragma once

#include <vector>

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::analysis {

/// By ir::Value: the value is a remainder that is assumed to have one quotient in all lanes
/// (Analysis::assumed), and that quotient is probably 0: a branch before it found that the dividend without a
/// small constant is less than the divisor. Whether it is one decides about speed only.
std::vector<bool> find_below(const ir::Function& function, const Analysis& analysis);

}  // namespace quern::cpu::analysis
