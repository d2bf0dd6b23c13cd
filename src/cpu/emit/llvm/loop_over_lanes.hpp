// SPDX-License-Identifier: Apache-2.0
// Computes vectors in loops over a few lanes, so that there is less code to generate.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// Vectors of a warp take several registers of `register_bits`, and the code generator's time grows with the
/// number of instructions. Stretches of operations of which each lane's result depends on the same lane of
/// the operands only become loops over as many lanes as fit in one register. Values that enter or leave the
/// loops are on the stack. Results are the same to the bit, since the operations and the order in which a
/// lane goes through them are the same (docs/decisions/0079-quick-code-in-loops.md).
void loop_over_lanes(llvm::Function& function, unsigned register_bits);

}  // namespace quern::cpu::emit
