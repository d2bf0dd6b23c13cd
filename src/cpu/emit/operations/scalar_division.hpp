// SPDX-License-Identifier: Apache-2.0
// Divisions of scalars, most of which are of indices that are below the divisor already: rows and columns
// that wrap around the edge of an array.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

namespace quern::cpu::emit {

/// `below` if the scalar `dividend` is at least 0 and less than `divisor`, else what `divide` computes, in a
/// block of its own. A division takes as long as ten other instructions.
llvm::Value* unless_below(llvm::IRBuilder<>& builder, llvm::Value* dividend, llvm::Value* divisor,
                          bool is_signed, llvm::Value* below, llvm::function_ref<llvm::Value*()> divide);

}  // namespace quern::cpu::emit
