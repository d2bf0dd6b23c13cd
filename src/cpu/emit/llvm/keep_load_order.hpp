// SPDX-License-Identifier: Apache-2.0
// Loads reach memory in the order of the program, from which the processor's prefetchers learn.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// LLVM's code generator schedules loads by its need for registers, and makes them memory operands of later
/// operations. In blocks that load much global memory, this keeps it from moving loads across every half
/// KiB of them: the prefetchers do not mind the order of a few lines.
void keep_load_order(llvm::Function& function);

}  // namespace quern::cpu::emit
