// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/dispatched_code.hpp"

#include <llvm/IR/Module.h>
#include <algorithm>
#include <utility>

#include "cpu/abi/warps.hpp"
#include "cpu/emit/llvm/sites.hpp"

namespace quern::cpu::emit {
namespace {

namespace lane_pc = engine::lane_pc;
using engine::WarpFrame;

std::uint32_t number(engine::StepEnd end) { return static_cast<std::uint32_t>(end); }

}  // namespace

void DispatchedCode::lay_out_frame() {
  const llvm::DataLayout& layout = inputs_.function->getParent()->getDataLayout();
  std::vector<std::pair<ir::Value, llvm::Type*>> values;
  for (ir::Value value = 0; value < function_->insts.size(); ++value) {
    if (!plan_.crosses[value] || inst(value).type == ir::Type::none) continue;
    if (slots_.known_constant(Version::masked, value) != nullptr) continue;
    values.emplace_back(value, slots_.slot_type(Version::masked, value));
  }
  body_.frame_end = engine::kWarpFrameBytes;
  std::vector<std::uint32_t> offsets(values.size());
  for (const bool scalars : {false, true})
    for (std::size_t i = 0; i < values.size(); ++i) {
      llvm::Type* type = values[i].second;
      if (type->isVectorTy() == scalars) continue;
      offsets[i] = static_cast<std::uint32_t>(llvm::alignTo(body_.frame_end, Slots::frame_align(type)));
      body_.frame_end =
          offsets[i] + static_cast<std::uint32_t>(layout.getTypeAllocSize(type).getFixedValue());
    }
  body_.frame_end = static_cast<std::uint32_t>(llvm::alignTo(body_.frame_end, llvm::Align(64)));

  llvm::IRBuilder<> at(inputs_.entry, inputs_.entry->begin());
  if (inputs_.frame == nullptr) {  // a device function has its frame on the stack
    llvm::AllocaInst* own = at.CreateAlloca(llvm::ArrayType::get(at.getInt8Ty(), body_.frame_end));
    own->setAlignment(llvm::Align(64));
    inputs_.frame = body_.warps[0].frame = own;
  }
  at.SetInsertPoint(inputs_.entry->getTerminator());
  for (std::size_t i = 0; i < values.size(); ++i) {
    Slot& made = slots_.dispatched(values[i].first);
    made.memory = at.CreateConstInBoundsGEP1_32(at.getInt8Ty(), inputs_.frame, offsets[i]);
    made.type = values[i].second;
  }
  body_.live = at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), inputs_.frame, offsetof(WarpFrame, live));
}

void DispatchedCode::begin() {
  dispatch_ = make_block("dispatch");
  if (!function_->kernel) {
    llvm::Value* lanes = inputs_.lanes;
    llvm::Type* type = vector_type_of(ir::Type::i32);
    store_pcs(code_.CreateSelect(masks_.bits_of_word(lanes), llvm::Constant::getNullValue(type),
                                 llvm::Constant::getAllOnesValue(type)));
    code_.CreateStore(lanes, body_.live);
    code_.CreateStore(code_.getInt32(0), head_field(offsetof(WarpFrame, turns)));
    code_.CreateStore(code_.getInt32(0), head_field(offsetof(WarpFrame, rounds)));
  }
  code_.CreateBr(dispatch_);
}

void DispatchedCode::emit() {
  for (const ir::BlockId id : plan_.masked.order) emit_block(id);
  emit_dispatcher();
}

void DispatchedCode::emit_dispatcher() {
  llvm::Type* word = code_.getInt32Ty();
  code_.SetInsertPoint(dispatch_);
  llvm::Value* pcs = load_pcs();
  llvm::Value* least = code_.CreateIntMinReduce(pcs, /*IsSigned=*/false);
  llvm::Value* turns_field = head_field(offsetof(WarpFrame, turns));
  llvm::Value* turns = code_.CreateAdd(code_.CreateLoad(word, turns_field), code_.getInt32(1));
  code_.CreateStore(turns, turns_field);
  llvm::Value* marked = code_.CreateICmpUGE(least, code_.getInt32(lane_pc::kSpinning));
  llvm::Value* fair =
      code_.CreateICmpEQ(code_.CreateAnd(turns, code_.getInt32(engine::kFairTurns - 1)), code_.getInt32(0));
  llvm::BasicBlock* run = make_block("run");
  llvm::BasicBlock* choose = make_block("choose");
  llvm::BasicBlock* leave = make_block("leave");
  code_.CreateCondBr(code_.CreateOr(marked, fair), choose, run);

  code_.SetInsertPoint(choose);
  llvm::Value* chosen = engine_.call("quern_cpu_choose_pc", word, {inputs_.worker, inputs_.frame});
  code_.CreateCondBr(code_.CreateICmpUGE(chosen, code_.getInt32(lane_pc::kSpinning)), leave, run);
  code_.SetInsertPoint(leave);
  leave_step(chosen);

  code_.SetInsertPoint(run);
  llvm::PHINode* at = code_.CreatePHI(word, 2);
  at->addIncoming(least, dispatch_);
  at->addIncoming(chosen, choose);
  llvm::BasicBlock* nowhere = make_block("nowhere");
  blocks_ = code_.CreateSwitch(code_.CreateAnd(at, code_.getInt32(lane_pc::kRank)), nowhere);
  for (const ir::BlockId id : plan_.masked.order)
    blocks_->addCase(code_.getInt32(plan_.masked.position[id]), body_.masked_blocks[id].run);
  code_.SetInsertPoint(nowhere);
  code_.CreateUnreachable();
}

/// A device function can be left only after its lanes have ended; it waits only for lanes of the warp.
void DispatchedCode::leave_step(llvm::Value* end) {
  if (function_->kernel) {
    code_.CreateRet(end);
    return;
  }
  llvm::Value* ended = code_.CreateICmpEQ(end, code_.getInt32(number(engine::StepEnd::ended)));
  code_.CreateCondBr(ended, inputs_.done, dispatch_);
}

void DispatchedCode::emit_block(ir::BlockId id) {
  values_.begin_block(Version::masked, id, body_.masked_blocks[id].run);
  if (plan_.waits[id] != ir::kNone && ir::syncs_lanes(inst(plan_.waits[id]))) {
    sync_lanes(id);
  } else {
    body_.running.bits =
        code_.CreateICmpEQ(load_pcs(), code_.CreateVectorSplat(kWarpSize, code_.getInt32(pc_of(id))));
    body_.running.word = masks_.word_of(body_.running.bits);
    body_.running.lanes = masks_.lanes_of(body_.running.bits);
  }
  define_reduction(id);
  if (plan_.reenter[id]) conversions_.reenter_full(id);
  if (plan_.waits[id] != ir::kNone && ir::is_barrier(inst(plan_.waits[id]).op)) return sync_block(id);
  instructions_.emit(id);
  emit_terminator(id);
}

void DispatchedCode::emit_terminator(ir::BlockId block) {
  const ir::Inst& last = terminator(block);
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  switch (last.op) {
    case ir::Op::br:
      send(block, 0, body_.running.lanes);
      code_.CreateBr(goes_straight(block) ? body_.masked_blocks[succs[0]].run : dispatch_);
      return;
    case ir::Op::cond_br:
    case ir::Op::switch_br: {
      const std::vector<llvm::Value*> lanes = edges_.lanes_by_edge(block, body_.running.lanes);
      for (unsigned i = 0; i < lanes.size(); ++i) send(block, i, lanes[i]);
      code_.CreateBr(dispatch_);
      return;
    }
    case ir::Op::trap:
      return engine_.trap(last.imm, last.location);
    case ir::Op::ret:
    case ir::Op::exit:
      end_lanes(body_.running.word);
      code_.CreateBr(dispatch_);
      return;
    default:
      throw Defect("a block ends with " + std::string(ir::name(last.op)));
  }
}

/// True if no other lanes can arrive at `block`'s only successor: then the dispatcher need not run.
bool DispatchedCode::goes_straight(ir::BlockId block) const {
  const ir::BlockId next = function_->blocks[block].succs[0];
  return function_->blocks[next].preds.size() == 1 && plan_.waits[next] == ir::kNone && !plan_.ends[next];
}

/// Sends `lanes` from `block` to a successor: the successor becomes their PC, and its phis get their operands
/// in these lanes.
void DispatchedCode::send(ir::BlockId block, unsigned successor_index, llvm::Value* lanes) {
  const ir::BlockId successor = function_->blocks[block].succs[successor_index];
  llvm::Value* bits = masks_.bits_of(lanes);
  if (plan_.ends[successor]) return end_lanes(masks_.word_of(bits));
  std::vector<std::pair<ir::Value, llvm::Value*>> stores;
  for (const auto& [phi, operand] : edges_.phi_operands(block, successor_index)) {
    if (!slots_.has(Version::masked, phi)) continue;
    if (body_.sites != nullptr)
      set_site(code_, *body_.sites, *plan_.module, *function_, operand);  // as in masked_edge
    llvm::Value* what = slots_.pack_bits(values_.as_kept(operand, kept_scalar(Version::masked, phi)));
    const Slot& to = slots_.at(Version::masked, phi);
    if (!kept_scalar(Version::masked, phi))
      what = code_.CreateSelect(bits, what,
                                code_.CreateAlignedLoad(to.type, to.memory, Slots::frame_align(to.type)));
    stores.emplace_back(phi, what);
  }
  if (body_.sites != nullptr) clear_site(code_);
  for (const auto& [phi, what] : stores) {
    const Slot& to = slots_.at(Version::masked, phi);
    code_.CreateAlignedStore(what, to.memory, Slots::frame_align(to.type));
  }
  const bool back = plan_.masked.position[successor] <= plan_.masked.position[block];
  const std::uint32_t to = pc_of(successor) | (back && plan_.spins[successor] ? lane_pc::kSpinning : 0);
  store_pcs(code_.CreateSelect(bits, code_.CreateVectorSplat(kWarpSize, code_.getInt32(to)), load_pcs()));
}

void DispatchedCode::end_lanes(llvm::Value* word) {
  engine_.call("quern_cpu_end_lanes", code_.getVoidTy(), {inputs_.frame, word});
}

void DispatchedCode::enter(ir::BlockId block, const std::vector<unsigned>& edges) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  const Conversions::MaskedValues stores = conversions_.masked_values_on(block, edges);
  std::vector<llvm::Value*> lanes{masks_.all()};
  if (edges.size() > 1) lanes = edges_.lanes_by_edge(block, masks_.all());
  for (const auto& [value, what] : stores) slots_.write(Version::masked, value, what);

  llvm::Value* pcs = llvm::Constant::getAllOnesValue(vector_type_of(ir::Type::i32));
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::uint32_t at = plan_.ends[succs[edges[i]]] ? lane_pc::kEnded : pc_of(succs[edges[i]]);
    pcs = code_.CreateSelect(masks_.bits_of(lanes[i]), code_.CreateVectorSplat(kWarpSize, code_.getInt32(at)),
                             pcs);
  }
  store_pcs(pcs);
  llvm::Value* ended = code_.CreateICmpEQ(pcs, llvm::Constant::getAllOnesValue(pcs->getType()));
  code_.CreateStore(code_.CreateNot(masks_.word_of(ended)), body_.live);
  code_.CreateBr(dispatch_);
}

std::uint32_t DispatchedCode::pc_of(ir::BlockId block) const {
  std::uint32_t at = plan_.masked.position[block];
  if (plan_.waits[block] == ir::kNone) return at;
  if (inst(plan_.waits[block]).op == ir::Op::warp_sync) at |= lane_pc::kSync;
  return at | lane_pc::kWaits;
}

llvm::Value* DispatchedCode::head_field(std::uint64_t offset) {
  return code_.CreateConstInBoundsGEP1_64(code_.getInt8Ty(), inputs_.frame, offset);
}

llvm::Value* DispatchedCode::load_pcs() {
  return code_.CreateAlignedLoad(vector_type_of(ir::Type::i32), head_field(offsetof(WarpFrame, pc)),
                                 llvm::Align(64));
}

void DispatchedCode::store_pcs(llvm::Value* pcs) {
  code_.CreateAlignedStore(pcs, head_field(offsetof(WarpFrame, pc)), llvm::Align(64));
}

}  // namespace quern::cpu::emit
