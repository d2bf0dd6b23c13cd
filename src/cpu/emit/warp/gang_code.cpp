// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/gang_code.hpp"

namespace quern::cpu::emit {

void GangCode::barrier(ir::BlockId block) {
  const ir::Value which = plan_.barrier[block];
  const ir::BlockId next = function_->blocks[block].succs[0];
  const bool reduces = inst(which).op == ir::Op::barrier_reduce;
  const auto go_on = [&](llvm::Value* true_lanes, llvm::Value* arrived_lanes) {
    if (reduces)
      for_each_warp(which,
                    [&] { values_.define(which, barriers_.reduction(which, true_lanes, arrived_lanes)); });
    code_.CreateBr(body_.full_blocks[next]);
  };
  llvm::Value* true_lanes = code_.getInt32(0);
  if (reduces)
    for_each_warp([&] {
      llvm::Value* word = masks_.word_of(values_.vector(inst(which).args[0]));
      llvm::Value* count = code_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, word);
      true_lanes = code_.CreateAdd(true_lanes, count);
      if (body_.gang.whole_block) return;
      code_.CreateStore(count, slots_.frame_address(frame::kTrueLanes));
      code_.CreateStore(code_.getInt32(kWarpSize), slots_.frame_address(frame::kArrivedLanes));
    });
  if (body_.gang.whole_block) {
    go_on(true_lanes, code_.getInt32(kWarpSize * body_.gang.width));
  } else {
    store_frames(next, which);
    code_.CreateRet(code_.getInt32(body_.gang.single->full_state(block)));
  }
  if (!body_.gang.resumes) return;
  values_.begin_block(Version::full, block, make_block("resume"));
  states_.add(body_.gang.single->full_state(block));
  for (const ir::Value value : plan_.live_in[next]) {
    if (value == which || !slots_.has(body_.version, value) || body_.gang.single->frame_offset(value) == 0)
      continue;
    for_each_warp(value, [&] {
      slots_.load_from_frame(body_.gang.single->frame_offset(value), slots_.at(body_.version, value));
    });
  }
  go_on(inputs_.true_lanes, inputs_.arrived_lanes);
}

void GangCode::split(ir::BlockId block) {
  store_frames(block, ir::kNone);
  const std::uint32_t state = body_.gang.single->split_state(block);
  for_each_warp([&] { code_.CreateStore(code_.getInt32(state), slots_.frame_address(frame::kState)); });
  code_.CreateRet(code_.getInt32(frame::kParted));
}

/// Stores the values that `next` reads, except `made_later`, into the frames of the warps.
void GangCode::store_frames(ir::BlockId next, ir::Value made_later) {
  for (const ir::Value value : plan_.live_in[next]) {
    const std::uint32_t offset = body_.gang.single->frame_offset(value);
    if (value == made_later || offset == 0) continue;
    for_each_warp([&] {  // also for shared values, since each warp may continue alone
      llvm::Value* what = slots_.pack_bits(values_.kept(value));
      code_.CreateAlignedStore(what, slots_.frame_address(offset), Slots::frame_align(what->getType()));
    });
  }
}

}  // namespace quern::cpu::emit
