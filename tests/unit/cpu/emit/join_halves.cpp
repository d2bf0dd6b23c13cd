// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/join_halves.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <vector>

#include "vector_interpreter.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kLanes = 8;

struct Program {
  Program() : module("halves", context), b(context) {
    const std::vector<llvm::Type*> pointers(4, b.getPtrTy());
    function = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), pointers, false),
                                      llvm::Function::ExternalLinkage, "k", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  }
  llvm::Type* type(unsigned bits) { return llvm::FixedVectorType::get(b.getIntNTy(bits), kLanes); }
  Value* load(unsigned number, unsigned bits = 64) {
    return b.CreateLoad(type(bits), function->getArg(number));
  }
  Value* by(std::uint64_t bits) { return b.CreateVectorSplat(kLanes, b.getInt64(bits)); }
  Value* low(Value* whole) { return b.CreateTrunc(whole, type(32)); }
  Value* high(Value* whole, unsigned bits = 32) {
    return b.CreateTrunc(b.CreateLShr(whole, by(bits)), type(32));
  }
  Value* permuted(Value* value, std::vector<int> lanes) { return b.CreateShuffleVector(value, lanes); }
  void store_joined(Value* low, Value* high, unsigned bits = 32, bool swapped = false) {
    Value* const upper = b.CreateShl(b.CreateZExt(high, type(64)), by(bits));
    Value* const lower = b.CreateZExt(low, type(64));
    b.CreateStore(swapped ? b.CreateOr(lower, upper) : b.CreateOr(upper, lower), function->getArg(3));
  }
  /// True if the last store is of a value that no `or` computes.
  bool joined() const {
    const llvm::StoreInst* last = nullptr;
    for (const llvm::Instruction& inst : llvm::instructions(*function))
      if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&inst)) last = store;
    const auto* const value = llvm::dyn_cast<llvm::BinaryOperator>(last->getValueOperand());
    return value == nullptr || value->getOpcode() != llvm::Instruction::Or;
  }
  /// Runs the pass; returns whether it joined the halves.
  bool run() {
    b.CreateRetVoid();
    test::VectorInterpreter interpreter;
    const std::vector<test::Lanes> expected = interpreter.stored_by(*function);
    join_halves(*function);
    REQUIRE_FALSE(llvm::verifyFunction(*function));
    CHECK(test::agree(expected, interpreter.stored_by(*function)));
    return joined();
  }

  llvm::LLVMContext context;
  llvm::Module module;
  llvm::IRBuilder<> b;
  llvm::Function* function = nullptr;
};

const std::vector<int> kTurned{1, 2, 3, 4, 5, 6, 7, 0}, kFirst(kLanes, 0), kSome{3, -1, 3, 2, -1, 0, 7, 7};

}  // namespace

TEST_CASE("halves that are permuted alike are one permutation") {
  for (const std::vector<int>& lanes : {kTurned, kFirst, kSome})
    for (const bool swapped : {false, true}) {
      Program p;
      Value* const whole = p.load(0);
      p.store_joined(p.permuted(p.low(whole), lanes), p.permuted(p.high(whole), lanes), 32, swapped);
      CHECK(p.run());
    }
}

TEST_CASE("a row of permutations, of two vectors and chosen between, is joined") {
  Program p;
  Value *const one = p.load(0), *const other = p.load(1);
  Value* const chosen = p.b.CreateICmpULT(p.load(2), p.by(std::uint64_t{1} << 63));
  const std::vector<int> mixed{0, 9, 2, 11, 4, 13, 6, 15};
  const auto half = [&](Value* a, Value* b) {
    return p.permuted(p.b.CreateSelect(chosen, p.b.CreateShuffleVector(a, b, mixed), a), kTurned);
  };
  p.store_joined(half(p.low(one), p.low(other)), half(p.high(one), p.high(other)));
  CHECK(p.run());
}

TEST_CASE("halves that differ in anything stay apart") {
  const auto joins = [](auto&& low_of, auto&& high_of, unsigned bits = 32) {
    Program p;
    Value *const one = p.load(0), *const other = p.load(1);
    p.store_joined(low_of(p, one, other), high_of(p, one, other), bits);
    return p.run();
  };
  const auto low = [](Program& p, Value* one, Value*) { return p.permuted(p.low(one), kTurned); };
  const auto high = [](Program& p, Value* one, Value*) { return p.permuted(p.high(one), kTurned); };
  CHECK(joins(low, high));
  SUBCASE("in their permutation") {
    CHECK_FALSE(joins(low, [](Program& p, Value* one, Value*) { return p.permuted(p.high(one), kFirst); }));
  }
  SUBCASE("in their source") {
    CHECK_FALSE(
        joins(low, [](Program& p, Value*, Value* other) { return p.permuted(p.high(other), kTurned); }));
  }
  SUBCASE("in the bits that are taken") {
    CHECK_FALSE(
        joins(low, [](Program& p, Value* one, Value*) { return p.permuted(p.high(one, 31), kTurned); }));
  }
  SUBCASE("in the place where they are put") { CHECK_FALSE(joins(low, high, 31)); }
  SUBCASE("in their order") { CHECK_FALSE(joins(high, low)); }
  SUBCASE("as one was loaded") {
    CHECK_FALSE(joins(low, [](Program& p, Value*, Value*) { return p.permuted(p.load(2, 32), kTurned); }));
  }
}

}  // namespace quern::cpu::emit
