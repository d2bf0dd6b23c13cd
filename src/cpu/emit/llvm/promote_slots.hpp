// SPDX-License-Identifier: Apache-2.0
// The slots of values -> SSA form, in time that grows with the blocks in which the slots are alive.
#pragma once

#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// Replaces the variables (allocas of the entry block) of `function` that are loaded and stored whole and
/// nothing else by values and as few phis as that needs; the others stay. A variable that is read before it
/// is written is undef. Keeps the blocks and `dominators`.
///
/// Replaces LLVM's own pass, which for each variable visits all blocks that its definitions dominate: with a
/// variable for each value, its time is quadratic in the size of the kernel.
void promote_slots(llvm::Function& function, const llvm::DominatorTree& dominators);

}  // namespace quern::cpu::emit
