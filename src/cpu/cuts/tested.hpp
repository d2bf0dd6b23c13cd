// SPDX-License-Identifier: Apache-2.0
// Full code tests what the analysis assumes of a value.
#pragma once

#include <vector>

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::cuts {

/// The values that the test of an assumed value reads. They may be read by nothing else.
std::vector<ir::Value> tested_operands(const ir::Function& function, const analysis::Analysis& facts,
                                       ir::Value assumed);

}  // namespace quern::cpu::cuts
