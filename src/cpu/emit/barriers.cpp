// SPDX-License-Identifier: Apache-2.0
// WarpBody: barriers. If a block has several warps, the body is a state machine: at a barrier it returns the
// state from which to continue, and is called again with it when all warps of the block have arrived. Values
// that are live across a barrier are stored to the warp's frame at their definitions, so that a barrier
// itself costs only the reloads. With a single warp nothing waits.
#include <algorithm>

#include <llvm/IR/Module.h>

#include "cpu/abi/state.hpp"
#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {

/// Assigns places in the frame to all slots that are read after a barrier, or after a warp has left its gang:
/// vectors first, each on its own cache lines.
void WarpBody::find_frame() {
  if (place_.frame == nullptr || is_gang() || plan_.dispatched) return;
  const llvm::DataLayout& layout = place_.function->getParent()->getDataLayout();
  std::vector<Slot*> live;
  const auto add = [&](Version version, ir::Value value, bool framed) {
    if (!has_slot(version, value)) return;
    Slot& found = slot(version, value);
    found.framed |= framed;
    if (std::find(live.begin(), live.end(), &found) == live.end()) live.push_back(&found);
  };
  for (const ir::BlockId id : plan_.masked.order) {
    if (plan_.barrier[id] == ir::kNone) continue;
    const ir::BlockId next = function_->blocks[id].succs[0];
    for (const ir::Value value : plan_.live_in[next]) {
      if (value == plan_.barrier[id]) continue;  // made on resuming
      if (plan_.has_full) add(Version::full, value, true);
      if (plan_.masked_needed[next]) add(Version::masked, value, true);
    }
  }
  if (plan_.has_full)
    for (const ir::BlockId id : plan_.full.order)
      if (plan_.parts[id])
        for (const ir::Value value : plan_.live_in[id]) add(Version::full, value, false);
  const auto is_scalar = [](const Slot* each) { return !each->type->isVectorTy(); };
  for (const bool scalars : {false, true})  // vectors first: they need the alignment
    for (Slot* each : live) {
      if (is_scalar(each) != scalars) continue;
      llvm::Type* type = each->type;
      each->frame = static_cast<std::uint32_t>(llvm::alignTo(frame_end_, frame_align(type)));
      frame_end_ = each->frame + static_cast<std::uint32_t>(layout.getTypeAllocSize(type).getFixedValue());
    }
  live_frame_ = static_cast<std::uint32_t>(llvm::alignTo(frame_end_, llvm::Align(8)));
  frame_end_ = static_cast<std::uint32_t>(llvm::alignTo(live_frame_ + 8, llvm::Align(64)));
}

llvm::Value* WarpBody::frame_address(std::uint32_t offset) {
  return code_.CreateConstInBoundsGEP1_32(code_.getInt8Ty(), warps_[current_].frame, offset);
}

/// Only the lanes that have exited may be missing.
void WarpBody::masked_barrier(ir::BlockId block) {
  llvm::BasicBlock* arrived = make_block("arrived");
  llvm::BasicBlock* missing = make_block("missing");
  code_.CreateCondBr(code_.CreateICmpEQ(mask_word_, live_bits()), arrived, missing);
  code_.SetInsertPoint(missing);
  for (const ir::BlockId other : plan_.masked.order) {  // those that are about to trap say why
    if (terminator(other).op != ir::Op::trap || !plan_.masked_needed[other]) continue;
    llvm::BasicBlock* next = make_block("missing");
    code_.CreateCondBr(masks_.any(code_.CreateLoad(masks_.type(), masked_[other].waiting)),
                       masked_[other].run, next);
    code_.SetInsertPoint(next);
  }
  emit_trap(static_cast<std::uint64_t>(ir::Trap::divergent_barrier), inst(plan_.barrier[block]).location);
  code_.SetInsertPoint(arrived);
  barrier(block);
}

void WarpBody::barrier(ir::BlockId block) {
  const ir::Value which = plan_.barrier[block];
  const ir::BlockId next = function_->blocks[block].succs[0];
  const bool reduces = inst(which).op == ir::Op::barrier_reduce;
  llvm::Value* true_lanes = nullptr;
  llvm::Value* arrived_lanes = nullptr;
  if (reduces) {
    llvm::Value* predicate = masks_.word_of(vector(inst(which).args[0]));
    true_lanes = code_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, code_.CreateAnd(predicate, mask_bits()));
    arrived_lanes = code_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, mask_bits());
  }
  if (place_.frame != nullptr) {
    if (reduces) {
      code_.CreateStore(true_lanes, frame_address(frame::kTrueLanes));
      code_.CreateStore(arrived_lanes, frame_address(frame::kArrivedLanes));
    }
    suspend(block);
    true_lanes = place_.true_lanes;
    arrived_lanes = place_.arrived_lanes;
  }
  if (reduces) define(which, reduction(which, true_lanes, arrived_lanes));
  if (full()) {
    code_.CreateBr(full_[next]);
  } else if (plan_.ends[next]) {  // all lanes that have not ended are here
    code_.CreateBr(place_.done);
  } else {
    code_.CreateStore(masks_.lanes_of(masks_.bits_of_word(live_bits())), masked_[next].waiting);
    code_.CreateBr(masked_[next].run);
  }
}

/// Returns from the step; then positions the builder where the next step continues, with the live values in
/// their slots.
void WarpBody::suspend(ir::BlockId block) {
  states_.push_back(plan_.barrier[block]);
  const auto state = static_cast<std::uint32_t>(states_.size());
  if (full()) full_state_[block] = state;
  if (!full()) code_.CreateStore(live_bits(), frame_address(live_frame_));
  code_.CreateRet(code_.getInt32(state));

  llvm::BasicBlock* resume = make_block("resume");
  begin_block(version_, block, resume);
  resume_at(state, function_->blocks[block].succs[0]);
  if (!full()) code_.CreateStore(code_.CreateLoad(code_.getInt32Ty(), frame_address(live_frame_)), live_);
}

/// The builder is at the continuation of `state`: reloads the slots that `next` reads from the frame.
void WarpBody::resume_at(std::uint32_t state, ir::BlockId next) {
  resumes_[state] = code_.GetInsertBlock();
  if (!full()) enter_masked(plan_.masked.position[next]);
  for (const ir::Value value : plan_.live_in[next]) {
    if (!has_slot(version_, value) || slot(version_, value).frame == 0) continue;
    load_from_frame(slot(version_, value).frame, slot(version_, value));
  }
}

/// The result of a barrier_reduce for every lane, from the counts over the block.
llvm::Value* WarpBody::reduction(ir::Value which, llvm::Value* true_lanes, llvm::Value* arrived_lanes) {
  llvm::Value* result = true_lanes;
  switch (static_cast<ir::BarrierReduce>(inst(which).imm)) {
    case ir::BarrierReduce::popc:
      break;
    case ir::BarrierReduce::and_:
      result = code_.CreateICmpEQ(true_lanes, arrived_lanes);
      break;
    case ir::BarrierReduce::or_:
      result = code_.CreateICmpNE(true_lanes, code_.getInt32(0));
      break;
  }
  return kept_scalar(version_, which) ? result : code_.CreateVectorSplat(kLanes, result);
}

/// The states that were made become cases of the switch that every step begins with.
void WarpBody::emit_states() {
  if (resume_ == nullptr) return;
  for (const auto& [state, block] : resumes_) resume_->addCase(code_.getInt32(state), block);
}

}  // namespace quern::cpu::emit
