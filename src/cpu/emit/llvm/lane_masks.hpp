// SPDX-License-Identifier: Apache-2.0
// Computes masks from several comparisons as lanes.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// For processors without mask registers, where a mask is a vector as wide as the elements that it chooses.
/// The code generator (LLVM 19) keeps the widths of comparisons and of logical operations on two of them. It
/// packs the masks of 32 lanes into bytes for an operation on the result of another one, and unpacks its
/// result for each selection. This pass computes masks that choose elements of 32 or 64 bits, and are more
/// than two comparisons, as vectors of such elements, all ones or zero:
///
///   less | (equal & before)  ->  select(less, ones, select(equal, sext(before), zero)) < 0
///
/// The code generator makes `vorps` and `vandps` of these selections. It would undo logical operations on
/// extended comparisons.
void compute_masks_as_lanes(llvm::Function& function);

}  // namespace quern::cpu::emit
