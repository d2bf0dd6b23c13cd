// SPDX-License-Identifier: Apache-2.0
// WarpBody: the masked version of the blocks, laid out in Analysis::order.
#include <algorithm>

#include "cpu/analysis/structure.hpp"
#include "cpu/emit/sites.hpp"
#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {
namespace {

/// A block of at most this many operations is run whether or not a lane waits at it: a mispredicted skip
/// costs more.
constexpr std::size_t kMaxUnskippedInsts = 6;

using analysis::leaves_divergent_loop;

}  // namespace

void WarpBody::emit_masked() {
  for (const ir::BlockId id : plan_.masked.order) {
    if (!plan_.masked_needed[id]) continue;
    const MaskedBlocks& at = masked_[id];
    begin_block(Version::masked, id, at.test);
    if (may_run_empty(id)) {
      code_.CreateBr(at.run);
    } else {
      llvm::BasicBlock* skip = make_block("skip");
      code_.CreateCondBr(masks_.any(code_.CreateLoad(masks_.type(), at.waiting)), at.run, skip);
      code_.SetInsertPoint(skip);
      clear_begun(id, /*runs=*/false);
      leave(id, ir::kNone, false);
    }
    emit_masked_block(id);
  }
}

void WarpBody::emit_masked_block(ir::BlockId id) {
  begin_block(Version::masked, id, masked_[id].run);
  certain_ = !may_run_empty(id);
  lanes_ = code_.CreateLoad(masks_.type(), masked_[id].waiting);
  code_.CreateStore(masks_.none(), masked_[id].waiting);
  mask_ = masks_.bits_of(lanes_);
  mask_word_ = masks_.word_of(mask_);
  if (plan_.reenter[id]) reenter_full(id);
  clear_begun(id, /*runs=*/true);
  emit_insts(id);
  if (plan_.barrier[id] != ir::kNone)
    masked_barrier(id);
  else
    masked_terminator(id);
}

/// Whether `block` is cheap and harmless with no lane at all.
bool WarpBody::may_run_empty(ir::BlockId block) const {
  const analysis::Analysis& facts = plan_.masked;
  const std::uint32_t loop = facts.loop_of[block];
  if (loop != ir::kNone && (facts.loops[loop].header == block || facts.loops[loop].blocks.back() == block))
    return false;
  if (block == 0 || plan_.reenter[block] || plan_.barrier[block] != ir::kNone) return false;
  std::size_t count = 0;
  for (const ir::Value value : function_->blocks[block].insts) {
    const ir::Op op = inst(value).op;
    if (op == ir::Op::br || op == ir::Op::cond_br || is_phi(value)) continue;
    if (!ir::has_trait(op, 'p') || ++count > kMaxUnskippedInsts) return false;
    // A scalar made from a vector is that of some running lane.
    const auto is_vector = [&](ir::Value arg) { return !kept_scalar(Version::masked, arg); };
    if (kept_scalar(Version::masked, value) && std::ranges::any_of(inst(value).args, is_vector)) return false;
  }
  return true;
}

void WarpBody::masked_terminator(ir::BlockId block) {
  const ir::Inst& last = terminator(block);
  switch (last.op) {
    case ir::Op::br:
      masked_edge(block, 0, lanes_);
      return leave(block, function_->blocks[block].succs[0], certain_);
    case ir::Op::cond_br:
    case ir::Op::switch_br:
      if (shape(last.args[0]).kind == analysis::ShapeKind::uniform) return masked_uniform_branch(block);
      return masked_divergent_branch(block);
    case ir::Op::trap:
      return emit_trap(last.imm, last.location);
    case ir::Op::ret:
    case ir::Op::exit:
      retire(lanes_);
      return leave(block, ir::kNone, false);
    default:
      throw Defect("a block ends with " + std::string(ir::name(last.op)));
  }
}

/// All running lanes go the same way.
void WarpBody::masked_uniform_branch(ir::BlockId block) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  const ir::Inst& last = terminator(block);
  llvm::Value* chosen = scalar(last.args[0]);
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
    masked_edge(block, i, lanes_);
    leave(block, succs[i], certain_);
  }
}

void WarpBody::masked_divergent_branch(ir::BlockId block) {
  const std::vector<llvm::Value*> lanes = switch_masks(block, lanes_);
  for (unsigned i = 0; i < lanes.size(); ++i) masked_edge(block, i, lanes[i]);
  code_.CreateBr(next_test(plan_.masked.position[block] + 1));
}

/// By successor of a cond_br or switch_br: which of the lanes `among` take that edge. Those that no case
/// names take the last.
std::vector<llvm::Value*> WarpBody::switch_masks(ir::BlockId block, llvm::Value* among) {
  const ir::Inst& last = terminator(block);
  llvm::Value* operand = vector(last.args[0]);
  const auto count = static_cast<unsigned>(function_->blocks[block].succs.size());
  std::vector<llvm::Value*> result;
  llvm::Value* rest = among;
  for (unsigned i = 0; i + 1 < count; ++i) {
    llvm::Value* takes = operand;
    if (last.op == ir::Op::switch_br)
      takes = code_.CreateICmpEQ(operand, llvm::ConstantInt::get(operand->getType(), i));
    llvm::Value* lanes = masks_.lanes_of(takes);
    result.push_back(masks_.both(among, lanes));
    rest = masks_.without(rest, lanes);
  }
  result.push_back(rest);
  return result;
}

/// `lanes` go from `block` to its successor `successor_index`: they wait there, and its phis hold their
/// operands in those lanes.
void WarpBody::masked_edge(ir::BlockId block, unsigned successor_index, llvm::Value* lanes) {
  const ir::BlockId successor = function_->blocks[block].succs[successor_index];
  if (plan_.ends[successor]) return retire(lanes);
  const bool blend = must_blend(block, successor);
  std::vector<std::pair<llvm::Value*, llvm::Value*>> stores;
  for (const auto& [phi, operand] : phi_operands(block, successor_index)) {
    if (!has_slot(Version::masked, phi)) continue;
    const bool keep_scalar = kept_scalar(Version::masked, phi);
    const Slot& to = slot(Version::masked, phi);
    // LLVM may make one instruction of a load and the choice behind it, in the choice's place.
    if (sites_ != nullptr) set_site(code_, *sites_, *module_, *function_, operand);
    llvm::Value* what = pack_bits(as_kept(operand, keep_scalar));
    llvm::Value* old = code_.CreateLoad(to.type, to.memory);
    if (keep_scalar && !certain_)
      what = code_.CreateSelect(masks_.any(lanes), what, old);
    else if (!keep_scalar && blend)
      what = code_.CreateSelect(masks_.bits_of(lanes), what, old);
    stores.emplace_back(to.memory, what);
  }
  if (sites_ != nullptr) clear_site(code_);
  for (const auto& [memory, what] : stores) code_.CreateStore(what, memory);
  llvm::AllocaInst* waiting = masked_[successor].waiting;
  if (blend) lanes = masks_.either(lanes, code_.CreateLoad(masks_.type(), waiting));
  code_.CreateStore(lanes, waiting);
}

/// The lanes' threads have ended.
void WarpBody::retire(llvm::Value* lanes) {
  llvm::Value* live = code_.CreateLoad(code_.getInt32Ty(), live_);
  code_.CreateStore(code_.CreateAnd(live, code_.CreateNot(masks_.word_of(masks_.bits_of(lanes)))), live_);
}

/// True if other lanes may already wait at `successor` when `block` sends its own. False for a loop's header
/// (all lanes in a loop are at the same iteration), and if `block` comes first of all predecessors; but
/// always true if lanes leave a loop at different iterations.
bool WarpBody::must_blend(ir::BlockId block, ir::BlockId successor) const {
  const analysis::Analysis& facts = plan_.masked;
  const std::vector<ir::BlockId>& preds = function_->blocks[successor].preds;
  if (leaves_divergent_loop(facts, block, successor)) return true;
  const std::uint32_t own = facts.loop_of[successor];
  if (own != ir::kNone && facts.loops[own].header == successor && preds.size() == 2) return false;
  const auto before = [&](ir::BlockId a, ir::BlockId b) { return facts.position[a] < facts.position[b]; };
  return *std::min_element(preds.begin(), preds.end(), before) != block;
}

/// True if all lanes that wait at `other` have just come through `block`. Lanes that left a loop around
/// `block` at an earlier iteration wait behind it until the others have left, too.
bool WarpBody::only_from(ir::BlockId block, ir::BlockId other) const {
  const analysis::Analysis& facts = plan_.masked;
  if (leaves_divergent_loop(facts, block, other)) return false;
  return dominance_.dominates(block, other);
}

/// Ends the code of `block` after all its lanes went to `target` (kNone: none of them waits anywhere behind
/// it): to the next block at which lanes may wait. `certain`: at least one lane went.
void WarpBody::leave(ir::BlockId block, ir::BlockId target, bool certain) {
  if (target != ir::kNone && plan_.ends[target]) target = ir::kNone;
  const analysis::Analysis& facts = plan_.masked;
  const auto go = [&](ir::BlockId to) {
    for (const MaskedVariable& each : spans_.skipped(facts.position[block], facts.position[to])) clear(each);
    code_.CreateBr(to == target && certain ? masked_[to].run : masked_[to].test);
  };
  if (target != ir::kNone && certain && !facts.divergent_control[block])
    return go(target);  // nobody waits elsewhere
  for (std::uint32_t at = facts.position[block];; ++at) {
    for (std::uint32_t loop = facts.loop_of[facts.order[at]]; loop != ir::kNone;
         loop = facts.loops[loop].parent) {
      // Others wait at its header only once they have passed its last block.
      const std::vector<ir::BlockId>& inside = facts.loops[loop].blocks;
      if (inside.back() != facts.order[at]) break;
      if (inside.front() == target) return go(target);
    }
    if (at + 1 == facts.order.size()) break;
    const ir::BlockId next = facts.order[at + 1];
    if (next == target || (plan_.masked_needed[next] && !only_from(block, next))) return go(next);
  }
  code_.CreateBr(place_.done);
}

/// The position of the first block from `position` on that has a masked version; behind all blocks if none
/// has.
std::uint32_t WarpBody::next_needed(std::uint32_t position) const {
  const std::vector<ir::BlockId>& order = plan_.masked.order;
  while (position < order.size() && !plan_.masked_needed[order[position]]) ++position;
  return position;
}

/// The test of that block.
llvm::BasicBlock* WarpBody::next_test(std::uint32_t position) {
  position = next_needed(position);
  return position < plan_.masked.order.size() ? masked_[plan_.masked.order[position]].test : place_.done;
}

void WarpBody::clear_masked() {
  if (plan_.dispatched) return;  // they are in memory, and stay
  for (const MaskedBlocks& blocks : masked_)
    if (blocks.waiting != nullptr) code_.CreateStore(masks_.none(), blocks.waiting);
  for (const Slot& each : warps_[0].slots[static_cast<std::size_t>(Version::masked)])
    if (each.memory != nullptr) code_.CreateStore(llvm::Constant::getNullValue(each.type), each.memory);
}

void WarpBody::clear(const MaskedVariable& variable) {
  if (variable.value == ir::kNone) {
    if (llvm::AllocaInst* waiting = masked_[variable.waiting].waiting; waiting != nullptr)
      code_.CreateStore(masks_.none(), waiting);
  } else if (has_slot(Version::masked, variable.value)) {
    const Slot& to = slot(Version::masked, variable.value);
    code_.CreateStore(llvm::Constant::getNullValue(to.type), to.memory);
  }
}

/// At the start of `block`: clears the variables whose live range begins there. Those that the block itself
/// defines are cleared only if the block is skipped.
void WarpBody::clear_begun(ir::BlockId block, bool runs) {
  for (const MaskedVariable& each : spans_.from(plan_.masked.position[block]))
    if (!runs || each.value == ir::kNone || is_phi(each.value) || inst(each.value).block != block)
      clear(each);
}

/// Before masked code is entered at `position`, and before live values are stored in their slots: marks that
/// no lanes wait, and clears the slots that may be read. They contain values of the last masked run, which
/// LLVM would otherwise keep alive through the full version.
void WarpBody::enter_masked(std::uint32_t position) {
  for (const MaskedVariable& each : spans_.across(position)) clear(each);
}

}  // namespace quern::cpu::emit
