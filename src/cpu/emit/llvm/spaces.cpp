// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/spaces.hpp"

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

}  // namespace quern::cpu::emit
