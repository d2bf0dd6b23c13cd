// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/masked_ternlog.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "cpu/emit/llvm/opaque.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kRegisterBits = 512;

/// True for a lane-wise select between vectors that the instruction can mask.
bool masks_lanes(const llvm::SelectInst& select) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(select.getType());
  if (type == nullptr || !select.getCondition()->getType()->isVectorTy()) return false;
  return type->getScalarSizeInBits() == 32 || type->getScalarSizeInBits() == 64;
}

/// True for values that the code generator turns into logical operations.
bool is_logic(const Value* value) {
  while (const auto* cast = llvm::dyn_cast<llvm::BitCastInst>(value)) value = cast->getOperand(0);
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value))
    return call->getIntrinsicID() == llvm::Intrinsic::copysign ||
           call->getIntrinsicID() == llvm::Intrinsic::bitreverse ||
           call->getIntrinsicID() == llvm::Intrinsic::bswap;
  const auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
  return operation != nullptr && operation->isBitwiseLogicOp();
}

/// Hides a value in inline assembly, one register at a time.
Value* hidden(llvm::IRBuilder<>& b, Value* value) {
  auto* const type = llvm::cast<llvm::FixedVectorType>(value->getType());
  const unsigned part = std::min(type->getNumElements(), kRegisterBits / type->getScalarSizeInBits());
  auto* const part_type = llvm::FixedVectorType::get(type->getElementType(), part);
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned first = 0; first < type->getNumElements(); first += part) {
    Value* const place = b.getInt64(first);
    Value* const piece = opaque(b, b.CreateExtractVector(part_type, value, place), 'v');
    result = b.CreateInsertVector(type, result, piece, place);
  }
  return result;
}

}  // namespace

void keep_logic_from_selects(llvm::Function& function) {
  for (llvm::Instruction& inst : llvm::instructions(function)) {
    auto* const select = llvm::dyn_cast<llvm::SelectInst>(&inst);
    if (select == nullptr || !masks_lanes(*select)) continue;
    llvm::IRBuilder<> b(select);
    for (const unsigned side : {1u, 2u})
      if (is_logic(select->getOperand(side))) select->setOperand(side, hidden(b, select->getOperand(side)));
  }
}

}  // namespace quern::cpu::emit
