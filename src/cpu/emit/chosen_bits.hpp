// SPDX-License-Identifier: Apache-2.0
// Choices between values of which one is computed bit by bit.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// For AVX-512, whose instruction selection (LLVM before 23) gives a wrong truth table to a three-operand
/// logical instruction under a mask where it reads memory and where the value that stays in the masked lanes
/// is one of its operands: `c ? x : (x & A) | (y & ~A)`, A a constant. Two rules of it were exchanged
/// (llvm-project issue 157929). Here an empty piece of assembly hides from a choice between vectors of 32 or
/// 64 bits that one side of it is a logical operation.
void keep_logic_from_choices(llvm::Function& function);

}  // namespace quern::cpu::emit
