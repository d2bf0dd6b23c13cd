// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/check_bases.hpp"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "cpu/abi/state.hpp"
#include "cpu/emit/llvm/checks.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// Indices may reach as far as those of vectors (operations/layout.cpp). The rest of a gap is for constants.
constexpr std::uint64_t kReach = engine::kGapBytes - (std::uint64_t{4} << 30);

/// True if the pointer only says where loads and stores access scalars: nothing else sees it. For vectors, a
/// check is a small part of the work, and their order matters more, which LLVM changes with the addresses.
bool only_accesses(const Value& pointer) {
  return std::ranges::all_of(pointer.users(), [&](const llvm::User* user) {
    if (llvm::isa<llvm::LoadInst>(user)) return !user->getType()->isVectorTy();
    if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(user)) {
      const Value* const what = store->getValueOperand();
      return what != &pointer && !what->getType()->isVectorTy();
    }
    const auto* const step = llvm::dyn_cast<llvm::GetElementPtrInst>(user);
    return step != nullptr && step->getPointerOperand() == &pointer && only_accesses(*step);
  });
}

bool only_accesses(const Check& check) {
  return std::ranges::all_of(check.places, [](const llvm::Instruction* place) {
    return std::ranges::all_of(place->users(), [](const llvm::User* user) { return only_accesses(*user); });
  });
}

/// A check as one of a base, and what is added behind it.
struct Split {
  std::vector<Term> base;  ///< of the address, without what the check subtracts
  std::vector<Term> index;
  std::uint64_t before = 0, behind = 0;  ///< constants
};

class Bases {
 public:
  explicit Bases(llvm::Function& function)
      : function_(function), dominators_(function), loops_(dominators_) {}

  void run() {
    if (loops_.empty()) return;
    for (const Check& check : find_checks(function_))
      if (const llvm::Loop* const loop = loops_.getLoopFor(check.inside->getParent()))
        try_split(check, *loop);
  }

 private:
  void try_split(const Check& check, const llvm::Loop& loop) {
    if (!loop.isLoopInvariant(check.base) || !loop.isLoopInvariant(check.limit())) return;
    Split split;
    std::uint64_t reach = 0;
    for (const Term& term : check.sum.terms) {
      if (loop.isLoopInvariant(term.first)) {
        split.base.push_back(term);
        continue;
      }
      split.index.push_back(term);
      const std::uint64_t most = reach_of(term);
      reach += most;
      if (most > kReach || reach > kReach) return;
    }
    // The base's own term, which is subtracted, is one of the invariant ones.
    if (split.index.empty() || split.base.size() < 2 || !only_accesses(check)) return;
    const auto constant = static_cast<std::int64_t>(check.sum.constant);
    const bool is_small = constant >= -kMostBehindCheck && constant <= kMostBehindCheck;
    (is_small ? split.behind : split.before) = check.sum.constant;
    replace(check, split, *place_before(check, split, loop));
  }

  /// Before the outermost loop that changes neither the base nor the window.
  llvm::Instruction* place_before(const Check& check, const Split& split, const llvm::Loop& innermost) const {
    const llvm::Loop* outermost = &innermost;
    const auto is_invariant = [&](const llvm::Loop& loop) {
      return loop.isLoopInvariant(check.base) && loop.isLoopInvariant(check.limit()) &&
             std::ranges::all_of(split.base,
                                 [&](const Term& term) { return loop.isLoopInvariant(term.first); });
    };
    while (outermost->getParentLoop() != nullptr && is_invariant(*outermost->getParentLoop()))
      outermost = outermost->getParentLoop();
    return dominators_.getNode(outermost->getHeader())->getIDom()->getBlock()->getTerminator();
  }

  Value* checked_base(const Check& check, const Split& split, llvm::Instruction& before) {
    Value*& made = made_[{in_order(split.base), split.before, check.limit(), &before}];
    if (made != nullptr) return made;
    llvm::IRBuilder<> b(&before);
    Value* const offset = emit_sum(b, split.base, split.before);
    Value* const inside = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, offset, check.limit());
    return made = b.CreateIntToPtr(b.CreateAdd(check.base, inside), b.getPtrTy());
  }

  void replace(const Check& check, const Split& split, llvm::Instruction& before) {
    Value* const base = checked_base(check, split, before);
    llvm::IRBuilder<> b(check.inside);
    Value* pointer = b.CreateGEP(b.getInt8Ty(), base, emit_sum(b, split.index, 0));
    if (split.behind != 0) pointer = b.CreateConstGEP1_64(b.getInt8Ty(), pointer, split.behind);
    std::vector<llvm::Instruction*> old;
    for (llvm::Instruction* const place : check.places)
      for (llvm::User* const user : place->users()) old.push_back(llvm::cast<llvm::Instruction>(user));
    for (llvm::Instruction* const each : old) {
      each->replaceAllUsesWith(pointer);
      llvm::RecursivelyDeleteTriviallyDeadInstructions(each);
    }
  }

  llvm::Function& function_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
  /// The pointers of bases that are checked already: by terms, constant, limit and place.
  std::map<std::tuple<std::vector<Term>, std::uint64_t, Value*, llvm::Instruction*>, Value*> made_;
};

}  // namespace

void check_bases(llvm::Function& function) { Bases(function).run(); }

}  // namespace quern::cpu::emit
