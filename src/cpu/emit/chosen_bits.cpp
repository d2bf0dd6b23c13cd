// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/chosen_bits.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kRegisterBits = 512;

/// A choice lane by lane between vectors that the instruction can mask.
bool masks_lanes(const llvm::SelectInst& select) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(select.getType());
  if (type == nullptr || !select.getCondition()->getType()->isVectorTy()) return false;
  return type->getScalarSizeInBits() == 32 || type->getScalarSizeInBits() == 64;
}

/// What the code generator makes logical operations of.
bool is_logic(const Value* value) {
  while (const auto* cast = llvm::dyn_cast<llvm::BitCastInst>(value)) value = cast->getOperand(0);
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value))
    return call->getIntrinsicID() == llvm::Intrinsic::copysign ||
           call->getIntrinsicID() == llvm::Intrinsic::bitreverse ||
           call->getIntrinsicID() == llvm::Intrinsic::bswap;
  const auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
  return operation != nullptr && operation->isBitwiseLogicOp();
}

/// The same value, of which nothing is known. Assembly takes a register at a time.
Value* hidden(llvm::IRBuilder<>& b, Value* value) {
  const auto* const type = llvm::cast<llvm::FixedVectorType>(value->getType());
  const unsigned lanes = type->getNumElements();
  const unsigned part = std::min(lanes, kRegisterBits / type->getScalarSizeInBits());
  auto* const part_type = llvm::FixedVectorType::get(type->getElementType(), part);
  llvm::InlineAsm* const nothing =
      llvm::InlineAsm::get(llvm::FunctionType::get(part_type, {part_type}, false), "", "=v,0", false);
  if (part == lanes) return b.CreateCall(nothing, {value});
  std::vector<int> all(lanes);
  std::iota(all.begin(), all.end(), 0);
  Value* result = nullptr;
  for (unsigned first = 0; first < lanes; first += part) {
    const llvm::ArrayRef<int> places(all.data() + first, part);
    Value* const piece = b.CreateCall(nothing, {b.CreateShuffleVector(value, places)});
    std::vector<int> widened(lanes, -1);
    std::iota(widened.begin(), widened.begin() + part, 0);
    Value* const wide = b.CreateShuffleVector(piece, widened);
    if (result == nullptr) {
      result = wide;
      continue;
    }
    std::vector<int> joined(all);
    for (unsigned lane = 0; lane < part; ++lane) joined[first + lane] = static_cast<int>(lanes + lane);
    result = b.CreateShuffleVector(result, wide, joined);
  }
  return result;
}

}  // namespace

void keep_logic_from_choices(llvm::Function& function) {
  for (llvm::Instruction& inst : llvm::instructions(function)) {
    auto* const select = llvm::dyn_cast<llvm::SelectInst>(&inst);
    if (select == nullptr || !masks_lanes(*select)) continue;
    llvm::IRBuilder<> b(select);
    for (const unsigned side : {1u, 2u})
      if (is_logic(select->getOperand(side))) select->setOperand(side, hidden(b, select->getOperand(side)));
  }
}

}  // namespace quern::cpu::emit
