// SPDX-License-Identifier: Apache-2.0
// Masks that come from words are computed as words.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// For AVX-512, whose code generator (LLVM 19) loops forever on a logical operation on two masks (<N x i1>)
/// that are casts of words, or selections of such: one rule moves the operation before the casts, another
/// behind them (llvm-project issue 123333). Here such operations and selections are done on words, and an
/// empty inline assembly hides from those rules that the mask is a cast. This adds no code: LLVM selects
/// masks as words anyway.
void compute_masks_as_words(llvm::Function& function);

}  // namespace quern::cpu::emit
