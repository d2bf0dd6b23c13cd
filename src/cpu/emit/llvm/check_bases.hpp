// SPDX-License-Identifier: Apache-2.0
// Checks the base of indexed addresses outside of loops.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// The check of an address (operations/address.cpp) is umin(address - base, limit) + base. Where the address
/// is a number that a loop does not change plus scaled numbers of at most 32 bits, replaces the check by that
/// of the first number before the loop; the others are added behind it, as they are to the base of vectors of
/// indices. For windows with wide gaps only (abi/state.hpp): an index cannot reach from outside of the window
/// into it, or over a gap.
void check_bases(llvm::Function& function);

}  // namespace quern::cpu::emit
