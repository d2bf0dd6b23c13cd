// SPDX-License-Identifier: Apache-2.0
// Masks that come from words are computed as words.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// For AVX-512, whose code generator (LLVM 19) never ends where it meets a logical operation on two masks
/// (<N x i1>) that are casts of words, or selections of such: one rule of it moves the operation before the
/// casts, another behind them (llvm-project issue 123333). Here such operations and selections are done on
/// words, and an empty piece of assembly hides from those rules that the mask comes from one. No code is
/// added for it: LLVM selects masks as words anyway.
void compute_masks_as_words(llvm::Function& function);

}  // namespace quern::cpu::emit
