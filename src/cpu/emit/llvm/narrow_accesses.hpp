// SPDX-License-Identifier: Apache-2.0
// Turns accesses under a constant mask into accesses without a mask.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// Replaces each masked load and store whose mask is a constant with one run of lanes, of 1, 2, 4, ... lanes,
/// by an access of these lanes only. Processors forward the data of stores to later loads if the store has no
/// mask.
void narrow_accesses(llvm::Function& function);

}  // namespace quern::cpu::emit
