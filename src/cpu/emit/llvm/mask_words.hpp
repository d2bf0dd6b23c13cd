// SPDX-License-Identifier: Apache-2.0
// Computes masks that are conversions of words as words.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// For AVX-512. Its code generator (LLVM 19) loops forever on a logical operation on two masks (<N x i1>)
/// that are casts of words, or on a selection between such masks: one rule moves the operation before the
/// casts, another moves it after them (llvm-project issue 123333). This pass does such operations and
/// selections on words. An empty inline assembly hides from those rules that the mask is a cast. This adds no
/// code, since LLVM selects masks as words anyway.
void compute_masks_as_words(llvm::Function& function);

}  // namespace quern::cpu::emit
