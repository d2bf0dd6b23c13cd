// SPDX-License-Identifier: Apache-2.0
// Turns the slots of values into SSA form, in time proportional to the number of blocks in which the slots
// are live.
#pragma once

#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// Replaces variables (allocas of the entry block) of `function` by values and as few phis as necessary. Only
/// variables whose uses are loads and stores of the whole variable are replaced. A variable that is read
/// before it is written is undef. Keeps the blocks and `dominators`.
///
/// This replaces LLVM's own pass. For each variable, that pass visits all blocks that its definitions
/// dominate. With a variable for each value, its time is quadratic in the size of the kernel.
void promote_slots(llvm::Function& function, const llvm::DominatorTree& dominators);

}  // namespace quern::cpu::emit
