// SPDX-License-Identifier: Apache-2.0
// Code that computes the first half of a warp's lanes and then the second one, where both at once need more
// vector registers than the processor has.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/Pass.h>

namespace quern::cpu::emit {

/// In each block, the longest stretch without an effect on memory is split into operations on 16 lanes if
/// more values are live in it than AVX-512 has registers. All operations that the first 16 lanes need come
/// before the other ones, in a block of their own: within a block, LLVM's scheduler would mix them again.
/// Returns true if it changed anything.
bool take_halves_in_turn(llvm::Function& function);

/// The same as a pass for the code generator's list, as make_block_cutter().
llvm::Pass* make_halver();

}  // namespace quern::cpu::emit
