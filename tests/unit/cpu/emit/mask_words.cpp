// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/mask_words.hpp"

#include <doctest/doctest.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

namespace quern::cpu::emit {
namespace {

using llvm::Value;

struct Masks {
  llvm::LLVMContext context;
  llvm::Module module{"masks", context};
  llvm::IRBuilder<> b{context};
  llvm::Type* const mask = llvm::FixedVectorType::get(b.getInt1Ty(), 32);
  llvm::Type* const lanes = llvm::FixedVectorType::get(b.getInt32Ty(), 32);
  llvm::Function* const function = llvm::Function::Create(
      llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty(), b.getInt32Ty(), b.getInt1Ty(), lanes}, false),
      llvm::Function::ExternalLinkage, "k", module);

  Masks() { b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function)); }
  Value* word(unsigned index) { return b.CreateBitCast(function->getArg(index), mask); }
  Value* compared() { return b.CreateICmpEQ(function->getArg(3), llvm::Constant::getNullValue(lanes)); }
  /// Counts the remaining operations on masks that the code generator could rewrite.
  unsigned finish(Value* result) {
    b.CreateRet(b.CreateBitCast(result, b.getInt32Ty()));
    compute_masks_as_words(*function);
    CHECK_FALSE(llvm::verifyFunction(*function));
    unsigned left = 0;
    for (const llvm::Instruction& inst : llvm::instructions(*function))
      left += inst.getType() == mask && (llvm::isa<llvm::BinaryOperator, llvm::SelectInst>(inst)) ? 1 : 0;
    return left;
  }
};

TEST_CASE("masks that are words are combined and selected as words") {
  Masks masks;
  Value* const first = masks.word(0);
  Value* const second = masks.word(1);
  Value* const constant = llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(32), masks.b.getTrue());
  Value* const chosen = masks.b.CreateSelect(masks.function->getArg(2), first, constant);
  CHECK(masks.finish(masks.b.CreateXor(masks.b.CreateOr(first, second), masks.b.CreateAnd(chosen, second))) ==
        0);
}

TEST_CASE("a selection by a mask between masks that are words is a word") {
  Masks masks;
  Value* const first = masks.word(0);
  Value* const second = masks.word(1);
  Value* const all = llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(32), masks.b.getTrue());
  CHECK(masks.finish(masks.b.CreateSelect(first, all, second)) == 0);
}

TEST_CASE("a selection by a mask that was compared stays") {
  Masks masks;
  CHECK(masks.finish(masks.b.CreateSelect(masks.compared(), masks.word(0), masks.word(1))) == 1);
}

TEST_CASE("masks from comparisons stay where they are") {
  Masks masks;
  CHECK(masks.finish(
            masks.b.CreateAnd(masks.b.CreateOr(masks.compared(), masks.word(0)), masks.compared())) == 2);
}

TEST_CASE("lanes of a constant that are expressions keep their values") {
  constexpr std::uint64_t kWord = 0x00ffa5f0;
  Masks masks;
  llvm::Constant* const words = llvm::ConstantVector::get({masks.b.getInt32(kWord)});
  llvm::SmallVector<llvm::Constant*, 32> lanes;
  for (unsigned lane = 0; lane < 32; ++lane)
    lanes.push_back(llvm::ConstantExpr::getExtractElement(llvm::ConstantExpr::getBitCast(words, masks.mask),
                                                          masks.b.getInt32(lane)));
  // No constant folding, as in code that is made quickly.
  Value* const both = llvm::BinaryOperator::Create(
      llvm::Instruction::Or, masks.word(0), llvm::ConstantVector::get(lanes), "", masks.b.GetInsertBlock());
  masks.finish(both);
  unsigned found = 0;
  for (const llvm::Instruction& inst : llvm::instructions(*masks.function)) {
    if (!llvm::isa<llvm::BinaryOperator>(inst)) continue;
    const auto* const constant = llvm::dyn_cast<llvm::Constant>(inst.getOperand(1));
    REQUIRE(constant != nullptr);
    const auto* const word =
        llvm::dyn_cast<llvm::ConstantInt>(llvm::ConstantFoldConstant(constant, masks.module.getDataLayout()));
    REQUIRE(word != nullptr);
    CHECK(word->getZExtValue() == kWord);
    ++found;
  }
  CHECK(found == 1);
}

}  // namespace
}  // namespace quern::cpu::emit
