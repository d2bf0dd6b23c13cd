// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

#include <string>

namespace quern::cpu::emit {

/// The same value, of which LLVM knows nothing: an empty piece of assembly, which costs no instruction.
/// `where`: 'r', an integer of a register, or 'v', a vector of one.
inline llvm::Value* opaque(llvm::IRBuilder<>& b, llvm::Value* value, char where) {
  llvm::Type* const type = value->getType();
  const std::string constraints = std::string("=") + where + ",0";
  return b.CreateCall(
      llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", constraints, false), {value});
}

}  // namespace quern::cpu::emit
