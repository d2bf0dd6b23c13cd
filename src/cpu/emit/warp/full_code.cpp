// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/full_code.hpp"

#include <algorithm>
#include <limits>

#include "cpu/analysis/algebra.hpp"
#include "cpu/analysis/edges.hpp"
#include "cpu/emit/operations/compare.hpp"
#include "cpu/emit/operations/scalar_division.hpp"
#include "cpu/ir/divisions.hpp"

namespace quern::cpu::emit {

void FullCode::emit() {
  for (const ir::BlockId id : plan_.full.order) {
    if (body_.full_blocks[id] == nullptr) continue;
    values_.begin_block(Version::full, id, body_.full_blocks[id]);
    instructions_.emit(id);
    if (plan_.barrier[id] == ir::kNone)
      emit_terminator(id);
    else if (is_gang())
      gang_.barrier(id);
    else
      barriers_.emit(id);
  }
}

void FullCode::emit_terminator(ir::BlockId block) {
  const ir::Inst& last = terminator(block);
  switch (last.op) {
    case ir::Op::br:
      if (!plan_.tested[block].empty()) emit_tests(block);
      return emit_edge(block, 0);
    case ir::Op::cond_br:
      return emit_cond_branch(block);
    case ir::Op::switch_br:
      return emit_switch(block);
    case ir::Op::trap:
      return engine_.trap(last.imm, last.location);
    case ir::Op::ret:
    case ir::Op::exit:
      if (plan_.dispatched) dispatched_.end_lanes(code_.getInt32(0xffffffffu));
      code_.CreateBr(inputs_.done);
      return;
    default:
      throw Defect("a block ends with " + std::string(ir::name(last.op)));
  }
}

/// Branches to successor `successor_index` with all lanes; its phis get their operands.
void FullCode::emit_edge(ir::BlockId block, unsigned successor_index) {
  const ir::BlockId successor = function_->blocks[block].succs[successor_index];
  if (plan_.lane_loop[successor] != ir::kNone) return masked_.enter_behind(block, successor_index);
  if (!plan_.full_needed[successor]) return dispatched_.enter(block, {successor_index});
  for_each_warp([&] { store_phis(block, successor_index); });
  code_.CreateBr(body_.full_blocks[successor]);
}

void FullCode::store_phis(ir::BlockId block, unsigned successor_index) {
  std::vector<std::pair<ir::Value, llvm::Value*>>
      stores;  // read everything before the first write, since a phi may read another phi
  for (const auto& [phi, operand] : edges_.phi_operands(block, successor_index))
    if (slots_.has(Version::full, phi) && !(is_shared(phi) && body_.current != 0))
      stores.emplace_back(phi, values_.as_kept(operand, kept_scalar(Version::full, phi)));
  // The frame is not written here: the phi's block does that once for all its edges.
  for (const auto& [phi, what] : stores)
    code_.CreateStore(slots_.pack_bits(what), slots_.at(Version::full, phi).memory);
}

void FullCode::emit_cond_branch(ir::BlockId block) {
  const ir::Value condition = terminator(block).args[0];
  const cuts::BoundedBranch& bounded = plan_.bounded[block];
  if (has_region(block) && !plan_.serial[block].together) {
    if (bounded.comparison != ir::kNone) for_each_warp(condition, [&] { instructions_.emit_one(condition); });
    return serial_.emit(block);
  }
  llvm::BasicBlock* taken = make_block("taken");
  llvm::BasicBlock* not_taken = make_block("not_taken");
  if (bounded.comparison != ir::kNone) {
    llvm::BasicBlock* perhaps = make_block("perhaps");
    code_.CreateCondBr(every_lane_below(bounded), bounded.if_below ? taken : not_taken, perhaps);
    code_.SetInsertPoint(perhaps);
    for_each_warp(condition, [&] { instructions_.emit_one(condition); });
  } else if (const cuts::BoundedBranches& together = plan_.bounded_together[block];
             !together.comparisons.empty()) {
    // LLVM moves the comparisons of all lanes, which are emitted already, behind this branch.
    llvm::BasicBlock* perhaps = make_block("perhaps");
    code_.CreateCondBr(every_lane_below(together), together.if_below ? taken : not_taken, perhaps);
    code_.SetInsertPoint(perhaps);
  }
  llvm::BasicBlock* mixed = nullptr;
  if (kept_scalar(Version::full, condition) && (!is_gang() || is_shared(condition))) {
    code_.CreateCondBr(values_.scalar(condition), taken, not_taken);
  } else {
    llvm::BasicBlock* not_all = make_block("not_all");
    mixed = make_block("mixed");
    const auto [all, any] = all_and_any(condition);
    const std::optional<unsigned> leaves = leaves_eager_loop(block);
    code_.CreateCondBr(all, leaves == 0u ? mixed : taken, not_all);
    code_.SetInsertPoint(not_all);
    code_.CreateCondBr(any, mixed, leaves == 1u ? mixed : not_taken);
  }
  code_.SetInsertPoint(taken);
  emit_edge(block, 0);
  code_.SetInsertPoint(not_taken);
  emit_edge(block, 1);
  if (mixed == nullptr) return;
  code_.SetInsertPoint(mixed);
  leave(block);  // last, since it may emit other blocks of the IR
}

/// The successor of `block`, by its index, that lanes take to leave an eager loop.
std::optional<unsigned> FullCode::leaves_eager_loop(ir::BlockId block) const {
  const ir::BlockId last = plan_.eager[block];
  const bool is_bounded =
      plan_.bounded[block].comparison != ir::kNone || !plan_.bounded_together[block].comparisons.empty();
  if (last == ir::kNone || is_gang() || is_bounded) return std::nullopt;
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  for (unsigned i = 0; i < succs.size(); ++i)
    if (plan_.eager[succs[i]] != last) return i;
  return std::nullopt;
}

/// i1: the index of the last lane does not wrap and is below the bound, in every warp.
llvm::Value* FullCode::every_lane_below(const cuts::BoundedBranch& branch) {
  const bool exact = branch.is_signed && pattern(branch.index).exact;
  llvm::Value* all = nullptr;
  const auto both = [&](llvm::Value* one) { all = all == nullptr ? one : code_.CreateAnd(all, one); };
  for_each_warp(branch.comparison, [&] {
    llvm::Value* first = values_.scalar(branch.index);
    llvm::Value* last = code_.CreateAdd(first, llvm::ConstantInt::getSigned(first->getType(), branch.reach));
    using Cmp = llvm::CmpInst;
    if (!exact) both(code_.CreateICmp(branch.is_signed ? Cmp::ICMP_SLE : Cmp::ICMP_ULE, first, last));
    const Cmp::Predicate below = branch.inclusive ? Cmp::ICMP_ULE : Cmp::ICMP_ULT;
    both(code_.CreateICmp(branch.is_signed ? Cmp::getSignedPredicate(below) : below, last,
                          values_.scalar(branch.bound)));
  });
  return all;
}

/// i1: the same for several comparisons, and the other conditions are what they are then.
llvm::Value* FullCode::every_lane_below(const cuts::BoundedBranches& branch) {
  llvm::Value* all = code_.getTrue();
  for (const cuts::BoundedBranch& comparison : branch.comparisons)
    all = code_.CreateAnd(all, every_lane_below(comparison));
  for (const ir::Value condition : branch.uniform)
    for_each_warp(condition, [&] {
      llvm::Value* const holds = values_.scalar(condition);
      all = code_.CreateAnd(all, branch.if_below ? holds : code_.CreateNot(holds));
    });
  return all;
}

/// i1, i1: `condition` is true in all lanes of all warps; it is true in any lane of any warp.
std::pair<llvm::Value*, llvm::Value*> FullCode::all_and_any(ir::Value condition) {
  llvm::Value* all = nullptr;
  llvm::Value* any = nullptr;
  const bool one_each = kept_scalar(body_.version, condition);
  for_each_warp(condition, [&] {
    llvm::Value* word = one_each ? values_.scalar(condition) : masks_.word_of(values_.vector(condition));
    all = all == nullptr ? word : code_.CreateAnd(all, word);
    any = any == nullptr ? word : code_.CreateOr(any, word);
  });
  if (one_each) return {all, any};
  return {code_.CreateICmpEQ(all, code_.getInt32(0xffffffffu)), code_.CreateICmpNE(any, code_.getInt32(0))};
}

void FullCode::emit_switch(ir::BlockId block) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  const ir::Value index = terminator(block).args[0];
  llvm::Value* one = nullptr;
  llvm::Value* same = nullptr;
  for_each_warp(index, [&] {
    llvm::Value* agrees = nullptr;
    if (kept_scalar(Version::full, index) && pattern(index).kind == analysis::LanePatternKind::uniform) {
      if (one == nullptr)
        one = values_.scalar(index);
      else
        agrees = code_.CreateICmpEQ(values_.scalar(index), one);
    } else {
      llvm::Value* all = values_.vector(index);
      if (one == nullptr) one = code_.CreateExtractElement(all, std::uint64_t{0});
      llvm::Value* word = masks_.word_of(code_.CreateICmpEQ(all, code_.CreateVectorSplat(kWarpSize, one)));
      agrees = code_.CreateICmpEQ(word, code_.getInt32(0xffffffffu));
    }
    if (agrees != nullptr) same = same == nullptr ? agrees : code_.CreateAnd(same, agrees);
  });
  if (same != nullptr) {
    llvm::BasicBlock* agree = make_block("agree");
    llvm::BasicBlock* mixed = make_block("mixed");
    code_.CreateCondBr(same, agree, mixed);
    code_.SetInsertPoint(mixed);
    leave(block);
    code_.SetInsertPoint(agree);
  }
  llvm::BasicBlock* last = make_block("case");
  llvm::SwitchInst* choose = code_.CreateSwitch(one, last, static_cast<unsigned>(succs.size()));
  for (unsigned i = 0; i < succs.size(); ++i) {
    llvm::BasicBlock* at = last;
    if (i + 1 < succs.size()) {
      at = make_block("case");
      choose->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(one->getType(), i)), at);
    }
    code_.SetInsertPoint(at);
    emit_edge(block, i);
  }
}

/// Continues in the full version only if what it assumes of the following instructions holds.
void FullCode::emit_tests(ir::BlockId block) {
  llvm::Value* holds = nullptr;
  for (const ir::Value value : plan_.tested[block])
    for_each_warp(value, [&] {
      llvm::Value* one = this->holds(value);
      holds = holds == nullptr ? one : code_.CreateAnd(holds, one);
    });
  llvm::BasicBlock* narrow = make_block("no_wrap");
  llvm::BasicBlock* wraps = make_block("wraps");
  code_.CreateCondBr(holds, narrow, wraps);
  code_.SetInsertPoint(wraps);
  leave(block);
  code_.SetInsertPoint(narrow);
}

/// i1: the assumption of the analysis. After the cuts it may not need one any more.
llvm::Value* FullCode::holds(ir::Value assumed) {
  if (!plan_.full.assumed[assumed]) return code_.getTrue();
  if (const auto clamp = analysis::clamp_of(*function_, plan_.full.patterns, inst(assumed)))
    return clamp_holds(*clamp);
  if (const auto comparison = analysis::edge_comparison_of(*function_, plan_.full.patterns, inst(assumed)))
    return edge_holds(*comparison, pattern(assumed).constant);
  switch (inst(assumed).op) {
    case ir::Op::sext:
    case ir::Op::zext:
      return widening_holds(assumed);
    case ir::Op::icmp:
    case ir::Op::lshr:
    case ir::Op::ashr:
      return sign_holds(assumed);
    case ir::Op::isub:
      return division_holds(ir::divided_for(*function_, inst(assumed)));
    default:
      return division_holds(assumed);
  }
}

/// i1: the numbers whose sign is asked for are not negative in any lane, and do not wrap between the lanes.
llvm::Value* FullCode::sign_holds(ir::Value question) {
  llvm::Value* holds = code_.getTrue();
  for (const ir::Value number : analysis::numbers_of_sign(*function_, inst(question))) {
    if (pattern(number).min >= 0) continue;
    const std::int64_t span = analysis::dividend_span(pattern(number)).value_or(0);
    const std::int64_t most = analysis::full_range(ir::bit_size(inst(number).type)).max;
    llvm::Value* const first = values_.scalar(number);
    llvm::Value* const last =
        llvm::ConstantInt::get(first->getType(), static_cast<std::uint64_t>(most - span));
    holds = code_.CreateAnd(holds, code_.CreateICmpULE(first, last));
  }
  return holds;
}

/// The least and the largest index of the lanes, as wide as `like`, and i1: it does not wrap between them,
/// and if it is not a signed number, it is no negative one.
FullCode::Reach FullCode::reach_of(ir::Value index, const analysis::Distances& lanes, bool is_signed,
                                   llvm::Type* like) {
  index = analysis::unclamped(*function_, plan_.full.patterns, index);
  llvm::Value* const number = values_.scalar(index);
  const auto plus = [&](llvm::Value* value, std::int64_t n) {
    return code_.CreateAdd(value, llvm::ConstantInt::getSigned(value->getType(), n));
  };
  const analysis::Range range = analysis::full_range(ir::bit_size(inst(index).type));
  const auto at_most = [&](llvm::Value* value, std::int64_t most) {
    llvm::Value* const bound = llvm::ConstantInt::getSigned(number->getType(), most);
    return is_signed ? code_.CreateICmpSLE(value, bound) : code_.CreateICmpULE(value, bound);
  };
  llvm::Value* holds = code_.getTrue();
  if (!is_signed) {
    holds = at_most(plus(number, lanes.least), range.max - (lanes.most - lanes.least));
  } else if (!pattern(index).exact) {
    holds = at_most(number, range.max - std::max<std::int64_t>(lanes.most, 0));
    if (lanes.least < 0)
      holds = code_.CreateAnd(
          holds, code_.CreateICmpSGE(
                     number, llvm::ConstantInt::getSigned(number->getType(), range.min - lanes.least)));
  }
  llvm::Value* const wide = code_.CreateSExt(number, like == nullptr ? number->getType() : like);
  return {plus(wide, lanes.least), plus(wide, lanes.most), holds};
}

/// i1: no lane's index is beyond the bound.
llvm::Value* FullCode::clamp_holds(const analysis::Clamp& clamp) {
  if (clamp.bound == ir::kNone) return reach_of(clamp.index, clamp.lanes, false, nullptr).holds;
  llvm::Value* const bound = values_.scalar(clamp.bound);
  const Reach index = reach_of(clamp.index, clamp.lanes, clamp.is_signed, bound->getType());
  llvm::Value* inside = nullptr;
  if (clamp.minimum)
    inside =
        clamp.is_signed ? code_.CreateICmpSLE(index.most, bound) : code_.CreateICmpULE(index.most, bound);
  else
    inside =
        clamp.is_signed ? code_.CreateICmpSGE(index.least, bound) : code_.CreateICmpUGE(index.least, bound);
  return code_.CreateAnd(index.holds, inside);
}

/// i1: all lanes compare alike with the bound, with this result if there is one.
llvm::Value* FullCode::edge_holds(const analysis::EdgeComparison& comparison,
                                  const std::optional<std::uint64_t>& result) {
  if (comparison.bound == ir::kNone)
    return reach_of(comparison.index, comparison.lanes, false, nullptr).holds;
  const bool equality = ir::is_equality(comparison.how);
  const bool is_signed = equality || ir::is_signed(comparison.how);
  llvm::Value* const bound = values_.scalar(comparison.bound);
  const Reach index = reach_of(comparison.index, comparison.lanes, is_signed, bound->getType());
  llvm::Value* agree = nullptr;
  if (equality) {  // assumed to differ
    agree = code_.CreateOr(code_.CreateICmpSLT(bound, index.least), code_.CreateICmpSLT(index.most, bound));
  } else {
    llvm::Value* const first = code_.CreateICmp(predicate_of(comparison.how), index.least, bound);
    llvm::Value* const last = code_.CreateICmp(predicate_of(comparison.how), index.most, bound);
    if (!result)
      agree = code_.CreateICmpEQ(first, last);
    else
      agree = *result != 0 ? code_.CreateAnd(first, last) : code_.CreateNot(code_.CreateOr(first, last));
  }
  return code_.CreateAnd(index.holds, agree);
}

/// i1: as signed numbers, the dividends do not wrap and are not negative, the divisor is positive, and the
/// remainders of the first and the last lane are as far apart as the dividends. Of an index that is probably
/// below the divisor: it is.
llvm::Value* FullCode::division_holds(ir::Value division) {
  const ir::Inst& what = inst(division);
  const unsigned bits = ir::bit_size(what.type);
  const auto number = [&](std::int64_t n) { return code_.getInt64(static_cast<std::uint64_t>(n)); };
  const auto widened = [&](ir::Value value) {
    return code_.CreateSExt(values_.scalar(value), code_.getInt64Ty());
  };
  const std::int64_t span = *analysis::dividend_span(pattern(what.args[0]));
  llvm::Value* const first = widened(what.args[0]);
  llvm::Value* const divisor = widened(what.args[1]);
  llvm::Value* const is_positive = code_.CreateICmpSGT(divisor, number(0));
  const std::int64_t most = analysis::full_range(bits).max;
  llvm::Value* const natural = code_.CreateICmpULE(first, number(most - span));
  if (plan_.full.below[division])
    return code_.CreateAnd(natural, code_.CreateICmpSLT(code_.CreateAdd(first, number(span)), divisor));
  llvm::Value* const nonzero = code_.CreateSelect(is_positive, divisor, number(1));
  llvm::Value* const rest =
      unless_below(code_, first, nonzero, false, first, [&] { return code_.CreateURem(first, nonzero); });
  llvm::Value* const last = code_.CreateAdd(rest, number(span));
  return code_.CreateAnd(code_.CreateAnd(is_positive, natural), code_.CreateICmpULT(last, nonzero));
}

/// i1: base + terms, computed in 64 bits, is in the range of the narrow type in every lane. The extremes of
/// the terms are added one by one. This may reject a sum that just fits, but never accepts one that does not.
llvm::Value* FullCode::widening_holds(ir::Value widening) {
  const ir::Inst& what = inst(widening);
  const ir::Value operand = what.args[0];
  const unsigned bits = ir::bit_size(inst(operand).type);
  const bool is_signed = what.op != ir::Op::zext;
  llvm::Type* wide = code_.getInt64Ty();
  const auto number = [&](std::int64_t n) { return code_.getInt64(static_cast<std::uint64_t>(n)); };

  llvm::Value* base = values_.scalar(operand);
  llvm::Value* low = is_signed ? code_.CreateSExt(base, wide) : code_.CreateZExt(base, wide);
  llvm::Value* high = low;
  llvm::Value* holds = code_.getTrue();
  for (const analysis::Term& term : pattern(widening).terms) {
    const auto [least, most] = std::minmax_element(term.offsets.begin(), term.offsets.end());
    llvm::Value* at_least = number(*least);
    llvm::Value* at_most = number(*most);
    if (term.coefficient != ir::kNone) {
      llvm::Value* factor = values_.scalar(term.coefficient);
      if (factor->getType()->getIntegerBitWidth() > 32)  // the products below must fit 64 bits
        holds =
            code_.CreateAnd(holds, code_.CreateICmpULT(code_.CreateAdd(factor, number(std::int64_t{1} << 40)),
                                                       number(std::int64_t{1} << 41)));
      factor = term.sign_extend ? code_.CreateSExt(factor, wide) : code_.CreateZExt(factor, wide);
      llvm::Value* a = code_.CreateMul(factor, at_least);
      llvm::Value* b = code_.CreateMul(factor, at_most);
      at_least = code_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
      at_most = code_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
    }
    low = code_.CreateAdd(low, at_least);
    high = code_.CreateAdd(high, at_most);
  }
  const std::int64_t minimum = is_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t maximum = (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  holds = code_.CreateAnd(holds, code_.CreateICmpSGE(low, number(minimum)));
  return code_.CreateAnd(holds, code_.CreateICmpSLE(high, number(maximum)));
}

/// Emitted at the end of `block` if the full version cannot continue.
void FullCode::leave(ir::BlockId block) {
  if (has_region(block))
    serial_.emit(block);
  else if (is_gang())
    gang_.split(block);
  else if (plan_.dispatched)
    dispatched_.enter(block, edges_.all(block));
  else if (function_->blocks[block].succs.size() == 1)
    masked_.enter_behind(block);
  else
    masked_.enter_at_branch(block);
}

}  // namespace quern::cpu::emit
