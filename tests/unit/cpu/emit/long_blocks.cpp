// SPDX-License-Identifier: Apache-2.0
// Straight-line functions of several lengths, and what cut_long_blocks makes of them. The expected values are
// those of the same program, computed here step by step.
#include "cpu/emit/llvm/long_blocks.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace quern::cpu::emit {
namespace {

/// Variables, then sums of values that were computed `distance` and one instructions before.
struct Program {
  llvm::LLVMContext context;
  llvm::Module module{"test", context};
  llvm::Function* function = nullptr;

  Program(unsigned variables, unsigned sums, unsigned distance) {
    llvm::IRBuilder<> at(context);
    auto* type = llvm::FunctionType::get(at.getInt32Ty(), {at.getInt32Ty()}, false);
    function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
    at.SetInsertPoint(llvm::BasicBlock::Create(context, "", function));
    for (unsigned i = 0; i < variables; ++i) at.CreateAlloca(at.getInt32Ty());
    std::vector<llvm::Value*> values{function->getArg(0)};
    for (unsigned i = 0; i < sums; ++i)
      values.push_back(at.CreateAdd(values[values.size() - std::min<std::size_t>(values.size(), distance)],
                                    values.back()));
    at.CreateRet(values.back());
  }

  /// Follows the branches from the entry and adds.
  std::uint32_t run(std::uint32_t argument) const {
    std::map<const llvm::Value*, std::uint32_t> known{{function->getArg(0), argument}};
    for (const llvm::BasicBlock* block = &function->getEntryBlock(); block != nullptr;
         block = block->getSingleSuccessor())
      for (const llvm::Instruction& inst : *block) {
        if (inst.getOpcode() == llvm::Instruction::Add)
          known[&inst] = known.at(inst.getOperand(0)) + known.at(inst.getOperand(1));
        if (llvm::isa<llvm::ReturnInst>(inst)) return known.at(inst.getOperand(0));
      }
    return 0;
  }
  std::size_t longest() const {
    std::size_t size = 0;
    for (const llvm::BasicBlock& block : *function) size = std::max(size, block.size());
    return size;
  }
};

std::uint32_t expected(unsigned sums, unsigned distance, std::uint32_t argument) {
  std::vector<std::uint32_t> values{argument};
  for (unsigned i = 0; i < sums; ++i)
    values.push_back(values[values.size() - std::min<std::size_t>(values.size(), distance)] + values.back());
  return values.back();
}

TEST_CASE("blocks up to the limit stay whole") {
  Program program(0, kMaxBlockInsts - 1, 3);
  CHECK_FALSE(cut_long_blocks(*program.function));
  CHECK(program.function->size() == 1);
}

TEST_CASE("longer blocks are cut, and compute the same") {
  for (const unsigned sums : {kMaxBlockInsts, 2 * kMaxBlockInsts + 77, 50'000u}) {
    Program program(0, sums, 9);
    CHECK(cut_long_blocks(*program.function));
    REQUIRE_FALSE(llvm::verifyFunction(*program.function, &llvm::errs()));
    CHECK(program.longest() <= kMaxBlockInsts / 2 + 1);
    CHECK(program.function->size() >= sums / kMaxBlockInsts);
    CHECK(program.run(5) == expected(sums, 9, 5));
    CHECK_FALSE(cut_long_blocks(*program.function));
  }
}

TEST_CASE("variables stay in the entry block") {
  Program program(kMaxBlockInsts, 3 * kMaxBlockInsts, 2);
  CHECK(cut_long_blocks(*program.function));
  REQUIRE_FALSE(llvm::verifyFunction(*program.function, &llvm::errs()));
  CHECK(program.function->size() > 1);
  for (const llvm::BasicBlock& block : *program.function)
    for (const llvm::Instruction& inst : block)
      if (llvm::isa<llvm::AllocaInst>(inst)) REQUIRE(&block == &program.function->getEntryBlock());
  CHECK(program.run(7) == expected(3 * kMaxBlockInsts, 2, 7));
}

TEST_CASE("blocks are cut where few values are live") {
  // Groups of 100 values that are all read at the end of their group: one value is live between groups.
  llvm::LLVMContext context;
  llvm::Module module("test", context);
  llvm::IRBuilder<> at(context);
  auto* type = llvm::FunctionType::get(at.getInt32Ty(), {at.getInt32Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
  at.SetInsertPoint(llvm::BasicBlock::Create(context, "", function));
  llvm::Value* carried = function->getArg(0);
  for (unsigned group = 0; group < 100; ++group) {
    std::vector<llvm::Value*> values;
    for (unsigned i = 0; i < 100; ++i) values.push_back(at.CreateXor(carried, at.getInt32(i + 1)));
    for (llvm::Value* value : values) carried = at.CreateAdd(carried, value);
  }
  at.CreateRet(carried);
  CHECK(cut_long_blocks(*function));
  for (const llvm::BasicBlock& block : *function) {
    unsigned from_outside = 0;
    std::vector<const llvm::Value*> seen;
    for (const llvm::Instruction& inst : block)
      for (const llvm::Value* operand : inst.operands())
        if (const auto* other = llvm::dyn_cast<llvm::Instruction>(operand);
            other != nullptr && other->getParent() != &block &&
            std::ranges::find(seen, operand) == seen.end()) {
          seen.push_back(operand);
          ++from_outside;
        }
    CHECK(from_outside <= 2);
  }
}

}  // namespace
}  // namespace quern::cpu::emit
