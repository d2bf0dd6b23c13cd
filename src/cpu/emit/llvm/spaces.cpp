// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/spaces.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Metadata.h>

#include <algorithm>

namespace quern::cpu::emit {

bool lists_space(const llvm::Instruction& inst, unsigned kind, llvm::StringRef space) {
  const llvm::MDNode* list = inst.getMetadata(kind);
  return list != nullptr && std::ranges::any_of(list->operands(), [&](const llvm::MDOperand& each) {
           const auto* scope = llvm::dyn_cast<llvm::MDNode>(each);
           const auto* name =
               scope == nullptr ? nullptr : llvm::dyn_cast<llvm::MDString>(scope->getOperand(0));
           return name != nullptr && name->getString() == space;
         });
}

bool may_be_global(const llvm::Instruction& access, const llvm::Value* pointer) {
  for (const char* const space : {"shared", "local", "param"})
    if (lists_space(access, llvm::LLVMContext::MD_alias_scope, space)) return false;
  return !llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(pointer));
}

}  // namespace quern::cpu::emit
