// SPDX-License-Identifier: Apache-2.0
// WarpBody: the full version of the blocks. All 32 lanes run, of one warp or of every warp of a gang;
// branches are branches as long as the lanes agree.
#include <algorithm>
#include <numeric>

#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {

void WarpBody::emit_full() {
  for (const ir::BlockId id : plan_.full.order) {
    if (!plan_.full_needed[id]) continue;
    begin_block(Version::full, id, full_[id]);
    emit_insts(id);
    if (plan_.barrier[id] == ir::kNone)
      full_terminator(id);
    else if (is_gang())
      gang_barrier(id);
    else
      barrier(id);
  }
}

void WarpBody::full_terminator(ir::BlockId block) {
  const ir::Inst& last = terminator(block);
  switch (last.op) {
    case ir::Op::br:
      if (!plan_.tested[block].empty()) full_tests(block);
      return full_edge(block, 0);
    case ir::Op::cond_br:
      return full_cond_branch(block);
    case ir::Op::switch_br:
      return full_switch(block);
    case ir::Op::trap:
      return emit_trap(last.imm, last.location);
    case ir::Op::ret:
    case ir::Op::exit:
      if (plan_.dispatched) end_lanes(code_.getInt32(0xffffffffu));
      code_.CreateBr(place_.done);
      return;
    default:
      throw Defect("a block ends with " + std::string(ir::name(last.op)));
  }
}

/// To successor `successor_index` with all lanes: its phis take their operands.
void WarpBody::full_edge(ir::BlockId block, unsigned successor_index) {
  const ir::BlockId successor = function_->blocks[block].succs[successor_index];
  if (!plan_.full_needed[successor]) return go_apart(block, {successor_index});
  for_each_warp([&] { full_phis(block, successor_index); });
  code_.CreateBr(full_[successor]);
}

void WarpBody::full_phis(ir::BlockId block, unsigned successor_index) {
  std::vector<std::pair<ir::Value, llvm::Value*>>
      stores;  // all reads before the first write: a phi may read another
  for (const auto& [phi, operand] : phi_operands(block, successor_index))
    if (has_slot(Version::full, phi) && !(is_shared(phi) && current_ != 0))
      stores.emplace_back(phi, as_kept(operand, kept_scalar(Version::full, phi)));
  // Not to the frame: the phi's block does that once, whichever edge it was entered by.
  for (const auto& [phi, what] : stores) code_.CreateStore(pack_bits(what), slot(Version::full, phi).memory);
}

void WarpBody::full_cond_branch(ir::BlockId block) {
  const ir::Value condition = terminator(block).args[0];
  llvm::BasicBlock* taken = make_block("taken");
  llvm::BasicBlock* not_taken = make_block("not_taken");
  const BoundedBranch& bounded = plan_.bounded[block];
  if (bounded.comparison != ir::kNone) {
    llvm::BasicBlock* perhaps = make_block("perhaps");
    code_.CreateCondBr(every_lane_below(bounded), bounded.if_below ? taken : not_taken, perhaps);
    code_.SetInsertPoint(perhaps);
    for_each_warp(condition, [&] { emit_inst(condition); });
  }
  if (kept_scalar(Version::full, condition) && (!is_gang() || is_shared(condition))) {
    code_.CreateCondBr(scalar(condition), taken, not_taken);
  } else {
    llvm::BasicBlock* not_all = make_block("not_all");
    llvm::BasicBlock* mixed = make_block("mixed");
    const auto [all, any] = all_and_any(condition);
    code_.CreateCondBr(all, taken, not_all);
    code_.SetInsertPoint(not_all);
    code_.CreateCondBr(any, mixed, not_taken);
    code_.SetInsertPoint(mixed);
    leave_full(block);
  }
  code_.SetInsertPoint(taken);
  full_edge(block, 0);
  code_.SetInsertPoint(not_taken);
  full_edge(block, 1);
}

/// i1: the last lane's index does not wrap and lies below the bound, in every warp.
llvm::Value* WarpBody::every_lane_below(const BoundedBranch& branch) {
  const bool exact = branch.is_signed && shape(branch.index).exact;
  llvm::Value* all = nullptr;
  const auto both = [&](llvm::Value* one) { all = all == nullptr ? one : code_.CreateAnd(all, one); };
  for_each_warp(branch.comparison, [&] {
    llvm::Value* first = scalar(branch.index);
    llvm::Value* last = code_.CreateAdd(first, llvm::ConstantInt::getSigned(first->getType(), branch.reach));
    using Cmp = llvm::CmpInst;
    if (!exact) both(code_.CreateICmp(branch.is_signed ? Cmp::ICMP_SLE : Cmp::ICMP_ULE, first, last));
    const Cmp::Predicate below = branch.inclusive ? Cmp::ICMP_ULE : Cmp::ICMP_ULT;
    both(code_.CreateICmp(branch.is_signed ? Cmp::getSignedPredicate(below) : below, last,
                          scalar(branch.bound)));
  });
  return all;
}

void WarpBody::full_switch(ir::BlockId block) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  const ir::Value index = terminator(block).args[0];
  llvm::Value* one = nullptr;
  llvm::Value* same = nullptr;
  for_each_warp(index, [&] {
    llvm::Value* agrees = nullptr;
    if (kept_scalar(Version::full, index) && shape(index).kind == analysis::ShapeKind::uniform) {
      if (one == nullptr)
        one = scalar(index);
      else
        agrees = code_.CreateICmpEQ(scalar(index), one);
    } else {
      llvm::Value* all = vector(index);
      if (one == nullptr) one = code_.CreateExtractElement(all, std::uint64_t{0});
      llvm::Value* word = masks_.word_of(code_.CreateICmpEQ(all, code_.CreateVectorSplat(kLanes, one)));
      agrees = code_.CreateICmpEQ(word, code_.getInt32(0xffffffffu));
    }
    if (agrees != nullptr) same = same == nullptr ? agrees : code_.CreateAnd(same, agrees);
  });
  if (same != nullptr) {
    llvm::BasicBlock* agree = make_block("agree");
    llvm::BasicBlock* mixed = make_block("mixed");
    code_.CreateCondBr(same, agree, mixed);
    code_.SetInsertPoint(mixed);
    leave_full(block);
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
    full_edge(block, i);
  }
}

/// Continues behind the widenings that follow this block in the full version only if none of them wraps.
void WarpBody::full_tests(ir::BlockId block) {
  llvm::Value* holds = nullptr;
  for (const ir::Value widening : plan_.tested[block])
    for_each_warp(widening, [&] {
      llvm::Value* one = widening_holds(widening);
      holds = holds == nullptr ? one : code_.CreateAnd(holds, one);
    });
  llvm::BasicBlock* narrow = make_block("no_wrap");
  llvm::BasicBlock* wraps = make_block("wraps");
  code_.CreateCondBr(holds, narrow, wraps);
  code_.SetInsertPoint(wraps);
  leave_full(block);
  code_.SetInsertPoint(narrow);
}

/// i1: base + terms, computed in 64 bits, lies within the narrow type in every lane. The extremes of the
/// terms are added up one by one, which may reject a sum that would just fit, but never accepts one that does
/// not.
llvm::Value* WarpBody::widening_holds(ir::Value widening) {
  const ir::Inst& what = inst(widening);
  const ir::Value operand = what.args[0];
  const unsigned bits = ir::bit_size(inst(operand).type);
  const bool is_signed = what.op != ir::Op::zext;
  llvm::Type* wide = code_.getInt64Ty();
  const auto number = [&](std::int64_t n) { return code_.getInt64(static_cast<std::uint64_t>(n)); };

  llvm::Value* base = scalar(operand);
  llvm::Value* low = is_signed ? code_.CreateSExt(base, wide) : code_.CreateZExt(base, wide);
  llvm::Value* high = low;
  llvm::Value* holds = code_.getTrue();
  for (const analysis::Term& term : shape(widening).terms) {
    const auto [least, most] = std::minmax_element(term.pattern.begin(), term.pattern.end());
    llvm::Value* at_least = number(*least);
    llvm::Value* at_most = number(*most);
    if (term.coefficient != ir::kNone) {
      llvm::Value* factor = scalar(term.coefficient);
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

std::vector<unsigned> WarpBody::every_edge(ir::BlockId block) const {
  std::vector<unsigned> edges(function_->blocks[block].succs.size());
  std::iota(edges.begin(), edges.end(), 0u);
  return edges;
}

/// At the end of `block`: the full version cannot go on.
void WarpBody::leave_full(ir::BlockId block) {
  if (is_gang())
    gang_split(block);
  else if (plan_.dispatched)
    go_apart(block, every_edge(block));
  else if (function_->blocks[block].succs.size() == 1)
    go_masked_whole(block);
  else
    go_masked_at_branch(block);
}

/// The lanes diverge: each successor's lanes wait there; masked code continues.
void WarpBody::go_masked_at_branch(ir::BlockId block) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  std::vector<std::pair<ir::Value, llvm::Value*>> stores;
  const auto carry = [&](ir::Value value) {
    for (const auto& [carried, what] : stores)
      if (carried == value) return;
    if (has_slot(Version::masked, value)) stores.emplace_back(value, masked_from_full(value));
  };
  for (const ir::BlockId successor : succs) std::ranges::for_each(plan_.live_in[successor], carry);
  // A block with several successors is the only predecessor of each (critical edges are split): no phi needs
  // a blend.
  for (unsigned i = 0; i < succs.size(); ++i)
    for (const auto& [phi, operand] : phi_operands(block, i))
      if (has_slot(Version::masked, phi))
        stores.emplace_back(
            phi, kept_scalar(Version::masked, phi) ? masked_from_full(operand) : as_kept(operand, false));

  const std::vector<llvm::Value*> lanes = switch_masks(block, masks_.all());
  const std::uint32_t next = plan_.masked.position[block] + 1;
  enter_masked(next_needed(next));
  for (const auto& [value, what] : stores) write_slot(Version::masked, value, what);
  code_.CreateStore(code_.getInt32(0xffffffffu), live_);
  for (unsigned i = 0; i < succs.size(); ++i) {
    if (plan_.ends[succs[i]]) {
      retire(lanes[i]);
      continue;
    }
    code_.CreateStore(lanes[i], masked_[succs[i]].waiting);
  }
  code_.CreateBr(next_test(next));
}

/// All lanes together, past `block`'s only edge.
void WarpBody::go_masked_whole(ir::BlockId block) {
  const ir::BlockId successor = function_->blocks[block].succs[0];
  std::vector<std::pair<ir::Value, llvm::Value*>> stores;
  for (const ir::Value value : plan_.live_in[successor])
    if (has_slot(Version::masked, value)) stores.emplace_back(value, masked_from_full(value));
  enter_masked(plan_.masked.position[successor]);
  for (const auto& [value, what] : stores) write_slot(Version::masked, value, what);
  code_.CreateStore(masks_.all(), masked_[successor].waiting);
  code_.CreateStore(code_.getInt32(0xffffffffu), live_);
  code_.CreateBr(masked_[successor].run);
}

}  // namespace quern::cpu::emit
