// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/mask_words.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "cpu/emit/llvm/opaque.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// The number of lanes of a mask type, or 0: masks narrower than a byte are not kept in mask registers.
unsigned lanes_of(const llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (vector == nullptr || !vector->getElementType()->isIntegerTy(1)) return 0;
  const unsigned lanes = vector->getNumElements();
  return lanes == 8 || lanes == 16 || lanes == 32 || lanes == 64 ? lanes : 0;
}

class MaskWords {
 public:
  explicit MaskWords(llvm::Function& function) : function_(function) {}

  void run() {
    const llvm::ReversePostOrderTraversal<llvm::Function*> order(&function_);
    for (llvm::BasicBlock* block : order)
      for (llvm::Instruction& inst : llvm::make_early_inc_range(*block))
        if (lanes_of(inst.getType()) != 0) visit(inst);
  }

 private:
  void visit(llvm::Instruction& inst) {
    llvm::IRBuilder<> b(&inst);
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&inst)) {
      if (!select->getCondition()->getType()->isIntegerTy(1)) return visit_lane_select(b, *select);
      Value* const taken = as_word(b, select->getTrueValue());
      replace(b, inst, b.CreateSelect(select->getCondition(), taken, as_word(b, select->getFalseValue())));
    } else if (auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(&inst)) {
      Value* const left = word_of(b, operation->getOperand(0));
      Value* const right = word_of(b, operation->getOperand(1));
      if (left != nullptr && right != nullptr)
        replace(b, inst, b.CreateBinOp(operation->getOpcode(), left, right));
    }
  }

  /// LLVM's optimiser writes a logical operation on two masks as a selection by one of them.
  void visit_lane_select(llvm::IRBuilder<>& b, llvm::SelectInst& select) {
    Value* const condition = word_of(b, select.getCondition());
    Value* const taken = word_of(b, select.getTrueValue());
    Value* const otherwise = word_of(b, select.getFalseValue());
    if (condition == nullptr || taken == nullptr || otherwise == nullptr) return;
    replace(b, select,
            b.CreateOr(b.CreateAnd(condition, taken), b.CreateAnd(b.CreateNot(condition), otherwise)));
  }

  void replace(llvm::IRBuilder<>& b, llvm::Instruction& inst, Value* word) {
    Value* const hidden = opaque(b, word, 'r');
    Value* const mask = b.CreateBitCast(hidden, inst.getType());
    words_[mask] = hidden;
    inst.replaceAllUsesWith(mask);
    inst.eraseFromParent();
  }

  /// The word that a mask was converted from, or null for a comparison of lanes.
  Value* word_of(llvm::IRBuilder<>& b, Value* mask) {
    if (const auto found = words_.find(mask); found != words_.end()) return found->second;
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(mask)) return word_of_constant(b, *constant);
    const auto* cast = llvm::dyn_cast<llvm::BitCastInst>(mask);
    return cast != nullptr && cast->getSrcTy()->isIntegerTy() ? cast->getOperand(0) : nullptr;
  }
  static Value* word_of_constant(llvm::IRBuilder<>& b, llvm::Constant& mask) {
    const unsigned lanes = lanes_of(mask.getType());
    std::uint64_t word = 0;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const llvm::Constant* const bit = mask.getAggregateElement(lane);
      const bool known =
          bit != nullptr && (llvm::isa<llvm::ConstantInt>(bit) || llvm::isa<llvm::UndefValue>(bit));
      if (!known) return b.CreateBitCast(&mask, b.getIntNTy(lanes));  // an expression, or one in a lane
      if (bit->isOneValue()) word |= std::uint64_t{1} << lane;
    }
    return b.getIntN(lanes, word);
  }
  Value* as_word(llvm::IRBuilder<>& b, Value* mask) {
    Value* const word = word_of(b, mask);
    return word != nullptr ? word : b.CreateBitCast(mask, b.getIntNTy(lanes_of(mask->getType())));
  }

  llvm::Function& function_;
  llvm::DenseMap<Value*, Value*> words_;
};

}  // namespace

void compute_masks_as_words(llvm::Function& function) { MaskWords(function).run(); }

}  // namespace quern::cpu::emit
