// SPDX-License-Identifier: Apache-2.0
// WarpBody: dispatched code, for kernels whose lanes wait for each other (docs/decisions/0004-dispatcher.md).
// Each lane has its place; the dispatcher selects the least one and runs that block for the lanes that are
// there. The step returns when only other warps can make progress, and is entered again at the dispatcher.
#include <algorithm>
#include <utility>

#include <llvm/IR/Module.h>

#include "cpu/abi/warps.hpp"
#include "cpu/emit/sites.hpp"
#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {
namespace {

namespace place = engine::place;
using engine::WarpFrame;

std::uint32_t number(engine::StepEnd end) { return static_cast<std::uint32_t>(end); }

}  // namespace

/// Lays the frame out: its head, then every value that leaves its block, vectors first.
void WarpBody::place_dispatched() {
  const llvm::DataLayout& layout = place_.function->getParent()->getDataLayout();
  std::vector<std::pair<ir::Value, llvm::Type*>> values;
  for (ir::Value value = 0; value < function_->insts.size(); ++value) {
    if (!plan_.crosses[value] || inst(value).type == ir::Type::none) continue;
    if (known_constant(Version::masked, value) != nullptr) continue;
    llvm::Type* type = kept_type(Version::masked, value);
    if (type->isVectorTy() && inst(value).type == ir::Type::i1) type = masks_.type();
    values.emplace_back(value, type);
  }
  frame_end_ = engine::kWarpFrameBytes;
  std::vector<std::uint32_t> offsets(values.size());
  for (const bool scalars : {false, true})
    for (std::size_t i = 0; i < values.size(); ++i) {
      llvm::Type* type = values[i].second;
      if (type->isVectorTy() == scalars) continue;
      offsets[i] = static_cast<std::uint32_t>(llvm::alignTo(frame_end_, frame_align(type)));
      frame_end_ = offsets[i] + static_cast<std::uint32_t>(layout.getTypeAllocSize(type).getFixedValue());
    }
  frame_end_ = static_cast<std::uint32_t>(llvm::alignTo(frame_end_, llvm::Align(64)));

  llvm::IRBuilder<> at(place_.entry, place_.entry->begin());
  if (place_.frame == nullptr) {  // a device function's lies on the stack
    llvm::AllocaInst* own = at.CreateAlloca(llvm::ArrayType::get(at.getInt8Ty(), frame_end_));
    own->setAlignment(llvm::Align(64));
    place_.frame = warps_[0].frame = own;
  }
  at.SetInsertPoint(place_.entry->getTerminator());
  for (std::size_t i = 0; i < values.size(); ++i) {
    Slot& made = warps_[0].slots[static_cast<std::size_t>(Version::masked)][values[i].first];
    made.memory = at.CreateConstInBoundsGEP1_32(at.getInt8Ty(), place_.frame, offsets[i]);
    made.type = values[i].second;
  }
  live_ = at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), place_.frame, offsetof(WarpFrame, live));
}

std::uint32_t WarpBody::place_of(ir::BlockId block) const {
  std::uint32_t at = plan_.masked.position[block];
  if (plan_.waits[block] == ir::kNone) return at;
  if (inst(plan_.waits[block]).op == ir::Op::warp_sync) at |= place::kSync;
  return at | place::kMeets;
}

llvm::Value* WarpBody::head_field(std::uint64_t offset) {
  return code_.CreateConstInBoundsGEP1_64(code_.getInt8Ty(), place_.frame, offset);
}

llvm::Value* WarpBody::load_places() {
  return code_.CreateAlignedLoad(vector_type_of(ir::Type::i32), head_field(offsetof(WarpFrame, place)),
                                 llvm::Align(64));
}

void WarpBody::store_places(llvm::Value* places) {
  code_.CreateAlignedStore(places, head_field(offsetof(WarpFrame, place)), llvm::Align(64));
}

llvm::Value* WarpBody::call_engine(const char* name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> args) {
  std::vector<llvm::Type*> types;
  for (const llvm::Value* arg : args) types.push_back(arg->getType());
  return code_.CreateCall(helper(name, llvm::FunctionType::get(result, types, false)), args);
}

// --- the dispatcher

/// The engine initialises a kernel's frame; a device function initialises its own at each call.
void WarpBody::begin_dispatch() {
  dispatch_ = make_block("dispatch");
  if (!function_->kernel) {
    llvm::Value* lanes = place_.lanes;
    llvm::Type* type = vector_type_of(ir::Type::i32);
    store_places(code_.CreateSelect(masks_.bits_of_word(lanes), llvm::Constant::getNullValue(type),
                                    llvm::Constant::getAllOnesValue(type)));
    code_.CreateStore(lanes, live_);
    code_.CreateStore(code_.getInt32(0), head_field(offsetof(WarpFrame, turns)));
    code_.CreateStore(code_.getInt32(0), head_field(offsetof(WarpFrame, rounds)));
  }
  code_.CreateBr(dispatch_);
}

void WarpBody::emit_dispatcher() {
  llvm::Type* word = code_.getInt32Ty();
  code_.SetInsertPoint(dispatch_);
  llvm::Value* places = load_places();
  llvm::Value* least = code_.CreateIntMinReduce(places, /*IsSigned=*/false);
  llvm::Value* turns_field = head_field(offsetof(WarpFrame, turns));
  llvm::Value* turns = code_.CreateAdd(code_.CreateLoad(word, turns_field), code_.getInt32(1));
  code_.CreateStore(turns, turns_field);
  llvm::Value* marked = code_.CreateICmpUGE(least, code_.getInt32(place::kTired));
  llvm::Value* fair =
      code_.CreateICmpEQ(code_.CreateAnd(turns, code_.getInt32(engine::kFairTurns - 1)), code_.getInt32(0));
  llvm::BasicBlock* run = make_block("run");
  llvm::BasicBlock* choose = make_block("choose");
  llvm::BasicBlock* leave = make_block("leave");
  code_.CreateCondBr(code_.CreateOr(marked, fair), choose, run);

  code_.SetInsertPoint(choose);
  llvm::Value* chosen = call_engine("quern_cpu_choose_place", word, {worker(), place_.frame});
  code_.CreateCondBr(code_.CreateICmpUGE(chosen, code_.getInt32(place::kTired)), leave, run);
  code_.SetInsertPoint(leave);
  leave_step(chosen);

  code_.SetInsertPoint(run);
  llvm::PHINode* at = code_.CreatePHI(word, 2);
  at->addIncoming(least, dispatch_);
  at->addIncoming(chosen, choose);
  llvm::BasicBlock* nowhere = make_block("nowhere");
  places_ = code_.CreateSwitch(code_.CreateAnd(at, code_.getInt32(place::kRank)), nowhere);
  for (const ir::BlockId id : plan_.masked.order)
    places_->addCase(code_.getInt32(plan_.masked.position[id]), masked_[id].run);
  code_.SetInsertPoint(nowhere);
  code_.CreateUnreachable();
}

/// A device function cannot be left before its lanes have ended; it waits only for lanes of the warp.
void WarpBody::leave_step(llvm::Value* end) {
  if (function_->kernel) {
    code_.CreateRet(end);
    return;
  }
  llvm::Value* ended = code_.CreateICmpEQ(end, code_.getInt32(number(engine::StepEnd::ended)));
  code_.CreateCondBr(ended, place_.done, dispatch_);
}

// --- blocks

void WarpBody::emit_dispatched() {
  for (const ir::BlockId id : plan_.masked.order) emit_dispatched_block(id);
  emit_dispatcher();
}

void WarpBody::emit_dispatched_block(ir::BlockId id) {
  begin_block(Version::masked, id, masked_[id].run);
  if (plan_.waits[id] != ir::kNone && ir::meets_lanes(inst(plan_.waits[id]).op)) {
    meet_lanes(id);
  } else {
    mask_ = code_.CreateICmpEQ(load_places(), code_.CreateVectorSplat(kLanes, code_.getInt32(place_of(id))));
    mask_word_ = masks_.word_of(mask_);
    lanes_ = masks_.lanes_of(mask_);
  }
  define_reduction(id);
  if (plan_.reenter[id]) reenter_full(id);
  if (plan_.waits[id] != ir::kNone && ir::is_barrier(inst(plan_.waits[id]).op)) return meet_block(id);
  emit_insts(id);
  dispatched_terminator(id);
}

// --- where lanes go on

void WarpBody::dispatched_terminator(ir::BlockId block) {
  const ir::Inst& last = terminator(block);
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  switch (last.op) {
    case ir::Op::br:
      send(block, 0, lanes_);
      code_.CreateBr(goes_straight(block) ? masked_[succs[0]].run : dispatch_);
      return;
    case ir::Op::cond_br:
    case ir::Op::switch_br: {
      const std::vector<llvm::Value*> lanes = switch_masks(block, lanes_);
      for (unsigned i = 0; i < lanes.size(); ++i) send(block, i, lanes[i]);
      code_.CreateBr(dispatch_);
      return;
    }
    case ir::Op::trap:
      return emit_trap(last.imm, last.location);
    case ir::Op::ret:
    case ir::Op::exit:
      end_lanes(mask_word_);
      code_.CreateBr(dispatch_);
      return;
    default:
      throw Defect("a block ends with " + std::string(ir::name(last.op)));
  }
}

/// True if no other lanes can arrive at `block`'s only successor, so that the dispatcher need not run.
bool WarpBody::goes_straight(ir::BlockId block) const {
  const ir::BlockId next = function_->blocks[block].succs[0];
  return function_->blocks[next].preds.size() == 1 && plan_.waits[next] == ir::kNone && !plan_.ends[next];
}

/// `lanes` go from `block` to its successor: that is their place, and its phis hold their operands in them.
void WarpBody::send(ir::BlockId block, unsigned successor_index, llvm::Value* lanes) {
  const ir::BlockId successor = function_->blocks[block].succs[successor_index];
  llvm::Value* bits = masks_.bits_of(lanes);
  if (plan_.ends[successor]) return end_lanes(masks_.word_of(bits));
  std::vector<std::pair<ir::Value, llvm::Value*>> stores;
  for (const auto& [phi, operand] : phi_operands(block, successor_index)) {
    if (!has_slot(Version::masked, phi)) continue;
    if (sites_ != nullptr) set_site(code_, *sites_, *module_, *function_, operand);  // as masked_edge does
    llvm::Value* what = pack_bits(as_kept(operand, kept_scalar(Version::masked, phi)));
    const Slot& to = slot(Version::masked, phi);
    if (!kept_scalar(Version::masked, phi))
      what =
          code_.CreateSelect(bits, what, code_.CreateAlignedLoad(to.type, to.memory, frame_align(to.type)));
    stores.emplace_back(phi, what);
  }
  if (sites_ != nullptr) clear_site(code_);
  for (const auto& [phi, what] : stores) {
    const Slot& to = slot(Version::masked, phi);
    code_.CreateAlignedStore(what, to.memory, frame_align(to.type));
  }
  const bool back = plan_.masked.position[successor] <= plan_.masked.position[block];
  const std::uint32_t to = place_of(successor) | (back && plan_.tires[successor] ? place::kTired : 0);
  store_places(code_.CreateSelect(bits, code_.CreateVectorSplat(kLanes, code_.getInt32(to)), load_places()));
}

void WarpBody::end_lanes(llvm::Value* word) {
  call_engine("quern_cpu_end_lanes", code_.getVoidTy(), {place_.frame, word});
}

/// Switches from full code to dispatched code on the edges of `block` (indices into its successors).
void WarpBody::go_apart(ir::BlockId block, const std::vector<unsigned>& edges) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  std::vector<std::pair<ir::Value, llvm::Value*>> stores;
  const auto carry = [&](ir::Value value) {
    for (const auto& [carried, what] : stores)
      if (carried == value) return;
    if (has_slot(Version::masked, value)) stores.emplace_back(value, masked_from_full(value));
  };
  for (const unsigned edge : edges) std::ranges::for_each(plan_.live_in[succs[edge]], carry);
  for (const unsigned edge : edges)
    for (const auto& [phi, operand] : phi_operands(block, edge))
      if (has_slot(Version::masked, phi))
        stores.emplace_back(
            phi, kept_scalar(Version::masked, phi) ? masked_from_full(operand) : as_kept(operand, false));
  std::vector<llvm::Value*> lanes{masks_.all()};
  if (edges.size() > 1) lanes = switch_masks(block, masks_.all());
  for (const auto& [value, what] : stores) write_slot(Version::masked, value, what);

  llvm::Value* places = llvm::Constant::getAllOnesValue(vector_type_of(ir::Type::i32));
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::uint32_t at = plan_.ends[succs[edges[i]]] ? place::kEnded : place_of(succs[edges[i]]);
    places = code_.CreateSelect(masks_.bits_of(lanes[i]), code_.CreateVectorSplat(kLanes, code_.getInt32(at)),
                                places);
  }
  store_places(places);
  llvm::Value* ended = code_.CreateICmpEQ(places, llvm::Constant::getAllOnesValue(places->getType()));
  code_.CreateStore(code_.CreateNot(masks_.word_of(ended)), live_);
  code_.CreateBr(dispatch_);
}

}  // namespace quern::cpu::emit
