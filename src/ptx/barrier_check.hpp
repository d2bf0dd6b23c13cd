// SPDX-License-Identifier: Apache-2.0
// The constants of a barrier instruction.
#pragma once

#include <optional>
#include <string>

#include "ptx/module.hpp"

namespace quern::ptx {

/// What is wrong with a 'bar' or 'barrier' whose row of isa.def fits, or nothing. "Parallel Synchronization
/// and Communication Instructions: bar, barrier": barriers are 0 to 15, and as many threads meet as whole
/// warps have.
std::optional<std::string> check_barrier(const Instruction& instruction);

}  // namespace quern::ptx
