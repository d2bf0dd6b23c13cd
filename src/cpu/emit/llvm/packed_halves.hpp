// SPDX-License-Identifier: Apache-2.0
// Operations on both 16-bit halves of packed words are computed on the halves in memory order.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// __half2 and its relatives compute the same for the low and the high half of a word:
///
///   zext(f(trunc x)) | zext(f(trunc(x >> 16))) << 16
///
/// with any f that works element by element becomes f(bitcast x), a vector with twice the elements. So the
/// halves of 32 words are neither sorted into vectors of low and of high halves nor put together again. It is
/// computed for eight words at a time: a chain of operations on 32 words would need more registers than there
/// are.
void keep_halves_packed(llvm::Function& function);

/// Where both halves of words are used one by one, sorts eight words at a time into low and high halves, by
/// one permutation for both. For AVX2, which packs the low and the high halves of sixteen words in four
/// instructions each; AVX-512 has an instruction for it.
void sort_halves(llvm::Function& function);

}  // namespace quern::cpu::emit
