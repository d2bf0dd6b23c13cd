// SPDX-License-Identifier: Apache-2.0
// Permutations of both halves of 64-bit elements become permutations of the elements.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// PTX has shuffles of 32 bits only, so that a double takes two. With the same constant permutation p,
///
///   zext(p(trunc x)) | zext(p(trunc(x >> 32))) << 32
///
/// becomes p(x), which neither packs the halves into vectors of their own nor puts them together again.
void join_halves(llvm::Function& function);

}  // namespace quern::cpu::emit
