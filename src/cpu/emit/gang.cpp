// SPDX-License-Identifier: Apache-2.0
// WarpBody: a gang of warps in lockstep. Differences from one warp's full version: a barrier waits for no
// warp of the gang, and warps that diverge continue one by one from their frames.
#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {

void WarpBody::place_warps() {
  if (!is_gang()) {
    warps_[0].index = place_.warp;
    warps_[0].frame = place_.frame;
    return;
  }
  llvm::IRBuilder<> at(place_.entry->getTerminator());
  for (std::uint32_t i = 0; i < gang_.width; ++i) {
    warps_[i].index = at.CreateAdd(place_.warp, at.getInt32(i));
    warps_[i].frame =
        at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), place_.frame, std::uint64_t{i} * gang_.frame_bytes);
  }
}

/// i1, i1: `condition` holds in all lanes of all warps, in any lane of any warp.
std::pair<llvm::Value*, llvm::Value*> WarpBody::all_and_any(ir::Value condition) {
  llvm::Value* all = nullptr;
  llvm::Value* any = nullptr;
  const bool one_each = kept_scalar(version_, condition);
  for_each_warp(condition, [&] {
    llvm::Value* word = one_each ? scalar(condition) : masks_.word_of(vector(condition));
    all = all == nullptr ? word : code_.CreateAnd(all, word);
    any = any == nullptr ? word : code_.CreateOr(any, word);
  });
  if (one_each) return {all, any};
  return {code_.CreateICmpEQ(all, code_.getInt32(0xffffffffu)), code_.CreateICmpNE(any, code_.getInt32(0))};
}

/// If the gang is the whole block, no warp waits. Otherwise the gang returns the state of each of its warps,
/// the same that the warp would return alone.
void WarpBody::gang_barrier(ir::BlockId block) {
  const ir::Value which = plan_.barrier[block];
  const ir::BlockId next = function_->blocks[block].succs[0];
  const std::uint32_t state = gang_.single->full_state_.at(block);
  const bool reduces = inst(which).op == ir::Op::barrier_reduce;
  const auto go_on = [&](llvm::Value* true_lanes, llvm::Value* arrived_lanes) {
    if (reduces) for_each_warp(which, [&] { define(which, reduction(which, true_lanes, arrived_lanes)); });
    code_.CreateBr(full_[next]);
  };
  llvm::Value* true_lanes = code_.getInt32(0);
  if (reduces)
    for_each_warp([&] {
      llvm::Value* word = masks_.word_of(vector(inst(which).args[0]));
      llvm::Value* count = code_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, word);
      true_lanes = code_.CreateAdd(true_lanes, count);
      if (gang_.whole_block) return;
      code_.CreateStore(count, frame_address(frame::kTrueLanes));
      code_.CreateStore(code_.getInt32(kLanes), frame_address(frame::kArrivedLanes));
    });
  if (gang_.whole_block) {
    go_on(true_lanes, code_.getInt32(kLanes * gang_.width));
  } else {
    store_frames(next, which);
    code_.CreateRet(code_.getInt32(state));
  }
  if (!gang_.resumes) return;
  begin_block(Version::full, block, make_block("resume"));
  resumes_[state] = code_.GetInsertBlock();
  for (const ir::Value value : plan_.live_in[next]) {
    if (value == which || !has_slot(version_, value) || place_in_frame(value) == 0) continue;
    for_each_warp(value, [&] { load_from_frame(place_in_frame(value), slot(version_, value)); });
  }
  go_on(place_.true_lanes, place_.arrived_lanes);
}

std::uint32_t WarpBody::place_in_frame(ir::Value value) const {
  return gang_.single->warps_[0].slots[static_cast<std::size_t>(Version::full)][value].frame;
}

/// Stores the values that `next` reads into the frames of the warps, all but `made_later`.
void WarpBody::store_frames(ir::BlockId next, ir::Value made_later) {
  for (const ir::Value value : plan_.live_in[next]) {
    const std::uint32_t offset = place_in_frame(value);
    if (value == made_later || offset == 0) continue;
    for_each_warp([&] {  // shared values too: each warp may go on alone
      llvm::Value* what = pack_bits(kept(value));
      code_.CreateAlignedStore(what, frame_address(offset), frame_align(what->getType()));
    });
  }
}

/// At the end of `block`, where the warps diverge: each continues alone from there.
void WarpBody::gang_split(ir::BlockId block) {
  store_frames(block, ir::kNone);
  const std::uint32_t state = gang_.single->split_state_.at(block);
  for_each_warp([&] { code_.CreateStore(code_.getInt32(state), frame_address(frame::kState)); });
  code_.CreateRet(code_.getInt32(frame::kParted));
}

/// In the body of one warp: the states where it continues after its gang has split.
void WarpBody::emit_split_states() {
  if (!plan_.has_full) return;
  for (const ir::BlockId id : plan_.full.order) {
    if (!plan_.parts[id]) continue;
    states_.push_back(ir::kNone);
    split_state_[id] = static_cast<std::uint32_t>(states_.size());
    begin_block(Version::full, id, make_block("alone"));
    resume_at(split_state_[id], id);
    code_.CreateBr(full_[id]);
  }
}

}  // namespace quern::cpu::emit
