// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/masked_code.hpp"

#include <algorithm>

#include "cpu/analysis/structure.hpp"
#include "cpu/cuts/joint.hpp"
#include "cpu/emit/llvm/sites.hpp"

namespace quern::cpu::emit {
namespace {

/// A block with at most this many operations is run even if no lane waits at it: a mispredicted skip costs
/// more.
constexpr std::size_t kMaxUnskippedInsts = 6;

using analysis::leaves_divergent_loop;

}  // namespace

void MaskedCode::emit() {
  for (const ir::BlockId id : plan_.masked.order) {
    if (!plan_.masked_needed[id]) continue;
    const MaskedBlocks& at = body_.masked_blocks[id];
    values_.begin_block(Version::masked, id, at.test);
    if (may_run_empty(id)) {
      code_.CreateBr(at.run);
    } else {
      llvm::BasicBlock* skip = make_block("skip");
      if (at.unasked != nullptr) {
        llvm::BasicBlock* ask = make_block("ask");
        code_.CreateCondBr(code_.CreateLoad(code_.getInt1Ty(), at.unasked), at.run, ask);
        code_.SetInsertPoint(ask);
      }
      code_.CreateCondBr(masks_.any(code_.CreateLoad(masks_.type(), at.waiting)), at.run, skip);
      code_.SetInsertPoint(skip);
      variables_.clear_begun(id, /*runs=*/false);
      leave(id, ir::kNone, false);
    }
    emit_block(id);
  }
}

void MaskedCode::emit_block(ir::BlockId id) {
  values_.begin_block(Version::masked, id, body_.masked_blocks[id].run);
  body_.running.certain = plan_.eager[id] == ir::kNone && !may_run_empty(id);
  if (llvm::AllocaInst* unasked = body_.masked_blocks[id].unasked; unasked != nullptr)
    code_.CreateStore(code_.getFalse(), unasked);
  body_.running.lanes = code_.CreateLoad(masks_.type(), body_.masked_blocks[id].waiting);
  code_.CreateStore(masks_.none(), body_.masked_blocks[id].waiting);
  body_.running.bits = masks_.bits_of(body_.running.lanes);
  body_.running.word = masks_.word_of(body_.running.bits);
  if (plan_.reenter[id]) conversions_.reenter_full(id);
  variables_.clear_begun(id, /*runs=*/true);
  if (const std::uint32_t loop = plan_.lane_loop[id]; loop != ir::kNone) {
    lanes_.emit(id);
    code_.CreateBr(next_test(plan_.masked.position[plan_.lane_loops[loop].blocks.back()] + 1));
    return;
  }
  instructions_.emit(id);
  if (plan_.barrier[id] != ir::kNone)
    barriers_.emit_masked(id);
  else
    emit_terminator(id);
}

/// True if `block` is cheap, and has no effect when no lane runs.
bool MaskedCode::may_run_empty(ir::BlockId block) const {
  const analysis::Analysis& facts = plan_.masked;
  const std::uint32_t loop = facts.loop_of[block];
  if (plan_.eager[block] != ir::kNone)
    return facts.loops[loop].header != block && plan_.eager[block] != block;
  if (loop != ir::kNone && (facts.loops[loop].header == block || facts.loops[loop].blocks.back() == block))
    return false;
  // The first lane of those that wait begins a lane loop.
  if (plan_.lane_loop[block] != ir::kNone) return false;
  if (block == 0 || plan_.reenter[block] || plan_.barrier[block] != ir::kNone) return false;
  std::size_t count = 0;
  for (const ir::Value value : function_->blocks[block].insts) {
    const ir::Op op = inst(value).op;
    if (op == ir::Op::br || op == ir::Op::cond_br || is_phi(value)) continue;
    if (!cuts::may_run_empty(*function_, facts.patterns, value) || ++count > kMaxUnskippedInsts) return false;
  }
  return true;
}

void MaskedCode::emit_terminator(ir::BlockId block) {
  const ir::Inst& last = terminator(block);
  switch (last.op) {
    case ir::Op::br:
      emit_edge(block, 0, body_.running.lanes);
      // The last block of an eager loop has asked, or need not ask.
      return leave(block, function_->blocks[block].succs[0],
                   body_.running.certain || plan_.eager[block] == block);
    case ir::Op::cond_br:
    case ir::Op::switch_br:
      if (pattern(last.args[0]).kind == analysis::LanePatternKind::uniform) return emit_uniform_branch(block);
      return emit_divergent_branch(block);
    case ir::Op::trap:
      return engine_.trap(last.imm, last.location);
    case ir::Op::ret:
    case ir::Op::exit:
      retire(body_.running.lanes);
      return leave(block, ir::kNone, false);
    default:
      throw Defect("a block ends with " + std::string(ir::name(last.op)));
  }
}

/// Emits a branch at which all running lanes take the same edge.
void MaskedCode::emit_uniform_branch(ir::BlockId block) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  const ir::Inst& last = terminator(block);
  llvm::Value* chosen = values_.scalar(last.args[0]);
  if (last.op == ir::Op::cond_br) chosen = code_.CreateSelect(chosen, code_.getInt32(0), code_.getInt32(1));
  llvm::BasicBlock* otherwise = make_block("case");
  llvm::SwitchInst* choose = code_.CreateSwitch(chosen, otherwise, static_cast<unsigned>(succs.size()));
  for (unsigned i = 0; i < succs.size(); ++i) {
    llvm::BasicBlock* at = otherwise;
    if (i + 1 < succs.size()) {
      at = make_block("case");
      choose->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(chosen->getType(), i)), at);
    }
    code_.SetInsertPoint(at);
    emit_edge(block, i, body_.running.lanes);
    leave(block, succs[i], body_.running.certain);
  }
}

void MaskedCode::emit_divergent_branch(ir::BlockId block) {
  const std::vector<llvm::Value*> lanes = edges_.lanes_by_edge(block, body_.running.lanes);
  for (unsigned i = 0; i < lanes.size(); ++i) emit_edge(block, i, lanes[i]);
  code_.CreateBr(next_test(plan_.masked.position[block] + 1));
}

/// Sends `lanes` from `block` to its successor `successor_index`: they wait there, and its phis get their
/// operands in those lanes.
void MaskedCode::emit_edge(ir::BlockId block, unsigned successor_index, llvm::Value* lanes) {
  const ir::BlockId successor = function_->blocks[block].succs[successor_index];
  if (plan_.ends[successor]) return retire(lanes);
  const bool blend = edges_.must_blend(plan_.masked, block, successor);
  std::vector<std::pair<llvm::Value*, llvm::Value*>> stores;
  for (const auto& [phi, operand] : edges_.phi_operands(block, successor_index)) {
    if (!slots_.has(Version::masked, phi)) continue;
    const bool keep_scalar = kept_scalar(Version::masked, phi);
    const Slot& to = slots_.at(Version::masked, phi);
    // LLVM may combine a load with a following select, at the position of the select.
    if (body_.sites != nullptr) set_site(code_, *body_.sites, *plan_.module, *function_, operand);
    llvm::Value* what = slots_.pack_bits(values_.as_kept(operand, keep_scalar));
    llvm::Value* old = code_.CreateLoad(to.type, to.memory);
    // Without lanes, no lane is in an eager loop whose last block returns, and nothing reads its phis.
    if (keep_scalar && !body_.running.certain && plan_.eager[block] != block)
      what = code_.CreateSelect(masks_.any(lanes), what, old);
    else if (!keep_scalar && blend)
      what = code_.CreateSelect(masks_.bits_of(lanes), what, old);
    stores.emplace_back(to.memory, what);
  }
  if (body_.sites != nullptr) clear_site(code_);
  for (const auto& [memory, what] : stores) code_.CreateStore(what, memory);
  llvm::AllocaInst* waiting = body_.masked_blocks[successor].waiting;
  if (blend) lanes = masks_.either(lanes, code_.CreateLoad(masks_.type(), waiting));
  code_.CreateStore(lanes, waiting);
}

/// Ends the threads of the lanes.
void MaskedCode::retire(llvm::Value* lanes) {
  llvm::Value* live = code_.CreateLoad(code_.getInt32Ty(), body_.live);
  code_.CreateStore(code_.CreateAnd(live, code_.CreateNot(masks_.word_of(masks_.bits_of(lanes)))),
                    body_.live);
}

/// True if all lanes that wait at `other` came through `block` in the same iteration. Lanes that left a loop
/// around `block` in an earlier iteration wait after it until the others have left.
bool MaskedCode::only_from(ir::BlockId block, ir::BlockId other) const {
  const analysis::Analysis& facts = plan_.masked;
  if (leaves_divergent_loop(facts, block, other)) return false;
  return dominance_.dominates(block, other);
}

/// Ends the code of `block` after all its lanes went to `target` (kNone: no lane waits at any later block).
/// Continues at the next block at which lanes may wait. `certain`: at least one lane went to `target`.
void MaskedCode::leave(ir::BlockId block, ir::BlockId target, bool certain) {
  if (target != ir::kNone && plan_.ends[target]) target = ir::kNone;
  const analysis::Analysis& facts = plan_.masked;
  const auto go = [&](ir::BlockId to) {
    variables_.clear_skipped(facts.position[block], facts.position[to]);
    code_.CreateBr(to == target && certain ? body_.masked_blocks[to].run : body_.masked_blocks[to].test);
  };
  if (target != ir::kNone && certain && !facts.divergent_control[block])
    return go(target);  // no lane waits in another block
  for (std::uint32_t at = facts.position[block];; ++at) {
    for (std::uint32_t loop = facts.loop_of[facts.order[at]]; loop != ir::kNone;
         loop = facts.loops[loop].parent) {
      // Others wait at the loop's header only after they have passed its last block.
      const std::vector<ir::BlockId>& inside = facts.loops[loop].blocks;
      if (inside.back() != facts.order[at]) break;
      if (inside.front() == target) return go(target);
    }
    if (at + 1 == facts.order.size()) break;
    const ir::BlockId next = facts.order[at + 1];
    if (next == target || (plan_.masked_needed[next] && !only_from(block, next))) return go(next);
  }
  code_.CreateBr(inputs_.done);
}

/// The position of the first block from `position` on that has a masked version; after all blocks if there is
/// none.
std::uint32_t MaskedCode::next_needed(std::uint32_t position) const {
  const std::vector<ir::BlockId>& order = plan_.masked.order;
  while (position < order.size() && !plan_.masked_needed[order[position]]) ++position;
  return position;
}

/// The LLVM block that tests whether lanes wait at that block.
llvm::BasicBlock* MaskedCode::next_test(std::uint32_t position) {
  position = next_needed(position);
  return position < plan_.masked.order.size() ? body_.masked_blocks[plan_.masked.order[position]].test
                                              : inputs_.done;
}

void MaskedCode::enter_at_branch(ir::BlockId block) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  // A block with several successors is the only predecessor of each (critical edges are split), so no phi
  // needs a blend.
  const Conversions::MaskedValues stores = conversions_.masked_values_on(block, edges_.all(block));

  const std::vector<llvm::Value*> lanes = edges_.lanes_by_edge(block, masks_.all());
  const std::uint32_t next = plan_.masked.position[block] + 1;
  variables_.enter(next_needed(next));
  if (const ir::BlockId last = plan_.eager[block]; last != ir::kNone)
    code_.CreateStore(code_.getTrue(), body_.masked_blocks[last].unasked);
  for (const auto& [value, what] : stores) slots_.write(Version::masked, value, what);
  code_.CreateStore(code_.getInt32(0xffffffffu), body_.live);
  for (unsigned i = 0; i < succs.size(); ++i) {
    if (plan_.ends[succs[i]]) {
      retire(lanes[i]);
      continue;
    }
    code_.CreateStore(lanes[i], body_.masked_blocks[succs[i]].waiting);
  }
  code_.CreateBr(next_test(next));
}

void MaskedCode::enter_behind(ir::BlockId block, unsigned successor_index) {
  const ir::BlockId successor = function_->blocks[block].succs[successor_index];
  const Conversions::MaskedValues stores = conversions_.masked_values_on(block, {successor_index});
  variables_.enter(plan_.masked.position[successor]);
  for (const auto& [value, what] : stores) slots_.write(Version::masked, value, what);
  code_.CreateStore(masks_.all(), body_.masked_blocks[successor].waiting);
  code_.CreateStore(code_.getInt32(0xffffffffu), body_.live);
  code_.CreateBr(body_.masked_blocks[successor].run);
}

}  // namespace quern::cpu::emit
