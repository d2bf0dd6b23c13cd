// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/lane_masks.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <random>
#include <vector>

#include "vector_interpreter.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kLanes = 32;

/// A function of pointers to vectors that stores the elements that masks choose.
struct Program {
  llvm::LLVMContext context;
  llvm::Module module{"masks", context};
  llvm::IRBuilder<> b{context};
  llvm::Function* const function = llvm::Function::Create(
      llvm::FunctionType::get(b.getVoidTy(), std::vector<llvm::Type*>(8, b.getPtrTy()), false),
      llvm::Function::ExternalLinkage, "k", module);

  Program() { b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function)); }
  Value* element(unsigned argument, unsigned bits) {
    return b.CreateLoad(llvm::FixedVectorType::get(b.getIntNTy(bits), kLanes), function->getArg(argument));
  }
  Value* less(unsigned first, unsigned second, unsigned bits = 32) {
    return b.CreateICmpULT(element(first, bits), element(second, bits));
  }
  Value* every(unsigned lanes) {
    std::vector<llvm::Constant*> made;
    for (unsigned lane = 0; lane < kLanes; ++lane) made.push_back(b.getInt1((lanes >> lane & 1) != 0));
    return llvm::ConstantVector::get(made);
  }
  void choose(Value* mask, unsigned bits) {
    b.CreateStore(b.CreateSelect(mask, element(6, bits), element(7, bits)), function->getArg(0));
  }
  /// Returns how many operations on masks are left, and checks that the same elements are stored.
  unsigned finish() {
    b.CreateRetVoid();
    test::VectorInterpreter interpreter;
    const std::vector<test::Lanes> before = interpreter.stored_by(*function);
    compute_masks_as_lanes(*function);
    CHECK_FALSE(llvm::verifyFunction(*function));
    CHECK(test::agree(before, interpreter.stored_by(*function)));
    unsigned left = 0;
    for (const llvm::Instruction& inst : llvm::instructions(*function))
      left += inst.getType()->getScalarSizeInBits() == 1 && !llvm::isa<llvm::CmpInst>(inst) ? 1 : 0;
    return left;
  }
};

TEST_CASE("a mask of three comparisons is computed in the width of the elements that it chooses") {
  for (const unsigned bits : {32u, 64u}) {
    Program p;
    Value* const mask = p.b.CreateOr(p.less(1, 2), p.b.CreateAnd(p.less(2, 3, 64), p.less(3, 4)));
    p.choose(mask, bits);
    CHECK(p.finish() == 0);
  }
}

TEST_CASE("a mask may choose elements of several widths") {
  Program p;
  Value* const mask = p.b.CreateAnd(p.less(1, 2), p.b.CreateOr(p.less(2, 3), p.less(3, 4)));
  for (const unsigned bits : {32u, 64u, 32u}) p.choose(mask, bits);
  CHECK(p.finish() == 0);
}

TEST_CASE("masks of two comparisons, and those that choose smaller elements, stay") {
  Program two;
  two.choose(two.b.CreateAnd(two.less(1, 2), two.less(2, 3)), 32);
  CHECK(two.finish() == 1);
  Program bytes;
  bytes.choose(bytes.b.CreateOr(bytes.less(1, 2), bytes.b.CreateAnd(bytes.less(2, 3), bytes.less(3, 4))), 8);
  CHECK(bytes.finish() == 2);
}

TEST_CASE("masks that come from elsewhere stay") {
  Program p;
  Value* const loaded = p.element(5, 1);
  p.choose(p.b.CreateOr(p.less(1, 2), p.b.CreateAnd(p.less(2, 3), loaded)), 32);
  CHECK(p.finish() == 3);  // the load, too
}

TEST_CASE("masks of any operations choose the same elements as before") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Program p;
    std::vector<Value*> masks;
    for (unsigned i = 0; i < 4; ++i) masks.push_back(p.less(i, i + 1, i == 3 ? 64 : 32));
    masks.push_back(p.every(static_cast<unsigned>(random())));
    for (int i = 0; i < 5; ++i) {
      const auto any = [&] { return masks[random() % masks.size()]; };
      Value *const a = any(), *const c = any(), *const d = any();
      switch (random() % 5) {
        case 0:
          masks.push_back(p.b.CreateAnd(a, c));
          break;
        case 1:
          masks.push_back(p.b.CreateOr(a, c));
          break;
        case 2:
          masks.push_back(p.b.CreateXor(a, c));
          break;
        case 3:
          masks.push_back(p.b.CreateXor(a, p.every(~0u)));
          break;
        default:
          masks.push_back(p.b.CreateSelect(a, c, d));
          break;
      }
      p.choose(masks.back(), random() % 2 == 0 ? 32 : 64);
    }
    p.finish();
  }
}

}  // namespace
}  // namespace quern::cpu::emit
