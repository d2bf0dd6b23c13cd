// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/packed_halves.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "vector_interpreter.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kLanes = 32;

/// A function that stores words which it puts together from halves.
struct Program {
  Program() : module("halves", context), b(context) {
    const std::vector<llvm::Type*> pointers(5, b.getPtrTy());
    function = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), pointers, false),
                                      llvm::Function::ExternalLinkage, "k", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  }
  llvm::Type* type(unsigned bits) { return llvm::FixedVectorType::get(b.getIntNTy(bits), kLanes); }
  Value* load(unsigned number) { return b.CreateLoad(type(32), function->getArg(number)); }
  Value* uniform(unsigned number) {
    return b.CreateVectorSplat(kLanes, b.CreateLoad(b.getInt16Ty(), function->getArg(number)));
  }
  Value* all(unsigned bits, std::uint64_t number) {
    return b.CreateVectorSplat(kLanes, b.getIntN(bits, number));
  }
  Value* low(Value* words) { return b.CreateTrunc(words, type(16)); }
  Value* high(Value* words, unsigned by = 16) {
    return b.CreateTrunc(b.CreateLShr(words, all(32, by)), type(16));
  }
  Value* together(Value* low_half, Value* high_half, bool swapped = false) {
    Value* const upper = b.CreateShl(b.CreateZExt(high_half, type(32)), all(32, 16));
    Value* const lower = b.CreateZExt(low_half, type(32));
    return swapped ? b.CreateOr(lower, upper) : b.CreateOr(upper, lower);
  }
  void store(Value* value) { b.CreateStore(value, function->getArg(4)); }
  /// Puts together f of the low and f of the high halves of the same words.
  void store_of_halves(const std::function<Value*(Value*)>& f, bool swapped = false) {
    Value* const words = load(0);
    Value* const low_half = f(low(words));
    store(together(low_half, f(high(words)), swapped));
  }

  std::size_t count(unsigned opcode) const {
    const auto is_it = [&](const llvm::Instruction& inst) { return inst.getOpcode() == opcode; };
    return static_cast<std::size_t>(
        std::count_if(llvm::inst_begin(*function), llvm::inst_end(*function), is_it));
  }
  /// Runs the pass; returns true if no words are put together by `or` any more.
  bool run(void (*pass)(llvm::Function&) = &keep_halves_packed) {
    b.CreateRetVoid();
    test::VectorInterpreter interpreter;
    const std::vector<test::Lanes> expected = interpreter.stored_by(*function);
    pass(*function);
    REQUIRE_FALSE(llvm::verifyFunction(*function, &llvm::errs()));
    CHECK(test::agree(expected, interpreter.stored_by(*function)));
    return count(llvm::Instruction::Or) == 0;
  }

  llvm::LLVMContext context;
  llvm::Module module;
  llvm::IRBuilder<> b;
  llvm::Function* function = nullptr;
};

TEST_CASE("what is computed alike from both halves is computed in memory order") {
  for (const bool swapped : {false, true}) {
    Program p;
    p.store_of_halves(
        [&](Value* half) { return p.b.CreateAdd(p.b.CreateXor(half, p.all(16, 0x1234)), half); }, swapped);
    CHECK(p.run());
    CHECK(p.count(llvm::Instruction::Trunc) == 0);
    CHECK(p.count(llvm::Instruction::Add) == 4);  // of 16 halves each
  }
}

TEST_CASE("wider numbers, comparisons and choices are computed in memory order, too") {
  Program p;
  p.store_of_halves([&](Value* half) {
    Value* const wide = p.b.CreateMul(p.b.CreateSExt(half, p.type(32)), p.all(32, 77));
    Value* const less = p.b.CreateICmpSLT(wide, p.all(32, 1000));
    return p.b.CreateTrunc(p.b.CreateSelect(less, wide, p.all(32, 5)), p.type(16));
  });
  CHECK(p.run());
}

TEST_CASE("halves of several words meet") {
  Program p;
  Value *const x = p.load(0), *const y = p.load(1);
  Value* const low = p.b.CreateAdd(p.low(x), p.low(y));
  p.store(p.together(low, p.b.CreateAdd(p.high(x), p.high(y))));
  CHECK(p.run());
}

TEST_CASE("a number that all lanes share may be another one in each half") {
  Program p;
  Value *const words = p.load(0), *const one = p.uniform(1), *const other = p.uniform(2);
  const auto scaled = [&](Value* half, Value* by) {
    return p.b.CreateMul(half, p.b.CreateAdd(by, p.all(16, 3)));
  };
  Value* const low = scaled(p.low(words), one);
  p.store(p.together(low, scaled(p.high(words), other)));
  CHECK(p.run());
}

TEST_CASE("a lane's number is repeated for both halves") {
  Program p;
  Value *const words = p.load(0), *const factor = p.load(1);
  const auto scaled = [&](Value* half) {
    return p.b.CreateTrunc(p.b.CreateMul(p.b.CreateZExt(half, p.type(32)), factor), p.type(16));
  };
  Value* const low = scaled(p.low(words));
  p.store(p.together(low, scaled(p.high(words))));
  CHECK(p.run());
}

TEST_CASE("halves that are also used one by one are taken from the words") {
  Program p;
  Value* const words = p.load(0);
  Value *const low = p.b.CreateAdd(p.low(words), p.all(16, 9)), *const high = p.b.CreateAdd(p.high(words),
                                                                                            p.all(16, 9));
  p.store(p.together(low, high));
  p.store(p.b.CreateXor(low, high));
  CHECK(p.run());
}

TEST_CASE("words of halves that were put together are halves again") {
  Program p;
  Value* const words = p.load(0);
  Value *const low = p.b.CreateAdd(p.low(words), p.all(16, 9)), *const high = p.b.CreateAdd(p.high(words),
                                                                                            p.all(16, 9));
  p.store(p.together(low, high));
  p.store(p.together(p.b.CreateMul(low, low), p.b.CreateMul(high, high)));
  CHECK(p.run());
}

TEST_CASE("halves that are not computed alike stay apart") {
  const std::vector<std::function<void(Program&)>> programs = {
      [](Program& p) {  // operations
        Value* const words = p.load(0);
        p.store(p.together(p.b.CreateAdd(p.low(words), p.all(16, 1)),
                           p.b.CreateXor(p.high(words), p.all(16, 1))));
      },
      [](Program& p) {  // comparisons
        Value* const words = p.load(0);
        const auto chosen = [&](Value* half, Value* less) {
          return p.b.CreateSelect(less, half, p.all(16, 7));
        };
        Value *const low = p.low(words), *const high = p.high(words);
        p.store(p.together(chosen(low, p.b.CreateICmpULT(low, p.all(16, 9))),
                           chosen(high, p.b.CreateICmpSLT(high, p.all(16, 9)))));
      },
      [](Program& p) {  // words
        p.store(p.together(p.b.CreateAdd(p.low(p.load(0)), p.all(16, 1)),
                           p.b.CreateAdd(p.high(p.load(1)), p.all(16, 1))));
      },
      [](Program& p) {  // parts of a word
        Value* const words = p.load(0);
        p.store(p.together(p.b.CreateAdd(p.low(words), p.all(16, 1)),
                           p.b.CreateAdd(p.high(words, 8), p.all(16, 1))));
      },
      [](Program& p) {  // halves in the other order
        Value* const words = p.load(0);
        p.store(p.together(p.b.CreateAdd(p.high(words), p.all(16, 1)),
                           p.b.CreateAdd(p.low(words), p.all(16, 1))));
      },
      [](Program& p) {  // a wide number is used by itself
        Value* const words = p.load(0);
        Value* const wide = p.b.CreateMul(p.b.CreateZExt(p.low(words), p.type(32)), p.all(32, 7));
        Value* const other = p.b.CreateMul(p.b.CreateZExt(p.high(words), p.type(32)), p.all(32, 7));
        p.store(p.together(p.b.CreateTrunc(wide, p.type(16)), p.b.CreateTrunc(other, p.type(16))));
        p.store(wide);
      },
      [](Program& p) {  // a half is used before the words can be known
        Value* const words = p.load(0);
        Value* const low = p.b.CreateAdd(p.low(words), p.all(16, 9));
        p.store(low);
        p.store(p.together(low, p.b.CreateAdd(p.high(words), p.all(16, 9))));
      },
  };
  for (std::size_t i = 0; i < programs.size(); ++i) {
    CAPTURE(i);
    Program p;
    programs[i](p);
    CHECK_FALSE(p.run());
  }
}

TEST_CASE("halves of a word that are used one by one are sorted by one permutation") {
  Program p;
  Value* const words = p.load(0);
  Value *const low = p.low(words), *const high = p.high(words);
  p.store(p.b.CreateXor(low, p.b.CreateAdd(high, p.all(16, 3))));
  p.run(&sort_halves);
  const auto uses = [](const Value* half) { return half->getNumUses(); };
  CHECK(uses(low) + uses(high) == 0);
}

TEST_CASE("a half that is used without the other is truncated") {
  for (const bool is_high : {false, true}) {
    Program p;
    Value* const words = p.load(0);
    Value* const half = is_high ? p.high(words) : p.low(words);
    p.store(half);
    p.run(&sort_halves);
    CHECK(half->getNumUses() == 1);
  }
}

}  // namespace
}  // namespace quern::cpu::emit
