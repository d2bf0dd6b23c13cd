// SPDX-License-Identifier: Apache-2.0
// Finds blocks that not all live lanes of a warp may reach together.
#pragma once

#include "cpu/analysis/structure.hpp"

namespace quern::cpu::analysis {

/// Computes Analysis::divergent_control. divergent_branch and Loop::divergent must be known.
void find_divergent_control(const ir::Function& function, const Structure& structure, Analysis& analysis);

}  // namespace quern::cpu::analysis
