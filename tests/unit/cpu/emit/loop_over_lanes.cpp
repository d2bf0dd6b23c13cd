// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/loop_over_lanes.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Target/TargetMachine.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/code/load.hpp"
#include "cpu/emit/llvm/link.hpp"
#include "cpu/emit/llvm/llvm_target.hpp"
#include "cpu/emit/llvm/machine_code.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kWarp = 32;
using Words = std::array<std::uint32_t, kWarp>;

Words numbers() {
  Words result{};
  for (unsigned lane = 0; lane < kWarp; ++lane) result[lane] = lane * 0x9e3779b9u;
  return result;
}

/// A function f(in, out), which runs after the pass.
class Program {
 public:
  explicit Program(Isa isa)
      : machine_(make_target_machine(isa, kQuickLevel)), module_("test", context_), b(context_) {
    module_.setTargetTriple(machine_->getTargetTriple().str());
    module_.setDataLayout(machine_->createDataLayout());
    auto* const type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
    function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module_);
    b.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function));
    isa_ = isa;
  }
  llvm::FixedVectorType* words() { return llvm::FixedVectorType::get(b.getInt32Ty(), kWarp); }
  Value* in() { return b.CreateAlignedLoad(words(), function->getArg(0), llvm::Align(4)); }
  void out(Value* value) { b.CreateAlignedStore(value, function->getArg(1), llvm::Align(4)); }
  Value* splat(std::uint32_t number) { return b.CreateVectorSplat(kWarp, b.getInt32(number)); }
  /// As many operations as are worth a loop: each adds 1 and multiplies by 3.
  Value* steps(Value* value, unsigned count = 12) {
    for (unsigned i = 0; i < count; ++i) value = b.CreateMul(b.CreateAdd(value, splat(1)), splat(3));
    return value;
  }

  Words run(const Words& in) {
    b.CreateRetVoid();
    REQUIRE_FALSE(llvm::verifyFunction(*function, &llvm::errs()));
    loop_over_lanes(*function, isa_ == Isa::baseline ? 128 : 256);
    REQUIRE_FALSE(llvm::verifyFunction(*function, &llvm::errs()));
    auto object = make_object(module_, *machine_);
    REQUIRE(object.has_value());
    const auto linked = link_object((*object)->getMemBufferRef(), "f");
    REQUIRE(linked.has_value());
    const auto loaded = map_code(*linked, {});
    REQUIRE(loaded.has_value());
    Words result{};
    reinterpret_cast<void (*)(const void*, void*)>(loaded->entry)(in.data(), result.data());
    return result;
  }
  unsigned loops() const {
    unsigned found = 0;
    for (const llvm::BasicBlock& block : *function) found += block.getName().starts_with("lanes") ? 1 : 0;
    return found;
  }
  /// Operations on whole vectors.
  unsigned wide_operations() const {
    unsigned found = 0;
    for (const llvm::Instruction& inst : llvm::instructions(*function))
      found += inst.isBinaryOp() && inst.getType() == llvm::FixedVectorType::get(b.getInt32Ty(), kWarp);
    return found;
  }

 private:
  llvm::LLVMContext context_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  llvm::Module module_;
  Isa isa_{};

 public:
  mutable llvm::IRBuilder<> b;
  llvm::Function* function = nullptr;
};

std::vector<Isa> isas() {
  std::vector<Isa> all = {Isa::baseline};
  if (widest_isa() >= Isa::avx2) all.push_back(Isa::avx2);
  return all;
}

std::uint32_t stepped(std::uint32_t value, unsigned count = 12) {
  for (unsigned i = 0; i < count; ++i) value = (value + 1) * 3;
  return value;
}

/// `expected` computes a lane of what the function that `emit` makes writes.
void check(const std::function<void(Program&)>& emit, const std::function<std::uint32_t(unsigned)>& expected,
           unsigned loops, unsigned wide_operations) {
  for (const Isa isa : isas()) {
    CAPTURE(isa);
    Program p(isa);
    emit(p);
    const Words out = p.run(numbers());
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      CAPTURE(lane);
      CHECK(out[lane] == expected(lane));
    }
    CHECK(p.loops() == loops);
    CHECK(p.wide_operations() == wide_operations);
  }
}

}  // namespace

TEST_CASE("operations of lanes become a loop") {
  check([](Program& p) { p.out(p.steps(p.in())); }, [](unsigned lane) { return stepped(numbers()[lane]); }, 1,
        0);
}

TEST_CASE("few operations stay as they are") {
  check([](Program& p) { p.out(p.steps(p.in(), 1)); },
        [](unsigned lane) { return stepped(numbers()[lane], 1); }, 0, 2);
}

TEST_CASE("a lane takes its own one of constants that differ") {
  check(
      [](Program& p) {
        llvm::SmallVector<std::uint32_t, kWarp> squares;
        for (unsigned lane = 0; lane < kWarp; ++lane) squares.push_back(lane * lane);
        auto& context = p.function->getContext();
        p.out(p.steps(p.b.CreateXor(p.in(), llvm::ConstantDataVector::get(context, squares))));
      },
      [](unsigned lane) { return stepped(numbers()[lane] ^ lane * lane); }, 1, 0);
}

TEST_CASE("64-bit values, masks and masks of words have the lanes of the loop") {
  check(
      [](Program& p) {
        Value* const words = p.in();
        auto* const wide = llvm::FixedVectorType::get(p.b.getInt64Ty(), kWarp);
        Value* const product = p.b.CreateMul(p.b.CreateZExt(words, wide), p.b.CreateZExt(words, wide));
        Value* const high = p.b.CreateTrunc(p.b.CreateLShr(product, 32), p.words());
        Value* const word = p.b.CreateLoad(
            p.b.getInt32Ty(), p.b.CreateConstGEP1_32(p.b.getInt32Ty(), p.function->getArg(0), 5));
        Value* const mask = p.b.CreateBitCast(word, llvm::FixedVectorType::get(p.b.getInt1Ty(), kWarp));
        Value* const both = p.b.CreateAnd(mask, p.b.CreateICmpUGT(words, p.splat(1u << 31)));
        p.out(p.b.CreateSelect(both, p.steps(high), words));
      },
      [](unsigned lane) {
        const std::uint64_t word = numbers()[lane];
        const bool taken = (numbers()[5] >> lane & 1) != 0 && word > 1u << 31;
        return taken ? stepped(static_cast<std::uint32_t>(word * word >> 32)) : numbers()[lane];
      },
      1, 0);
}

TEST_CASE("operations that mix lanes read whole vectors, and loops behind them read theirs") {
  check(
      [](Program& p) {
        Value* const first = p.steps(p.in());
        Value* const reversed = p.b.CreateVectorReverse(first);
        p.out(p.steps(p.b.CreateAdd(reversed, first)));
      },
      [](unsigned lane) { return stepped(stepped(numbers()[kWarp - 1 - lane]) + stepped(numbers()[lane])); },
      2, 0);
}

TEST_CASE("a mask that is read whole has the bits of all lanes") {
  check(
      [](Program& p) {
        Value* const mask = p.b.CreateICmpUGT(p.steps(p.in()), p.splat(1u << 31));
        Value* const word = p.b.CreateBitCast(mask, p.b.getInt32Ty());
        p.out(p.b.CreateVectorSplat(kWarp, word));
      },
      [](unsigned) {
        std::uint32_t word = 0;
        for (unsigned lane = 0; lane < kWarp; ++lane)
          word |= (stepped(numbers()[lane]) > 1u << 31 ? 1u : 0u) << lane;
        return word;
      },
      1, 0);
}

TEST_CASE("stores to a variable are in the loop, before the accesses that follow") {
  check(
      [](Program& p) {
        Value* const variable = p.b.CreateAlloca(p.words());
        Value* const value = p.steps(p.in());
        p.b.CreateStore(value, variable);
        Value* const last =
            p.b.CreateLoad(p.b.getInt32Ty(), p.b.CreateConstGEP1_32(p.b.getInt32Ty(), variable, kWarp - 1));
        p.b.CreateStore(p.steps(p.splat(0)), variable);
        p.out(p.steps(p.b.CreateAdd(value, p.b.CreateVectorSplat(kWarp, last))));
      },
      [](unsigned lane) { return stepped(stepped(numbers()[lane]) + stepped(numbers()[kWarp - 1])); }, 2, 0);
}

TEST_CASE("phis read whole vectors, one for all edges from a block") {
  check(
      [](Program& p) {
        Value* const word = p.b.CreateLoad(p.b.getInt32Ty(), p.function->getArg(0));
        Value* const value = p.steps(p.in());
        llvm::BasicBlock* const entry = p.b.GetInsertBlock();
        auto* const other = llvm::BasicBlock::Create(p.function->getContext(), "other", p.function);
        auto* const end = llvm::BasicBlock::Create(p.function->getContext(), "end", p.function);
        llvm::SwitchInst* const choice = p.b.CreateSwitch(word, other);
        choice->addCase(p.b.getInt32(0), end);
        choice->addCase(p.b.getInt32(1), end);
        p.b.SetInsertPoint(other);
        p.b.CreateBr(end);
        p.b.SetInsertPoint(end);
        llvm::PHINode* const phi = p.b.CreatePHI(p.words(), 3);
        phi->addIncoming(value, entry);
        phi->addIncoming(value, entry);
        phi->addIncoming(p.splat(7), other);
        p.out(phi);
      },
      [](unsigned lane) { return stepped(numbers()[lane]); }, 1, 0);
}

TEST_CASE("a value that a loop of the program changes is the last one") {
  check(
      [](Program& p) {
        llvm::BasicBlock* const entry = p.b.GetInsertBlock();
        Value* const begin = p.in();
        auto* const body = llvm::BasicBlock::Create(p.function->getContext(), "body", p.function);
        auto* const end = llvm::BasicBlock::Create(p.function->getContext(), "end", p.function);
        p.b.CreateBr(body);
        p.b.SetInsertPoint(body);
        llvm::PHINode* const round = p.b.CreatePHI(p.b.getInt32Ty(), 2);
        llvm::PHINode* const value = p.b.CreatePHI(p.words(), 2);
        Value* const next = p.steps(value);
        Value* const count = p.b.CreateAdd(round, p.b.getInt32(1));
        round->addIncoming(p.b.getInt32(0), entry);
        round->addIncoming(count, body);
        value->addIncoming(begin, entry);
        value->addIncoming(next, body);
        p.b.CreateCondBr(p.b.CreateICmpEQ(count, p.b.getInt32(3)), end, body);
        p.b.SetInsertPoint(end);
        p.out(p.b.CreateVectorReverse(p.steps(p.b.CreateXor(value, next))));
      },
      [](unsigned lane) {
        const std::uint32_t value = stepped(numbers()[kWarp - 1 - lane], 24);
        return stepped(value ^ stepped(value));
      },
      2, 0);
}

}  // namespace quern::cpu::emit
