// SPDX-License-Identifier: Apache-2.0
// Shows masked accesses and long loads to the hardware's prefetchers.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// Prefetches the lines of masked loads and stores of global memory, and of loads of 256 bytes and more,
/// right before them and in their order, for processors whose prefetchers learn nothing from masked accesses
/// (docs/decisions/0057-masked-accesses.md).
void prefetch_masked(llvm::Function& function);

}  // namespace quern::cpu::emit
