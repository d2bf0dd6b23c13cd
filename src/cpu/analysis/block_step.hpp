// SPDX-License-Identifier: Apache-2.0
// Finds how much a value grows from a block to the next one.
#pragma once

#include <cstdint>
#include <optional>

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::analysis {

/// The amount by which the value grows in each thread from a block to the one that is next in x, if that is a
/// constant and can be seen from the operations; nullopt if it cannot. For hints only: `or` counts as a sum,
/// and shifts to the right as exact.
std::optional<std::int64_t> block_step(const ir::Function& function, const Analysis& analysis,
                                       ir::Value value);

}  // namespace quern::cpu::analysis
