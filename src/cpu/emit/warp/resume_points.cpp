// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/resume_points.hpp"

#include <llvm/IR/Module.h>

#include <algorithm>

namespace quern::cpu::emit {

void ResumePoints::lay_out_frame() {
  if (inputs_.frame == nullptr || is_gang() || plan_.dispatched) return;
  const llvm::DataLayout& layout = inputs_.function->getParent()->getDataLayout();
  std::vector<Slot*> live;
  const auto add = [&](Version version, ir::Value value, bool framed) {
    if (!slots_.has(version, value)) return;
    Slot& found = slots_.at(version, value);
    found.framed |= framed;
    if (std::find(live.begin(), live.end(), &found) == live.end()) live.push_back(&found);
  };
  for (const ir::BlockId id : plan_.masked.order) {
    if (plan_.barrier[id] == ir::kNone) continue;
    const ir::BlockId next = function_->blocks[id].succs[0];
    for (const ir::Value value : plan_.live_in[next]) {
      if (value == plan_.barrier[id]) continue;  // it is computed when the body is resumed
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
      each->frame = static_cast<std::uint32_t>(llvm::alignTo(body_.frame_end, Slots::frame_align(type)));
      body_.frame_end =
          each->frame + static_cast<std::uint32_t>(layout.getTypeAllocSize(type).getFixedValue());
    }
  live_frame_ = static_cast<std::uint32_t>(llvm::alignTo(body_.frame_end, llvm::Align(8)));
  body_.frame_end = static_cast<std::uint32_t>(llvm::alignTo(live_frame_ + 8, llvm::Align(64)));
}

std::uint32_t ResumePoints::frame_offset(ir::Value value) const {
  return slots_.of_version(Version::full)[value].frame;
}

void ResumePoints::begin(llvm::BasicBlock* start) { resume_ = code_.CreateSwitch(inputs_.state, start); }

void ResumePoints::suspend(ir::BlockId block) {
  states_.push_back(plan_.barrier[block]);
  const auto state = static_cast<std::uint32_t>(states_.size());
  if (full()) full_state_[block] = state;
  if (!full()) code_.CreateStore(body_.live_bits(), slots_.frame_address(live_frame_));
  code_.CreateRet(code_.getInt32(state));

  llvm::BasicBlock* resume = make_block("resume");
  values_.begin_block(body_.version, block, resume);
  resume_at(state, function_->blocks[block].succs[0]);
  if (!full())
    code_.CreateStore(code_.CreateLoad(code_.getInt32Ty(), slots_.frame_address(live_frame_)), body_.live);
}

/// The builder is at the start of `state`: reloads the slots that `next` reads from the frame.
void ResumePoints::resume_at(std::uint32_t state, ir::BlockId next) {
  add(state);
  if (!full()) variables_.enter(plan_.masked.position[next]);
  for (const ir::Value value : plan_.live_in[next]) {
    if (!slots_.has(body_.version, value) || slots_.at(body_.version, value).frame == 0) continue;
    slots_.load_from_frame(slots_.at(body_.version, value).frame, slots_.at(body_.version, value));
  }
}

void ResumePoints::finish() {
  if (resume_ == nullptr) return;
  for (const auto& [state, block] : resumes_) resume_->addCase(code_.getInt32(state), block);
}

void ResumePoints::add_split_states() {
  if (!plan_.has_full) return;
  for (const ir::BlockId id : plan_.full.order) {
    if (!plan_.parts[id]) continue;
    states_.push_back(ir::kNone);
    split_state_[id] = static_cast<std::uint32_t>(states_.size());
    values_.begin_block(Version::full, id, make_block("alone"));
    resume_at(split_state_[id], id);
    code_.CreateBr(body_.full_blocks[id]);
  }
}

}  // namespace quern::cpu::emit
