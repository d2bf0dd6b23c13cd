// SPDX-License-Identifier: Apache-2.0
// Choices between values of which one is computed bit by bit.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// For AVX-512, whose instruction selection (LLVM before 23) computes a wrong truth table for a three-operand
/// logical instruction under a mask if it reads memory and if the value kept in the masked lanes is one of
/// its operands: `c ? x : (x & A) | (y & ~A)`, A a constant. Two of its rules were exchanged (llvm-project
/// issue 157929). Here an empty inline assembly hides from a select between vectors of 32 or 64 bits that one
/// operand is a logical operation.
void keep_logic_from_selects(llvm::Function& function);

}  // namespace quern::cpu::emit
