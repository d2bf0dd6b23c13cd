// SPDX-License-Identifier: Apache-2.0
// The larger of two numbers in some lanes and the smaller one in the others, without a mask.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// (a > b) != up ? a : b
///
/// where `up` is a constant vector, as in sorting networks, becomes a permutation of max(a, b) and min(a, b).
/// AVX2 has no registers for masks of many lanes: LLVM would pack the results of the comparison, and unpack
/// them after the exclusive or.
void choose_extremes(llvm::Function& function);

}  // namespace quern::cpu::emit
