// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/checks.hpp"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace match = llvm::PatternMatch;

class Decomposition {
 public:
  /// Nothing if the sum has too many terms.
  std::optional<Sum> of(Value* value) {
    add(value, 1);
    if (steps_ > kMaxSteps) return std::nullopt;
    std::vector<Term> merged;
    for (const Term& term : sum_.terms) {
      const auto same = std::ranges::find(merged, term.first, &Term::first);
      if (same != merged.end())
        same->second += term.second;
      else
        merged.push_back(term);
    }
    std::erase_if(merged, [](const Term& term) { return term.second == 0; });
    sum_.terms = std::move(merged);
    return std::move(sum_);
  }

 private:
  static constexpr unsigned kMaxSteps = 32;

  void add(Value* value, std::uint64_t factor) {
    if (++steps_ > kMaxSteps) return;
    Value *a = nullptr, *b = nullptr;
    const llvm::APInt* constant = nullptr;
    if (match::match(value, match::m_APInt(constant))) {
      sum_.constant += constant->getZExtValue() * factor;
    } else if (match::match(value, match::m_AddLike(match::m_Value(a), match::m_Value(b)))) {
      add(a, factor);
      add(b, factor);
    } else if (match::match(value, match::m_Sub(match::m_Value(a), match::m_Value(b)))) {
      add(a, factor);
      add(b, std::uint64_t{0} - factor);
    } else if (match::match(value, match::m_Mul(match::m_Value(a), match::m_APInt(constant)))) {
      add(a, factor * constant->getZExtValue());
    } else if (match::match(value, match::m_Shl(match::m_Value(a), match::m_APInt(constant))) &&
               constant->ult(64)) {
      add(a, factor << constant->getZExtValue());
    } else {
      sum_.terms.emplace_back(value, factor);
    }
  }

  Sum sum_;
  unsigned steps_ = 0;
};

/// The value that every user of `inside` adds to it, if their results are nothing but pointers.
std::optional<Check> check_of(llvm::IntrinsicInst& inside) {
  Check check;
  check.inside = &inside;
  for (llvm::User* const user : inside.users()) {
    Value* base = nullptr;
    if (!match::match(user, match::m_c_Add(match::m_Specific(&inside), match::m_Value(base))))
      return std::nullopt;
    if (check.base != nullptr && check.base != base) return std::nullopt;
    if (!std::ranges::all_of(user->users(), [](llvm::User* of) { return llvm::isa<llvm::IntToPtrInst>(of); }))
      return std::nullopt;
    check.base = base;
    check.places.push_back(llvm::cast<llvm::Instruction>(user));
  }
  if (check.base == nullptr) return std::nullopt;
  return check;
}

}  // namespace

std::uint64_t reach_of(const Term& term) {
  const llvm::APInt *one = nullptr, *other = nullptr;
  if (match::match(term.first,
                   match::m_Select(match::m_Value(), match::m_APInt(one), match::m_APInt(other)))) {
    const llvm::APInt most = llvm::APIntOps::umax(one->abs(), other->abs());
    return most.ult(kFar) && term.second == 1 ? most.getZExtValue() : kFar;
  }
  const auto* const cast = llvm::dyn_cast<llvm::CastInst>(term.first);
  if (cast == nullptr) return kFar;
  const bool sign = llvm::isa<llvm::SExtInst>(cast);
  const unsigned width = cast->getSrcTy()->getScalarSizeInBits();
  if ((!sign && !llvm::isa<llvm::ZExtInst>(cast)) || width > 32) return kFar;
  // As a signed number. Of the least one, the magnitude is right as an unsigned number.
  const std::uint64_t scale = term.second >> 63 != 0 ? 0 - term.second : term.second;
  const std::uint64_t most = sign ? std::uint64_t{1} << (width - 1) : (std::uint64_t{1} << width) - 1;
  return scale > kFar / most ? kFar : scale * most;
}

std::vector<Term> in_order(std::vector<Term> terms) {
  std::ranges::sort(terms);
  return terms;
}

Value* emit_sum(llvm::IRBuilder<>& b, const std::vector<Term>& terms, std::uint64_t constant) {
  Value* sum = nullptr;
  for (const auto& [value, factor] : terms) {
    if (sum != nullptr && factor == ~std::uint64_t{0}) {
      sum = b.CreateSub(sum, value);
      continue;
    }
    Value* const term = factor == 1 ? value : b.CreateMul(value, b.getInt64(factor));
    sum = sum == nullptr ? term : b.CreateAdd(sum, term);
  }
  if (sum == nullptr) return b.getInt64(constant);
  return constant == 0 ? sum : b.CreateAdd(sum, b.getInt64(constant));
}

std::vector<Check> find_checks(llvm::Function& function) {
  std::vector<Check> checks;
  for (llvm::BasicBlock* const block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function))
    for (llvm::Instruction& inst : *block) {
      auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
      if (call == nullptr || call->getIntrinsicID() != llvm::Intrinsic::umin ||
          !call->getType()->isIntegerTy(64))
        continue;
      std::optional<Check> check = check_of(*call);
      if (!check) continue;
      std::optional<Sum> sum = Decomposition().of(call->getArgOperand(0));
      // The base is subtracted from the address, which makes this the check of one.
      if (!sum ||
          std::ranges::find(sum->terms, std::pair{check->base, ~std::uint64_t{0}}) == sum->terms.end())
        continue;
      check->sum = *std::move(sum);
      checks.push_back(*std::move(check));
    }
  return checks;
}

}  // namespace quern::cpu::emit
