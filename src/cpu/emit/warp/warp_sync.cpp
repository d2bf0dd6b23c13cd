// SPDX-License-Identifier: Apache-2.0
// The parts of DispatchedCode in which lanes wait: for the lanes of a membermask, and at barriers of the
// block.
#include "cpu/emit/warp/dispatched_code.hpp"

#include <llvm/IR/Module.h>
#include <array>

#include "cpu/abi/warps.hpp"

namespace quern::cpu::emit {
namespace {

namespace lane_pc = engine::lane_pc;
using engine::WarpFrame;

}  // namespace

/// Lanes whose members have all arrived continue; the other lanes wait.
void DispatchedCode::sync_lanes(ir::BlockId block) {
  const ir::Value members = inst(plan_.waits[block]).args.back();
  llvm::Type* word = code_.getInt32Ty();
  llvm::Value* pcs = load_pcs();
  llvm::Value* awake = code_.CreateAnd(
      pcs, code_.CreateVectorSplat(kWarpSize, code_.getInt32(~(lane_pc::kAsleep | lane_pc::kReleased))));
  llvm::Value* here =
      code_.CreateICmpEQ(awake, code_.CreateVectorSplat(kWarpSize, code_.getInt32(pc_of(block))));
  llvm::Value* field = head_field(offsetof(WarpFrame, members));
  llvm::Type* type = vector_type_of(ir::Type::i32);
  llvm::Value* old = code_.CreateAlignedLoad(type, field, llvm::Align(64));
  code_.CreateAlignedStore(code_.CreateSelect(here, values_.vector(members), old), field, llvm::Align(64));

  llvm::BasicBlock* before = code_.GetInsertBlock();
  llvm::BasicBlock* some = make_block("some");
  llvm::BasicBlock* together = make_block("together");
  llvm::Value* here_word = masks_.word_of(here);
  llvm::Value* awake_too = code_.CreateICmpEQ(awake, pcs);
  llvm::Value* all =
      code_.CreateAnd(code_.CreateICmpEQ(here_word, body_.live_bits()),
                      code_.CreateICmpEQ(masks_.word_of(code_.CreateAnd(awake_too, here)), here_word));
  code_.CreateCondBr(all, together, some);
  code_.SetInsertPoint(some);
  llvm::Value* ready = engine_.call(
      "quern_cpu_sync_lanes", word,
      {inputs_.frame, code_.getInt32(pc_of(block)), code_.getInt32(inst(plan_.waits[block]).location)});
  code_.CreateCondBr(code_.CreateICmpEQ(ready, code_.getInt32(0)), dispatch_, together);
  code_.SetInsertPoint(together);
  llvm::PHINode* lanes = code_.CreatePHI(word, 2);
  lanes->addIncoming(here_word, before);
  lanes->addIncoming(ready, some);
  body_.running.word = lanes;
  body_.running.bits = masks_.bits_of_word(lanes);
  body_.running.lanes = masks_.lanes_of(body_.running.bits);
}

/// Lanes at a barrier other than the first lane's do not proceed here; they run next.
void DispatchedCode::sync_block(ir::BlockId block) {
  const ir::Inst& barrier = inst(plan_.waits[block]);
  const bool reduces = barrier.op == ir::Op::barrier_reduce;
  const std::size_t first_operand = reduces ? 1 : 0;
  llvm::Value* first =
      code_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, body_.running.word, code_.getFalse());
  llvm::Value* lanes = body_.running.word;
  std::array<llvm::Value*, 2> numbers{code_.getInt32(0), code_.getInt32(0)};
  for (std::size_t i = 0; first_operand + i < barrier.args.size() && i < 2; ++i) {
    const ir::Value operand = barrier.args[first_operand + i];
    if (pattern(operand).kind == analysis::LanePatternKind::uniform) {
      numbers[i] = values_.scalar(operand);
      continue;
    }
    llvm::Value* all = values_.vector(operand);
    numbers[i] = code_.CreateExtractElement(all, first);
    llvm::Value* same = code_.CreateICmpEQ(all, code_.CreateVectorSplat(kWarpSize, numbers[i]));
    lanes = code_.CreateAnd(lanes, masks_.word_of(same));
  }
  llvm::Value* yes = code_.getInt32(0);
  if (reduces) yes = masks_.word_of(values_.vector(barrier.args[0]));
  const auto how =
      barrier.op == ir::Op::barrier_arrive ? engine::BarrierStep::arrive : engine::BarrierStep::wait;
  engine_.call(
      "quern_cpu_arrive_at_barrier", code_.getVoidTy(),
      {inputs_.worker, inputs_.frame, lanes, code_.getInt32(pc_of(function_->blocks[block].succs[0])),
       code_.getInt32(static_cast<std::uint32_t>(how)), numbers[0], numbers[1], yes,
       code_.getInt32(barrier.location)});
  code_.CreateBr(dispatch_);
}

/// Emitted after a barrier_reduce: loads its result, which the engine stored for each lane.
void DispatchedCode::define_reduction(ir::BlockId block) {
  const std::vector<ir::BlockId>& preds = function_->blocks[block].preds;
  const ir::Value which = preds.size() == 1 ? plan_.waits[preds[0]] : ir::kNone;
  if (which == ir::kNone || inst(which).op != ir::Op::barrier_reduce) return;
  llvm::Type* type = vector_type_of(ir::Type::i32);
  const auto counts = [&](std::uint64_t offset) {
    return code_.CreateAlignedLoad(type, head_field(offset), llvm::Align(64));
  };
  llvm::Value* result = counts(offsetof(WarpFrame, true_lanes));
  if (static_cast<ir::BarrierReduce>(inst(which).imm) == ir::BarrierReduce::and_)
    result = code_.CreateICmpEQ(result, counts(offsetof(WarpFrame, arrived_lanes)));
  else if (static_cast<ir::BarrierReduce>(inst(which).imm) == ir::BarrierReduce::or_)
    result = code_.CreateICmpNE(result, llvm::Constant::getNullValue(type));
  values_.define(which, result);
}

}  // namespace quern::cpu::emit
