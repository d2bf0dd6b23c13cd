// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/barriers.hpp"

namespace quern::cpu::emit {

void Barriers::emit(ir::BlockId block) {
  const ir::Value which = plan_.barrier[block];
  const ir::BlockId next = function_->blocks[block].succs[0];
  const bool reduces = inst(which).op == ir::Op::barrier_reduce;
  llvm::Value* true_lanes = nullptr;
  llvm::Value* arrived_lanes = nullptr;
  if (reduces) {
    llvm::Value* predicate = masks_.word_of(values_.vector(inst(which).args[0]));
    true_lanes =
        code_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, code_.CreateAnd(predicate, body_.mask_bits()));
    arrived_lanes = code_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, body_.mask_bits());
  }
  if (inputs_.frame != nullptr) {
    if (reduces) {
      code_.CreateStore(true_lanes, slots_.frame_address(frame::kTrueLanes));
      code_.CreateStore(arrived_lanes, slots_.frame_address(frame::kArrivedLanes));
    }
    states_.suspend(block);
    true_lanes = inputs_.true_lanes;
    arrived_lanes = inputs_.arrived_lanes;
  }
  if (reduces) values_.define(which, reduction(which, true_lanes, arrived_lanes));
  if (full()) {
    code_.CreateBr(body_.full_blocks[next]);
  } else if (plan_.ends[next]) {  // all lanes that have not ended are here
    code_.CreateBr(inputs_.done);
  } else {
    code_.CreateStore(masks_.lanes_of(masks_.bits_of_word(body_.live_bits())),
                      body_.masked_blocks[next].waiting);
    code_.CreateBr(body_.masked_blocks[next].run);
  }
}

void Barriers::emit_masked(ir::BlockId block) {
  llvm::BasicBlock* arrived = make_block("arrived");
  llvm::BasicBlock* missing = make_block("missing");
  code_.CreateCondBr(code_.CreateICmpEQ(body_.running.word, body_.live_bits()), arrived, missing);
  code_.SetInsertPoint(missing);
  for (const ir::BlockId other : plan_.masked.order) {  // lanes that are about to trap report the reason
    if (terminator(other).op != ir::Op::trap || !plan_.masked_needed[other]) continue;
    llvm::BasicBlock* next = make_block("missing");
    code_.CreateCondBr(masks_.any(code_.CreateLoad(masks_.type(), body_.masked_blocks[other].waiting)),
                       body_.masked_blocks[other].run, next);
    code_.SetInsertPoint(next);
  }
  engine_.trap(static_cast<std::uint64_t>(ir::Trap::divergent_barrier), inst(plan_.barrier[block]).location);
  code_.SetInsertPoint(arrived);
  emit(block);
}

llvm::Value* Barriers::reduction(ir::Value which, llvm::Value* true_lanes, llvm::Value* arrived_lanes) {
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
  return kept_scalar(body_.version, which) ? result : code_.CreateVectorSplat(kWarpSize, result);
}

}  // namespace quern::cpu::emit
