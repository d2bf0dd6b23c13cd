// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/choose_extremes.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/PatternMatch.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// A select between the operands of the comparison, whose result is inverted in some lanes.
struct Choice {
  llvm::ICmpInst* comparison = nullptr;
  llvm::Constant* inverted = nullptr;
  bool swapped = false;  ///< the select chooses the second operand where the comparison holds
};

std::optional<Choice> choice_of(const llvm::SelectInst& select) {
  using namespace llvm::PatternMatch;
  Value *comparison = nullptr, *inverted = nullptr;
  if (!select.getType()->isIntOrIntVectorTy() ||
      !match(select.getCondition(), m_c_Xor(m_Value(comparison), m_Value(inverted))))
    return std::nullopt;
  if (llvm::isa<llvm::Constant>(comparison)) std::swap(comparison, inverted);
  Choice found{llvm::dyn_cast<llvm::ICmpInst>(comparison), llvm::dyn_cast<llvm::Constant>(inverted)};
  if (found.comparison == nullptr || found.inverted == nullptr || !found.comparison->isRelational())
    return std::nullopt;
  const Value* const a = found.comparison->getOperand(0);
  const Value* const b = found.comparison->getOperand(1);
  found.swapped = select.getTrueValue() == b;
  if (select.getTrueValue() != (found.swapped ? b : a) || select.getFalseValue() != (found.swapped ? a : b))
    return std::nullopt;
  return found;
}

/// By lane: the index of the operand of the permutation, or nothing if some lane of `inverted` is not known.
std::optional<std::vector<int>> lanes_of(const llvm::Constant& inverted) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(inverted.getType());
  if (type == nullptr) return std::nullopt;
  std::vector<int> lanes;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    const auto* bit = llvm::dyn_cast_or_null<llvm::ConstantInt>(inverted.getAggregateElement(lane));
    if (bit == nullptr) return std::nullopt;
    lanes.push_back(static_cast<int>(lane + (bit->isOne() ? type->getNumElements() : 0)));
  }
  return lanes;
}

llvm::Intrinsic::ID extreme(bool is_signed, bool largest) {
  if (is_signed) return largest ? llvm::Intrinsic::smax : llvm::Intrinsic::smin;
  return largest ? llvm::Intrinsic::umax : llvm::Intrinsic::umin;
}

}  // namespace

void choose_extremes(llvm::Function& function) {
  std::map<std::pair<llvm::ICmpInst*, bool>, Value*> made;  // by comparison and whether it is the larger one
  for (llvm::Instruction& inst : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* const select = llvm::dyn_cast<llvm::SelectInst>(&inst);
    const std::optional<Choice> choice = select == nullptr ? std::nullopt : choice_of(*select);
    const auto lanes = choice ? lanes_of(*choice->inverted) : std::nullopt;
    if (!lanes) continue;
    llvm::ICmpInst& comparison = *choice->comparison;
    const auto number = [&](bool largest) {
      Value*& value = made[{&comparison, largest}];
      if (value == nullptr) {
        llvm::IRBuilder<> b(comparison.getNextNode());
        value = b.CreateBinaryIntrinsic(extreme(comparison.isSigned(), largest), comparison.getOperand(0),
                                        comparison.getOperand(1));
      }
      return value;
    };
    const bool greater =
        llvm::ICmpInst::isGT(comparison.getPredicate()) || llvm::ICmpInst::isGE(comparison.getPredicate());
    const bool largest = greater != choice->swapped;  // where the comparison is not inverted
    llvm::IRBuilder<> b(select);
    select->replaceAllUsesWith(b.CreateShuffleVector(number(largest), number(!largest), *lanes));
    select->eraseFromParent();
  }
}

}  // namespace quern::cpu::emit
