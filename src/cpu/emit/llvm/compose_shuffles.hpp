// SPDX-License-Identifier: Apache-2.0
// Chains of permutations become one permutation.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// Replaces shuffles of shuffles of elements of 4 or 8 bytes by one shuffle for each register of the result,
/// if no such register takes elements of more than two registers. LLVM composes only shuffles that have no
/// other users.
void compose_shuffles(llvm::Function& function, unsigned register_bits);

}  // namespace quern::cpu::emit
