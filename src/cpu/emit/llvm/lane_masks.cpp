// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/lane_masks.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// Masks of more comparisons are left alone.
constexpr unsigned kMaxComparisons = 16;

bool is_mask(const llvm::Type* type) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector != nullptr && vector->getElementType()->isIntegerTy(1) && vector->getNumElements() > 4;
}

/// The operands, if this is a logical operation on masks, or a selection between masks.
std::vector<Value*> mask_operands(Value* value) {
  if (!is_mask(value->getType())) return {};
  if (auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
      operation != nullptr && operation->isBitwiseLogicOp())
    return {operation->getOperand(0), operation->getOperand(1)};
  auto* select = llvm::dyn_cast<llvm::SelectInst>(value);
  if (select == nullptr || !is_mask(select->getCondition()->getType())) return {};
  return {select->getCondition(), select->getTrueValue(), select->getFalseValue()};
}

class LaneMasks {
 public:
  explicit LaneMasks(llvm::Function& function) : function_(function) {}

  void run() {
    for (llvm::Instruction& inst : llvm::make_early_inc_range(llvm::instructions(function_))) {
      if (!is_packed(inst)) continue;
      for (const unsigned bits : {32u, 64u})
        if (const std::vector<llvm::Use*> uses = chosen_by(inst, bits); !uses.empty())
          replace(inst, uses, bits);
    }
    llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(replaced_);
  }

 private:
  /// True if the code generator does not keep the width of this operation on masks.
  static bool is_packed(llvm::Instruction& inst) {
    const std::vector<Value*> operands = mask_operands(&inst);
    const auto is_comparison = [](const Value* operand) { return llvm::isa<llvm::CmpInst>(operand); };
    return operands.size() > 2 || !std::ranges::all_of(operands, is_comparison);
  }

  /// The selections of elements of `bits` by this mask.
  static std::vector<llvm::Use*> chosen_by(llvm::Instruction& mask, unsigned bits) {
    std::vector<llvm::Use*> uses;
    for (llvm::Use& use : mask.uses()) {
      const auto* select = llvm::dyn_cast<llvm::SelectInst>(use.getUser());
      if (select != nullptr && use.getOperandNo() == 0 && select->getType()->getScalarSizeInBits() == bits)
        uses.push_back(&use);
    }
    return uses;
  }

  /// The number of comparisons in the mask, each as often as it occurs; nothing if there is anything else.
  std::optional<unsigned> comparisons(Value* mask, unsigned limit) const {
    if (llvm::isa<llvm::CmpInst>(mask)) return 1;
    if (const auto* constant = llvm::dyn_cast<llvm::Constant>(mask))
      return llvm::isa<llvm::ConstantDataVector, llvm::ConstantVector, llvm::ConstantAggregateZero>(constant)
                 ? std::optional(0u)
                 : std::nullopt;
    const std::vector<Value*> operands = mask_operands(mask);
    if (operands.empty()) return std::nullopt;
    unsigned sum = 0;
    for (Value* operand : operands) {
      if (sum >= limit) return std::nullopt;
      const std::optional<unsigned> part = comparisons(operand, limit - sum);
      if (!part) return std::nullopt;
      sum += *part;
    }
    return sum;
  }

  void replace(llvm::Instruction& mask, const std::vector<llvm::Use*>& uses, unsigned bits) {
    if (comparisons(&mask, kMaxComparisons).value_or(0) == 0) return;
    auto* const lanes = llvm::dyn_cast<llvm::Instruction>(lanes_of(mask, bits));
    if (lanes == nullptr) return;
    llvm::IRBuilder<> b(lanes->getNextNode());
    Value* const again = b.CreateICmpSLT(lanes, llvm::Constant::getNullValue(lanes->getType()));
    for (llvm::Use* use : uses) use->set(again);
    replaced_.emplace_back(&mask);
  }

  /// The mask as elements that are all ones or zero.
  Value* lanes_of(Value& mask, unsigned bits) {
    if (Value* const known = lanes_.lookup({&mask, bits})) return known;
    const auto* type = llvm::cast<llvm::FixedVectorType>(mask.getType());
    llvm::Type* const wide =
        llvm::FixedVectorType::get(llvm::IntegerType::get(mask.getContext(), bits), type->getNumElements());
    Value* made = nullptr;
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(&mask)) {
      made = wide_constant(*constant, *wide);
    } else {
      auto& inst = llvm::cast<llvm::Instruction>(mask);
      llvm::IRBuilder<> b(inst.getNextNode());
      made = llvm::isa<llvm::CmpInst>(mask) ? b.CreateSExt(&mask, wide) : combined(b, inst, bits, *wide);
    }
    return lanes_[{&mask, bits}] = made;
  }

  static Value* wide_constant(llvm::Constant& mask, llvm::Type& wide) {
    const auto& type = llvm::cast<llvm::FixedVectorType>(wide);
    std::vector<llvm::Constant*> lanes;
    for (unsigned lane = 0; lane < type.getNumElements(); ++lane) {
      const llvm::Constant* const bit = mask.getAggregateElement(lane);
      const bool ones = bit != nullptr && bit->isOneValue();
      lanes.push_back(ones ? llvm::Constant::getAllOnesValue(type.getElementType())
                           : llvm::Constant::getNullValue(type.getElementType()));
    }
    return llvm::ConstantVector::get(lanes);
  }

  Value* combined(llvm::IRBuilder<>& b, llvm::Instruction& inst, unsigned bits, llvm::Type& wide) {
    Value* const ones = llvm::Constant::getAllOnesValue(&wide);
    Value* const zero = llvm::Constant::getNullValue(&wide);
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&inst)) {
      Value* const taken = lanes_of(*select->getTrueValue(), bits);
      return choose(b, *select->getCondition(), taken, lanes_of(*select->getFalseValue(), bits), bits);
    }
    Value* first = inst.getOperand(0);
    Value* second = inst.getOperand(1);
    if (!llvm::isa<llvm::CmpInst>(first)) std::swap(first, second);
    Value* const other = lanes_of(*second, bits);
    const auto opcode = llvm::cast<llvm::BinaryOperator>(inst).getOpcode();
    if (!llvm::isa<llvm::CmpInst>(first)) return b.CreateBinOp(opcode, lanes_of(*first, bits), other);
    switch (opcode) {
      case llvm::Instruction::And:
        return b.CreateSelect(first, other, zero);
      case llvm::Instruction::Or:
        return b.CreateSelect(first, ones, other);
      default:  // mask_operands() leaves the exclusive or
        return b.CreateSelect(first, b.CreateNot(other), other);
    }
  }

  Value* choose(llvm::IRBuilder<>& b, Value& mask, Value* taken, Value* other, unsigned bits) {
    if (llvm::isa<llvm::CmpInst>(mask)) return b.CreateSelect(&mask, taken, other);
    Value* const lanes = lanes_of(mask, bits);
    return b.CreateOr(b.CreateAnd(lanes, taken), b.CreateAnd(b.CreateNot(lanes), other));
  }

  llvm::Function& function_;
  llvm::DenseMap<std::pair<Value*, unsigned>, Value*> lanes_;
  llvm::SmallVector<llvm::WeakTrackingVH, 16> replaced_;
};

}  // namespace

void compute_masks_as_lanes(llvm::Function& function) { LaneMasks(function).run(); }

}  // namespace quern::cpu::emit
