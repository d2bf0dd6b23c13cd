// SPDX-License-Identifier: Apache-2.0
// Checks the constants of a barrier instruction.
#pragma once

#include <optional>
#include <string>

#include "ptx/module.hpp"

namespace quern::ptx {

/// Returns the error in a 'bar' or 'barrier' instruction that fits its row of isa.def, or nothing if it is
/// correct. Source: "Parallel Synchronization and Communication Instructions: bar, barrier": barriers have
/// the numbers 0 to 15, and the thread count is a multiple of the warp size.
std::optional<std::string> check_barrier(const Instruction& instruction);

}  // namespace quern::ptx
