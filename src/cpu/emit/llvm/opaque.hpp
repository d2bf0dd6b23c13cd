// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

#include <string>

namespace quern::cpu::emit {

/// Returns the same value, which LLVM's optimisers know nothing about: an empty inline assembly that costs no
/// instruction. `where`: 'r', an integer register, or 'v', a vector register.
inline llvm::Value* opaque(llvm::IRBuilder<>& b, llvm::Value* value, char where) {
  llvm::Type* const type = value->getType();
  const std::string constraints = std::string("=") + where + ",0";
  return b.CreateCall(
      llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", constraints, false), {value});
}

}  // namespace quern::cpu::emit
