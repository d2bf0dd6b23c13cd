// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/share_checks.hpp"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/emit/llvm/checks.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// Moves the sum of the check and the base directly behind the check, and returns it.
Value* place_behind(Check& check) {
  llvm::Instruction* const first = check.places.front();
  first->moveAfter(check.inside);
  for (llvm::Instruction* const other : check.places) {
    if (other == first) continue;
    other->replaceAllUsesWith(first);
    other->eraseFromParent();
  }
  check.places = {first};
  first->dropPoisonGeneratingFlags();
  return first;
}

void replace(const Check& check, Value* place, const std::vector<Term>& terms, std::uint64_t constant) {
  for (llvm::Instruction* const old : check.places) {
    llvm::IRBuilder<> b(old);
    const bool same = terms.empty() && constant == 0;
    old->replaceAllUsesWith(same ? place : b.CreateAdd(place, emit_sum(b, terms, constant)));
    old->eraseFromParent();
  }
  check.inside->eraseFromParent();
}

/// Moves the terms that are less than kMostBehindCheck from 0, like those that are one number or none, from
/// the sum to the result.
std::vector<Term> take_small_terms(Sum& sum) {
  const auto is_small = [](const Term& term) { return reach_of(term) < std::uint64_t{kMostBehindCheck}; };
  std::vector<Term> result;
  std::ranges::copy_if(sum.terms, std::back_inserter(result), is_small);
  std::erase_if(sum.terms, is_small);
  return result;
}

/// A check that others may share.
struct Shared {
  Check check;
  std::vector<Term> small;  ///< of its sum
};

/// Returns the terms, beside constants, to add behind the check of `other`; nothing if they may be too large.
std::optional<std::vector<Term>> terms_behind(const Shared& other, const std::vector<Term>& small,
                                              std::int64_t distance) {
  std::vector<Term> result = small;
  for (const Term& term : other.small)
    if (std::erase(result, term) == 0) return std::nullopt;
  std::uint64_t reach = 0;
  for (const Term& term : result) reach += reach_of(term);
  const std::int64_t least = static_cast<std::int64_t>(reach) - kMostBehindCheck;
  return distance >= least && distance <= -least ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace

void share_checks(llvm::Function& function) {
  const llvm::DominatorTree dominators(function);
  using Key = std::pair<std::vector<Term>, Value*>;
  std::map<Key, std::vector<Shared>> seen;
  for (Check& check : find_checks(function)) {
    std::vector<Term> small = take_small_terms(check.sum);
    std::vector<Shared>& others = seen[{in_order(check.sum.terms), check.limit()}];
    bool is_shared = false;
    for (Shared& other : others) {
      const std::uint64_t distance = check.sum.constant - other.check.sum.constant;
      if (check.base != other.check.base || !dominators.dominates(other.check.inside, check.inside)) continue;
      const auto behind = terms_behind(other, small, static_cast<std::int64_t>(distance));
      if (!behind) continue;
      replace(check, place_behind(other.check), *behind, distance);
      is_shared = true;
      break;
    }
    if (!is_shared) others.push_back({std::move(check), std::move(small)});
  }
}

}  // namespace quern::cpu::emit
