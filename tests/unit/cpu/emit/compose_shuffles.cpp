// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/compose_shuffles.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <map>
#include <random>
#include <vector>

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kSources = 3;

/// A function that loads vectors of 32 numbers, permutes them, and stores the results.
struct Program {
  Program() : module("compose", context), b(context) {
    function = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
                                      llvm::Function::ExternalLinkage, "k", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
    for (unsigned i = 0; i < kSources; ++i)
      sources.push_back(b.CreateLoad(llvm::FixedVectorType::get(b.getInt32Ty(), 32), function->getArg(0)));
  }
  void store(Value* value) { b.CreateStore(value, function->getArg(0)); }
  void finish() {
    b.CreateRetVoid();
    REQUIRE_FALSE(llvm::verifyFunction(*function));
  }
  unsigned shuffles() const {
    unsigned found = 0;
    for (const llvm::Instruction& inst : llvm::instructions(*function))
      found += llvm::isa<llvm::ShuffleVectorInst>(inst) ? 1 : 0;
    return found;
  }

  llvm::LLVMContext context;
  llvm::Module module;
  llvm::IRBuilder<> b;
  llvm::Function* function = nullptr;
  std::vector<Value*> sources;
};

/// The numbers that each store stores: lane l of load n contains 100 (n + 1) + l. 0: poison.
std::vector<std::vector<int>> stored_by(const Program& program) {
  std::map<const Value*, std::vector<int>> values;
  std::vector<std::vector<int>> stored;
  int loads = 0;
  const auto lanes_of = [&](const Value* value) {
    const auto known = values.find(value);
    if (known != values.end()) return known->second;
    const auto* type = llvm::cast<llvm::FixedVectorType>(value->getType());
    return std::vector<int>(type->getNumElements(), 0);
  };
  for (const llvm::Instruction& inst : llvm::instructions(*program.function)) {
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&inst)) {
      ++loads;
      for (int lane = 0; lane < 32; ++lane) values[load].push_back(100 * loads + lane);
    } else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&inst)) {
      stored.push_back(lanes_of(store->getValueOperand()));
    } else if (const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&inst)) {
      std::vector<int> both = lanes_of(shuffle->getOperand(0));
      const std::vector<int> second = lanes_of(shuffle->getOperand(1));
      both.insert(both.end(), second.begin(), second.end());
      for (const int from : shuffle->getShuffleMask())
        values[&inst].push_back(from < 0 ? 0 : both[static_cast<std::size_t>(from)]);
    } else if (llvm::isa<llvm::BitCastInst>(inst)) {
      values[&inst] = lanes_of(inst.getOperand(0));
    }
  }
  return stored;
}

/// True if every element that `before` determines is the same in `after`.
bool agree(const std::vector<std::vector<int>>& before, const std::vector<std::vector<int>>& after) {
  if (before.size() != after.size()) return false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].size() != after[i].size()) return false;
    for (std::size_t lane = 0; lane < before[i].size(); ++lane)
      if (before[i][lane] != 0 && before[i][lane] != after[i][lane]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("two exchanges of halves of registers are one permutation") {
  Program p;
  const std::vector<int> even{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
  const std::vector<int> odd{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
  std::vector<int> zipped;
  for (int lane = 0; lane < 16; ++lane) zipped.insert(zipped.end(), {lane, lane + 16});
  Value* const whole =
      p.b.CreateShuffleVector(p.b.CreateShuffleVector(p.sources[0], even),
                              p.b.CreateShuffleVector(p.sources[0], odd), zipped);  // sources[0] again
  p.store(p.b.CreateShuffleVector(whole, even));
  p.store(whole);
  p.finish();
  const auto expected = stored_by(p);
  compose_shuffles(*p.function, 512);
  REQUIRE_FALSE(llvm::verifyFunction(*p.function));
  CHECK(agree(expected, stored_by(p)));
  CHECK(p.shuffles() == 4);  // the two registers of the source, the permutation, and both registers joined
}

TEST_CASE("elements of three registers keep their permutations") {
  Program p;
  const std::vector<int> some{0, 1, 32, 33, -1, -1, -1, -1}, more{0, 1, 2, 3, 8, 9, -1, -1};
  Value* const two = p.b.CreateShuffleVector(p.sources[0], p.sources[1], some);
  Value* const third = p.b.CreateShuffleVector(p.sources[2], std::vector<int>{4, 5, -1, -1, -1, -1, -1, -1});
  p.store(p.b.CreateShuffleVector(two, third, more));
  p.finish();
  const auto expected = stored_by(p);
  compose_shuffles(*p.function, 512);
  CHECK(p.shuffles() == 3);
  CHECK(agree(expected, stored_by(p)));
}

TEST_CASE("composed permutations move the same elements") {
  std::mt19937 random(1);
  const auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  unsigned before = 0, after = 0;
  for (unsigned round = 0; round < 300; ++round) {
    Program p;
    std::vector<Value*> values = p.sources;
    for (unsigned each = 0; each < 12; ++each) {
      Value* const a =
          values[below(2) == 0 ? below(static_cast<unsigned>(values.size())) : values.size() - 1];
      std::vector<Value*> same;
      for (Value* const value : values)
        if (value->getType() == a->getType()) same.push_back(value);
      Value* const second = same[below(static_cast<unsigned>(same.size()))];
      const unsigned lanes = llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements();
      const unsigned count = 4u << below(4), begin = below(2 * lanes), step = below(3) + 1;
      std::vector<int> mask;
      for (unsigned lane = 0; lane < count; ++lane)
        mask.push_back(below(10) == 0 ? -1 : static_cast<int>((begin + lane * step) % (2 * lanes)));
      Value* made = p.b.CreateShuffleVector(a, second, mask);
      if (below(5) == 0)
        made = p.b.CreateBitCast(
            made,
            llvm::FixedVectorType::get(
                made->getType()->getScalarType()->isFloatTy() ? p.b.getInt32Ty() : p.b.getFloatTy(), count));
      values.push_back(made);
      if (below(3) == 0) p.store(made);
    }
    p.store(values.back());
    p.finish();
    const auto expected = stored_by(p);
    before += p.shuffles();
    compose_shuffles(*p.function, round % 2 == 0 ? 256 : 512);
    REQUIRE_FALSE(llvm::verifyFunction(*p.function));
    REQUIRE(agree(expected, stored_by(p)));
    after += p.shuffles();
  }
  CHECK(after < before);
}

}  // namespace quern::cpu::emit
