// SPDX-License-Identifier: Apache-2.0
// Functions in memory form, and the results of promote_slots on them. An interpreter of the few instructions
// used walks both along the same paths.
#include "cpu/emit/llvm/promote_slots.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <map>
#include <optional>
#include <random>
#include <vector>

namespace quern::cpu::emit {
namespace {

/// A function with i32 slots. Its effects are its calls of `sink`.
struct Program {
  llvm::LLVMContext context;
  llvm::Module module{"test", context};
  llvm::IRBuilder<> at{context};
  llvm::Function* function = nullptr;
  llvm::FunctionCallee sink;

  Program() {
    auto* type = llvm::FunctionType::get(at.getVoidTy(), {at.getInt32Ty()}, false);
    sink = module.getOrInsertFunction("sink", type);
    function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
    at.SetInsertPoint(block());
  }
  llvm::BasicBlock* block() { return llvm::BasicBlock::Create(context, "", function); }
  llvm::AllocaInst* slot() { return at.CreateAlloca(at.getInt32Ty()); }
  llvm::Value* argument() { return function->getArg(0); }
  llvm::Value* load(llvm::AllocaInst* from) { return at.CreateLoad(at.getInt32Ty(), from); }
  void store(llvm::AllocaInst* to, unsigned number) { at.CreateStore(at.getInt32(number), to); }
  void give(llvm::Value* value) { at.CreateCall(sink, {value}); }
  void choose(llvm::BasicBlock* taken, llvm::BasicBlock* other) {
    at.CreateCondBr(at.CreateICmpNE(argument(), at.getInt32(0)), taken, other);
  }

  void promote() {
    REQUIRE_FALSE(llvm::verifyFunction(*function, &llvm::errs()));
    const llvm::DominatorTree dominators(*function);
    promote_slots(*function, dominators);
    REQUIRE_FALSE(llvm::verifyFunction(*function, &llvm::errs()));
  }
  template <class Instruction>
  unsigned count() const {
    unsigned found = 0;
    for (const llvm::BasicBlock& each : *function)
      for (const llvm::Instruction& inst : each) found += llvm::isa<Instruction>(inst) ? 1 : 0;
    return found;
  }
};

/// The values that a walk passes to `sink`; nothing for an undefined value. `decisions` selects successors;
/// the walk ends after the last one.
std::vector<std::optional<std::uint64_t>> walk(llvm::Function& function,
                                               const std::vector<unsigned>& decisions) {
  std::vector<std::optional<std::uint64_t>> given;
  std::map<const llvm::Value*, std::optional<std::uint64_t>> memory;
  std::map<const llvm::Value*, std::optional<std::uint64_t>> values;
  const auto value_of = [&](const llvm::Value* value) -> std::optional<std::uint64_t> {
    if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(value)) return number->getZExtValue();
    const auto found = values.find(value);
    return found == values.end() ? std::nullopt : found->second;
  };
  const llvm::BasicBlock* from = nullptr;
  const llvm::BasicBlock* block = &function.getEntryBlock();
  for (const unsigned decision : decisions) {
    std::map<const llvm::Value*, std::optional<std::uint64_t>> phis;
    for (const llvm::PHINode& phi : block->phis()) phis[&phi] = value_of(phi.getIncomingValueForBlock(from));
    for (const auto& [phi, value] : phis) values[phi] = value;
    for (const llvm::Instruction& inst : *block) {
      if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&inst))
        values[load] = memory[load->getPointerOperand()];
      else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&inst))
        memory[store->getPointerOperand()] = value_of(store->getValueOperand());
      else if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&inst))
        given.push_back(value_of(call->getArgOperand(0)));
    }
    const unsigned ways = block->getTerminator()->getNumSuccessors();
    if (ways == 0) break;
    from = block;
    block = block->getTerminator()->getSuccessor(decision % ways);
  }
  return given;
}

TEST_CASE("a slot that two arms of a branch set becomes one phi") {
  Program p;
  auto *slot = p.slot(), *unread = p.slot();
  auto *left = p.block(), *right = p.block(), *join = p.block();
  p.choose(left, right);
  for (auto* arm : {left, right}) {
    p.at.SetInsertPoint(arm);
    p.store(slot, arm == left ? 1 : 2);
    p.store(unread, 3);
    p.at.CreateBr(join);
  }
  p.at.SetInsertPoint(join);
  p.give(p.load(slot));
  p.at.CreateRetVoid();
  p.promote();
  CHECK(p.count<llvm::AllocaInst>() == 0);
  CHECK(p.count<llvm::StoreInst>() == 0);
  CHECK(p.count<llvm::LoadInst>() == 0);
  CHECK(p.count<llvm::PHINode>() == 1);
  CHECK(walk(*p.function, {0, 0, 0}).at(0) == 1);
  CHECK(walk(*p.function, {1, 0, 0}).at(0) == 2);
}

TEST_CASE("slots whose contents are exchanged in a loop go round in two phis") {
  Program p;
  auto *a = p.slot(), *b = p.slot();
  p.store(a, 1);
  p.store(b, 2);
  auto *loop = p.block(), *end = p.block();
  p.at.CreateBr(loop);
  p.at.SetInsertPoint(loop);
  auto *old_a = p.load(a), *old_b = p.load(b);
  p.give(old_a);
  p.at.CreateStore(old_b, a);
  p.at.CreateStore(old_a, b);
  p.choose(loop, end);
  p.at.SetInsertPoint(end);
  p.at.CreateRetVoid();
  p.promote();
  CHECK(p.count<llvm::PHINode>() == 2);
  CHECK(walk(*p.function, {0, 0, 0, 0, 1, 0}) == std::vector<std::optional<std::uint64_t>>{1, 2, 1, 2});
}

TEST_CASE("a slot that is set again before each read needs no phi, however long the way round") {
  Program p;
  auto* slot = p.slot();
  p.store(slot, 7);
  auto *loop = p.block(), *other = p.block(), *latch = p.block();
  p.at.CreateBr(loop);
  p.at.SetInsertPoint(loop);
  p.store(slot, 1);
  p.give(p.load(slot));
  p.choose(other, latch);
  p.at.SetInsertPoint(other);
  p.store(slot, 2);
  p.at.CreateBr(latch);
  p.at.SetInsertPoint(latch);
  p.at.CreateBr(loop);
  p.promote();
  CHECK(p.count<llvm::PHINode>() == 0);
  CHECK(walk(*p.function, {0, 0, 0, 0, 1, 0, 0}) == std::vector<std::optional<std::uint64_t>>{1, 1, 1});
}

TEST_CASE("a slot that is read before it is set is undefined there") {
  Program p;
  auto* slot = p.slot();
  p.give(p.load(slot));
  p.at.CreateRetVoid();
  p.promote();
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&p.function->getEntryBlock().front());
  REQUIRE(call != nullptr);
  CHECK(llvm::isa<llvm::UndefValue>(call->getArgOperand(0)));
}

TEST_CASE("slots that are accessed in part, as another type or by others stay") {
  Program p;
  llvm::AllocaInst* slots[] = {p.slot(), p.slot(), p.slot(), p.slot()};
  p.give(p.at.CreateLoad(p.at.getInt32Ty(), slots[0], /*isVolatile=*/true));
  p.at.CreateStore(p.at.getInt8(1), slots[1]);
  p.at.CreateStore(p.at.CreatePtrToInt(slots[2], p.at.getInt32Ty()), slots[2]);
  p.give(p.at.CreateLoad(p.at.getInt32Ty(), p.at.CreateConstGEP1_32(p.at.getInt8Ty(), slots[3], 1)));
  p.at.CreateRetVoid();
  p.promote();
  CHECK(p.count<llvm::AllocaInst>() == 4);
}

TEST_CASE("accesses in blocks that cannot be reached go with their slot") {
  Program p;
  auto* slot = p.slot();
  auto *join = p.block(), *nowhere = p.block();
  p.store(slot, 4);
  p.at.CreateBr(join);
  p.at.SetInsertPoint(nowhere);
  auto* there = p.load(slot);
  p.at.CreateStore(p.at.CreateAdd(there, p.at.getInt32(1)), slot);
  p.at.CreateBr(join);
  p.at.SetInsertPoint(join);
  p.give(p.load(slot));
  p.at.CreateRetVoid();
  p.promote();
  CHECK(p.count<llvm::AllocaInst>() == 0);
  CHECK(walk(*p.function, {0, 0}).at(0) == 4);
}

/// A graph of blocks with loops, including loops with several entries and switches with equal targets.
void fill_at_random(Program& p, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return random() % n; };
  std::vector<llvm::AllocaInst*> slots;
  for (std::size_t i = 0; i < 1 + below(5); ++i) slots.push_back(p.slot());
  std::vector<llvm::BasicBlock*> blocks;
  for (std::size_t i = 0; i < 2 + below(14); ++i) blocks.push_back(p.block());
  const auto any_block = [&] { return blocks[below(blocks.size())]; };
  for (llvm::AllocaInst* slot : slots)
    if (below(4) != 0) p.store(slot, static_cast<unsigned>(below(100)));
  p.at.CreateBr(blocks[0]);
  for (llvm::BasicBlock* block : blocks) {
    p.at.SetInsertPoint(block);
    for (std::size_t i = below(6); i > 0; --i) {
      llvm::AllocaInst* slot = slots[below(slots.size())];
      switch (below(4)) {
        case 0:
          p.store(slot, static_cast<unsigned>(below(1000)));
          break;
        case 1:
          p.at.CreateStore(p.load(slots[below(slots.size())]), slot);
          break;
        default:
          p.give(p.load(slot));
      }
    }
    if (below(5) == 0) {
      auto* choice = p.at.CreateSwitch(p.argument(), any_block());
      auto* twice = any_block();
      for (unsigned i = 0; i < 3; ++i) choice->addCase(p.at.getInt32(i), i < 2 ? twice : any_block());
    } else if (below(8) == 0) {
      p.at.CreateRetVoid();
    } else {
      p.choose(any_block(), any_block());
    }
  }
}

TEST_CASE("every path through random programs gives the same values") {
  std::mt19937 random(1);
  std::size_t compared = 0;
  for (unsigned round = 0; round < 2000; ++round) {
    CAPTURE(round);
    Program p;
    fill_at_random(p, random);
    std::vector<std::vector<unsigned>> paths(20);
    for (auto& path : paths)
      for (unsigned step = 0; step < 40; ++step) path.push_back(static_cast<unsigned>(random() % 12));
    std::vector<std::vector<std::optional<std::uint64_t>>> expected;
    for (const auto& path : paths) expected.push_back(walk(*p.function, path));
    p.promote();
    REQUIRE(p.count<llvm::AllocaInst>() == 0);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const auto made = walk(*p.function, paths[i]);
      REQUIRE(made.size() == expected[i].size());
      for (std::size_t k = 0; k < made.size(); ++k)
        if (expected[i][k]) {
          REQUIRE(made[k] == expected[i][k]);
          ++compared;
        }
    }
  }
  CHECK(compared > 10000);
}

}  // namespace
}  // namespace quern::cpu::emit
