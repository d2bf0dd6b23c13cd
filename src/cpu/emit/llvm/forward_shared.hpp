// SPDX-License-Identifier: Apache-2.0
// Keeps shared memory in registers between barriers that cost nothing.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// Metadata of a branch behind which the shared memory of the threads' block is not read any more: the next
/// block begins, or none.
inline constexpr const char* kBlockEnds = "quern.block_ends";

/// In straight-line code, with addresses at constant offsets from one base: replaces vector loads that read
/// the elements of earlier stores by permutations of the stored values, and removes stores whose elements are
/// all stored again, or whose block ends, before anything reads them. Processors make loads of the elements
/// of several stores wait until all of these have reached the cache. Accesses are known by their scope
/// (operations/address.hpp).
void forward_shared(llvm::Function& function);

}  // namespace quern::cpu::emit
