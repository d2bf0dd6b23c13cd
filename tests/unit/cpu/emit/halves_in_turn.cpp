// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/halves_in_turn.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <random>
#include <vector>

#include "vector_interpreter.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kWarp = 32;

struct Program {
  Program() : module("halves", context), b(context) {
    const std::vector<llvm::Type*> pointers(64, b.getPtrTy());
    function = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), pointers, false),
                                      llvm::Function::ExternalLinkage, "k", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  }
  Value* load(unsigned number, unsigned lanes = kWarp) {
    return b.CreateLoad(llvm::FixedVectorType::get(b.getInt32Ty(), lanes), function->getArg(number));
  }
  void store(Value* value) { b.CreateStore(value, function->getArg(63)); }
  /// Runs the pass; returns whether it changed anything.
  bool run() {
    b.CreateRetVoid();
    REQUIRE_FALSE(llvm::verifyFunction(*function));
    test::VectorInterpreter interpreter;
    const std::vector<test::Lanes> expected = interpreter.stored_by(*function);
    const bool changed = take_halves_in_turn(*function);
    REQUIRE_FALSE(llvm::verifyFunction(*function));
    CHECK(test::agree(expected, interpreter.stored_by(*function)));
    return changed;
  }
  unsigned wide_operations() const {
    unsigned found = 0;
    for (const llvm::Instruction& inst : llvm::instructions(*function)) {
      const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(inst.getType());
      found += inst.isBinaryOp() && type != nullptr && type->getNumElements() == kWarp ? 1 : 0;
    }
    return found;
  }

  llvm::LLVMContext context;
  llvm::Module module;
  llvm::IRBuilder<> b;
  llvm::Function* function = nullptr;
};

/// `sums` sums of `rounds` products.
void sum_products(Program& p, unsigned sums, unsigned rounds) {
  std::vector<Value*> all;
  for (unsigned i = 0; i < sums; ++i) all.push_back(p.load(i));
  for (unsigned round = 0; round < rounds; ++round) {
    Value* const factor = p.load(sums + round);
    for (Value*& sum : all) sum = p.b.CreateAdd(sum, p.b.CreateMul(sum, factor));
  }
  for (Value* const sum : all) p.store(sum);
}

}  // namespace

TEST_CASE("more sums than registers are computed by halves, each in blocks of its own") {
  Program p;
  sum_products(p, 28, 4);
  CHECK(p.run());
  CHECK(p.wide_operations() == 0);
  CHECK(p.function->size() > 2);
}

TEST_CASE("code that fits the registers, or that is a chain, stays") {
  Program few;
  sum_products(few, 12, 8);
  CHECK_FALSE(few.run());
  Program chain;  // of which each operation waits for the one before
  std::vector<Value*> all;
  for (unsigned i = 0; i < 40; ++i) all.push_back(chain.load(i));
  Value* last = all[0];
  for (unsigned round = 0; round < 4; ++round)
    for (Value* const each : all) last = chain.b.CreateMul(chain.b.CreateAdd(last, each), each);
  chain.store(last);
  CHECK_FALSE(chain.run());
}

TEST_CASE("code whose results mix lanes of both halves stays") {
  for (const bool mixes : {false, true}) {
    Program p;
    std::vector<Value*> all;
    for (unsigned i = 0; i < 28; ++i) all.push_back(p.load(i));
    std::vector<int> reversed;
    for (unsigned lane = 0; lane < kWarp; ++lane) reversed.push_back(static_cast<int>(kWarp - 1 - lane));
    for (unsigned round = 0; round < 4; ++round)
      for (Value*& sum : all) {
        sum = p.b.CreateAdd(p.b.CreateMul(sum, sum), sum);
        if (mixes) sum = p.b.CreateShuffleVector(sum, reversed);
      }
    for (Value* const sum : all) p.store(sum);
    CHECK(p.run() != mixes);
  }
}

TEST_CASE("code in halves computes the same") {
  std::mt19937 random(1);
  const auto below = [&](std::size_t limit) { return static_cast<unsigned>(random() % limit); };
  unsigned changed = 0;
  for (unsigned round = 0; round < 200; ++round) {
    Program p;
    std::vector<Value*> wide, half;
    for (unsigned i = 0; i < 40; ++i) wide.push_back(p.load(i));
    for (unsigned i = 40; i < 44; ++i) half.push_back(p.load(i, kWarp / 2));
    const auto any = [&](const std::vector<Value*>& of) { return of[below(of.size())]; };
    for (unsigned i = 0; i < 300; ++i) {
      const unsigned kind = below(20);
      if (kind < 10) {
        wide.push_back(p.b.CreateAdd(any(wide), any(wide)));
      } else if (kind < 13) {
        wide.push_back(p.b.CreateXor(any(wide), p.b.CreateVectorSplat(kWarp, p.b.getInt32(i))));
      } else if (kind < 15) {
        wide.push_back(p.b.CreateSelect(p.b.CreateICmpULT(any(wide), any(wide)), any(wide), any(wide)));
      } else if (kind < 16) {  // within halves, or over both
        std::vector<int> lanes;
        const bool within = below(2) == 0;
        for (unsigned lane = 0; lane < kWarp; ++lane)
          lanes.push_back(below(10) == 0 ? -1
                                         : static_cast<int>(within ? lane / 16 * 16 + below(16) : below(64)));
        wide.push_back(p.b.CreateShuffleVector(any(wide), any(wide), lanes));
      } else if (kind < 18) {  // a half taken out
        std::vector<int> lanes;
        const unsigned from = below(2) * 16;
        for (unsigned lane = 0; lane < 16; ++lane) lanes.push_back(static_cast<int>(from + lane));
        half.push_back(p.b.CreateAdd(p.b.CreateShuffleVector(any(wide), lanes), any(half)));
      } else {  // two halves put together
        std::vector<int> lanes;
        for (unsigned lane = 0; lane < kWarp; ++lane) lanes.push_back(static_cast<int>(lane));
        wide.push_back(p.b.CreateShuffleVector(any(half), any(half), lanes));
      }
    }
    for (std::size_t i = wide.size() - 60; i < wide.size(); ++i) p.store(wide[i]);
    for (Value* const value : half) p.store(value);
    changed += p.run() ? 1 : 0;
  }
  CHECK(changed > 100);
}

}  // namespace quern::cpu::emit
