// SPDX-License-Identifier: Apache-2.0
// Finds how much a value grows from a block to the next one, and values that are the same in all blocks.
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

/// True if each thread has the value that the threads with its number have in all other blocks: it follows
/// from parameters and the thread's place in its block. For hints only: the number of iterations of a loop is
/// not looked at.
bool same_in_all_blocks(const ir::Function& function, ir::Value value);

}  // namespace quern::cpu::analysis
