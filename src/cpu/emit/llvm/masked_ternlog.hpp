// SPDX-License-Identifier: Apache-2.0
// Hides logical operations from selects.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// For AVX-512. Its instruction selection (LLVM before 23) computes a wrong truth table for a three-operand
/// logical instruction under a mask, if it reads memory and the value of the masked lanes is one of its
/// operands: `c ? x : (x & A) | (y & ~A)`, A a constant. Two of its rules are exchanged (llvm-project issue
/// 157929). In a select between vectors of 32 or 64 bits, this pass hides by an empty inline assembly that an
/// operand is a logical operation.
void keep_logic_from_selects(llvm::Function& function);

}  // namespace quern::cpu::emit
