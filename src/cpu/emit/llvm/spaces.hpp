// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Instruction.h>

namespace quern::cpu::emit {

/// True if one of the alias scopes in the list (MD_alias_scope or MD_noalias) is that of the state space.
bool lists_space(const llvm::Instruction& inst, unsigned kind, llvm::StringRef space);

}  // namespace quern::cpu::emit
