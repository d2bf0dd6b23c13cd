// SPDX-License-Identifier: Apache-2.0
// Checks addresses once that are a small constant apart.
#pragma once

#include <llvm/IR/Function.h>

namespace quern::cpu::emit {

/// The check of an address (operations/address.cpp) is umin(address - base, limit) + base. Where a check
/// dominates that of an address at a small constant distance, replaces the second one by the first one's
/// result plus the distance. That is an instruction's own offset, which is added behind the check, too: the
/// gaps before and after the window make accesses fault that are not inside, and the access behind the first
/// check has faulted already if its address is outside.
void share_checks(llvm::Function& function);

}  // namespace quern::cpu::emit
