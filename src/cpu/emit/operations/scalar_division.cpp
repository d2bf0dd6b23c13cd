// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/scalar_division.hpp"

#include <llvm/IR/Intrinsics.h>

namespace quern::cpu::emit {

llvm::Value* unless_below(llvm::IRBuilder<>& builder, llvm::Value* dividend, llvm::Value* divisor,
                          bool is_signed, llvm::Value* below, llvm::function_ref<llvm::Value*()> divide) {
  llvm::BasicBlock* const from = builder.GetInsertBlock();
  const auto make_block = [&](const char* name) {
    return llvm::BasicBlock::Create(builder.getContext(), name, from->getParent(), from->getNextNode());
  };
  llvm::BasicBlock* const behind = make_block("divided");
  llvm::BasicBlock* const slow = make_block("divide");
  // As unsigned numbers, negative dividends are above every divisor that is positive.
  llvm::Value* const zero = llvm::ConstantInt::get(divisor->getType(), 0);
  llvm::Value* const end =
      is_signed ? builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, divisor, zero) : divisor;
  builder.CreateCondBr(builder.CreateICmpULT(dividend, end), behind, slow);
  builder.SetInsertPoint(slow);
  llvm::Value* const divided = divide();
  llvm::BasicBlock* const slow_end = builder.GetInsertBlock();
  builder.CreateBr(behind);
  builder.SetInsertPoint(behind);
  llvm::PHINode* const result = builder.CreatePHI(below->getType(), 2);
  result->addIncoming(below, from);
  result->addIncoming(divided, slow_end);
  return result;
}

}  // namespace quern::cpu::emit
