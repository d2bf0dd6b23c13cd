// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Instruction.h>

namespace quern::cpu::emit {

/// True if one of the alias scopes in the list (MD_alias_scope or MD_noalias) is that of the state space.
bool lists_space(const llvm::Instruction& inst, unsigned kind, llvm::StringRef space);

/// True if `access`, of the memory at `pointer`, may be one of global memory.
bool may_be_global(const llvm::Instruction& access, const llvm::Value* pointer);

}  // namespace quern::cpu::emit
