// SPDX-License-Identifier: Apache-2.0
// Keeps shared memory in registers between barriers that cost nothing.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// In straight-line code, with addresses at constant offsets from one base: replaces vector loads that read
/// the elements of several earlier stores by permutations of the stored values, and removes stores whose
/// elements are all stored again before anything reads them. Processors make such loads wait until all of
/// these stores have reached the cache. Accesses are known by their scope (operations/address.hpp).
void forward_shared(llvm::Function& function);

}  // namespace quern::cpu::emit
