// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/choose_extremes.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace quern::cpu::emit {
namespace {

using llvm::Value;
using Predicate = llvm::CmpInst::Predicate;

constexpr unsigned kLanes = 8;
using Numbers = std::vector<std::int32_t>;

/// A function of two vectors that returns one.
struct Program {
  Program() : module("choose", context), b(context) {
    vector = llvm::FixedVectorType::get(b.getInt32Ty(), kLanes);
    function = llvm::Function::Create(llvm::FunctionType::get(vector, {vector, vector}, false),
                                      llvm::Function::ExternalLinkage, "k", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  }
  llvm::Constant* bits(unsigned lanes) {
    std::vector<llvm::Constant*> made;
    for (unsigned lane = 0; lane < kLanes; ++lane) made.push_back(b.getInt1((lanes >> lane & 1) != 0));
    return llvm::ConstantVector::get(made);
  }
  void finish(Value* result) {
    b.CreateRet(result);
    REQUIRE_FALSE(llvm::verifyFunction(*function));
  }
  unsigned selects() const {
    return static_cast<unsigned>(std::ranges::count_if(
        llvm::instructions(*function),
        [](const llvm::Instruction& inst) { return llvm::isa<llvm::SelectInst>(inst); }));
  }

  llvm::LLVMContext context;
  llvm::Module module;
  llvm::IRBuilder<> b;
  llvm::FixedVectorType* vector = nullptr;
  llvm::Function* function = nullptr;
};

/// The result of the program, which consists of minima, maxima and permutations.
Numbers result_of(const Program& program, const Numbers& first, const Numbers& second) {
  std::map<const Value*, Numbers> values{{program.function->getArg(0), first},
                                         {program.function->getArg(1), second}};
  for (const llvm::Instruction& inst : llvm::instructions(*program.function)) {
    Numbers& made = values[&inst];
    if (const auto* call = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&inst)) {
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const std::int32_t a = values.at(call->getLHS())[lane], c = values.at(call->getRHS())[lane];
        const bool less =
            call->isSigned() ? a < c : static_cast<std::uint32_t>(a) < static_cast<std::uint32_t>(c);
        const bool largest = call->getIntrinsicID() == llvm::Intrinsic::smax ||
                             call->getIntrinsicID() == llvm::Intrinsic::umax;
        made.push_back(less == largest ? c : a);
      }
    } else if (const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&inst)) {
      for (const int from : shuffle->getShuffleMask()) {
        const auto lane = static_cast<unsigned>(from);
        made.push_back(values.at(shuffle->getOperand(lane / kLanes))[lane % kLanes]);
      }
    } else if (const auto* end = llvm::dyn_cast<llvm::ReturnInst>(&inst)) {
      return values.at(end->getReturnValue());
    }
  }
  return {};
}

bool holds(Predicate predicate, std::int32_t a, std::int32_t c) {
  const auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(c);
  switch (predicate) {
    case Predicate::ICMP_SGT:
      return a > c;
    case Predicate::ICMP_SGE:
      return a >= c;
    case Predicate::ICMP_SLT:
      return a < c;
    case Predicate::ICMP_SLE:
      return a <= c;
    case Predicate::ICMP_UGT:
      return x > y;
    case Predicate::ICMP_UGE:
      return x >= y;
    case Predicate::ICMP_ULT:
      return x < y;
    case Predicate::ICMP_ULE:
      return x <= y;
    default:
      return false;
  }
}

constexpr Predicate kPredicates[] = {Predicate::ICMP_SGT, Predicate::ICMP_SGE, Predicate::ICMP_SLT,
                                     Predicate::ICMP_SLE, Predicate::ICMP_UGT, Predicate::ICMP_UGE,
                                     Predicate::ICMP_ULT, Predicate::ICMP_ULE};
constexpr unsigned kInverted = 0b01011010;

}  // namespace

TEST_CASE("a choice by a comparison that some lanes invert is a permutation of both extremes") {
  const Numbers first{1, 5, -3, 7, -2, 9, 4, INT32_MIN}, second{2, 3, -4, 7, 6, -8, 4, INT32_MAX};
  for (const Predicate predicate : kPredicates)
    for (const bool swapped : {false, true}) {
      CAPTURE(static_cast<int>(predicate));
      CAPTURE(swapped);
      Program p;
      Value *const a = p.function->getArg(0), *const c = p.function->getArg(1);
      Value* const condition = p.b.CreateXor(p.b.CreateICmp(predicate, a, c), p.bits(kInverted));
      p.finish(p.b.CreateSelect(condition, swapped ? c : a, swapped ? a : c));
      choose_extremes(*p.function);
      REQUIRE_FALSE(llvm::verifyFunction(*p.function));
      CHECK(p.selects() == 0);
      const Numbers result = result_of(p, first, second);
      REQUIRE(result.size() == kLanes);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const bool chooses = holds(predicate, first[lane], second[lane]) != ((kInverted >> lane & 1) != 0);
        CHECK(result[lane] == (chooses != swapped ? first[lane] : second[lane]));
      }
    }
}

TEST_CASE("other choices stay as they are") {
  enum class Case { equality, other_operands, not_constant, not_inverted };
  for (const Case which : {Case::equality, Case::other_operands, Case::not_constant, Case::not_inverted}) {
    Program p;
    Value *const a = p.function->getArg(0), *const c = p.function->getArg(1);
    Value* condition = which == Case::equality ? p.b.CreateICmpEQ(a, c) : p.b.CreateICmpSGT(a, c);
    Value* inverted = p.bits(kInverted);
    if (which == Case::not_constant) inverted = p.b.CreateTrunc(a, inverted->getType());
    if (which != Case::not_inverted) condition = p.b.CreateXor(condition, inverted);
    p.finish(p.b.CreateSelect(condition, a, which == Case::other_operands ? p.b.CreateAdd(c, c) : c));
    choose_extremes(*p.function);
    CHECK(p.selects() == 1);
  }
}

}  // namespace quern::cpu::emit
