// SPDX-License-Identifier: Apache-2.0
// The constants of a barrier instruction.
#pragma once

#include <optional>
#include <string>

#include "ptx/module.hpp"

namespace quern::ptx {

/// Returns the error in a 'bar' or 'barrier' whose row of isa.def fits; nothing if it is correct. "Parallel
/// Synchronization and Communication Instructions: bar, barrier": barriers are 0 to 15, and the thread count
/// is a multiple of the warp size.
std::optional<std::string> check_barrier(const Instruction& instruction);

}  // namespace quern::ptx
