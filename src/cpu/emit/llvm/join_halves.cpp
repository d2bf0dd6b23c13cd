// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/join_halves.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// Chains of permutations and selects are followed this far.
constexpr unsigned kMaxDepth = 8;

/// The low and the high 32 bits of the elements of a vector.
struct Halves {
  Value* low = nullptr;
  Value* high = nullptr;
};

bool is_poison(const Halves& halves) {
  return llvm::isa<llvm::PoisonValue>(halves.low) && llvm::isa<llvm::PoisonValue>(halves.high);
}

/// The vector whose halves are given by two truncations, or null.
Value* truncated(const Halves& halves) {
  using namespace llvm::PatternMatch;
  Value* whole = nullptr;
  if (!match(halves.low, m_Trunc(m_Value(whole))) ||
      !match(halves.high, m_Trunc(m_LShr(m_Specific(whole), m_SpecificInt(32)))))
    return nullptr;
  return whole->getType()->isIntOrIntVectorTy(64) ? whole : nullptr;
}

/// Two operations that differ in their operands only. Both are null if there are no such operations.
template <class Operation>
struct Pair {
  explicit Pair(const Halves& halves)
      : low(llvm::dyn_cast<Operation>(halves.low)), high(llvm::dyn_cast<Operation>(halves.high)) {
    if (low == nullptr || high == nullptr || !alike(*low, *high)) low = high = nullptr;
  }
  explicit operator bool() const { return low != nullptr; }
  Halves operand(unsigned number) const { return {low->getOperand(number), high->getOperand(number)}; }

  Operation* low;
  Operation* high;

 private:
  static bool alike(const llvm::ShuffleVectorInst& a, const llvm::ShuffleVectorInst& b) {
    return a.getShuffleMask() == b.getShuffleMask() &&
           a.getOperand(0)->getType() == b.getOperand(0)->getType();
  }
  static bool alike(const llvm::SelectInst& a, const llvm::SelectInst& b) {
    return a.getCondition() == b.getCondition();
  }
};

bool can_join(const Halves& halves, unsigned depth = 0) {
  if (is_poison(halves) || truncated(halves) != nullptr) return true;
  if (depth == kMaxDepth) return false;
  if (const Pair<llvm::ShuffleVectorInst> both(halves); both)
    return can_join(both.operand(0), depth + 1) && can_join(both.operand(1), depth + 1);
  if (const Pair<llvm::SelectInst> both(halves); both)
    return can_join(both.operand(1), depth + 1) && can_join(both.operand(2), depth + 1);
  return false;
}

/// The vector of 64-bit elements with these halves, for which can_join() holds.
Value* join(llvm::IRBuilder<>& b, const Halves& halves) {
  if (is_poison(halves)) return llvm::PoisonValue::get(halves.low->getType()->getExtendedType());
  if (Value* const whole = truncated(halves)) return whole;
  if (const Pair<llvm::ShuffleVectorInst> both(halves); both) {
    Value* const first = join(b, both.operand(0));
    return b.CreateShuffleVector(first, join(b, both.operand(1)), both.low->getShuffleMask());
  }
  const Pair<llvm::SelectInst> both(halves);
  Value* const chosen = join(b, both.operand(1));
  return b.CreateSelect(both.low->getCondition(), chosen, join(b, both.operand(2)));
}

/// The halves that the instruction puts together. Nothing but permutations and selects of vectors is worth
/// it; LLVM simplifies halves that are put together again without one.
bool puts_together(llvm::Instruction& inst, Halves& halves) {
  using namespace llvm::PatternMatch;
  if (!llvm::isa<llvm::FixedVectorType>(inst.getType()) || !inst.getType()->isIntOrIntVectorTy(64) ||
      !match(&inst,
             m_c_Or(m_ZExt(m_Value(halves.low)), m_Shl(m_ZExt(m_Value(halves.high)), m_SpecificInt(32)))))
    return false;
  return halves.low->getType()->isIntOrIntVectorTy(32) && halves.high->getType()->isIntOrIntVectorTy(32);
}

}  // namespace

void join_halves(llvm::Function& function) {
  Halves halves;
  for (llvm::BasicBlock& block : function)
    for (llvm::Instruction& inst : block) {
      if (!puts_together(inst, halves) || !can_join(halves)) continue;
      llvm::IRBuilder<> b(&inst);
      inst.replaceAllUsesWith(join(b, halves));
    }
}

}  // namespace quern::cpu::emit
