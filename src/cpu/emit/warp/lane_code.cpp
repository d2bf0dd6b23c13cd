// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/lane_code.hpp"

#include <algorithm>

namespace quern::cpu::emit {

void LaneCode::emit(ir::BlockId header) {
  number_ = plan_.lane_loop[header];
  loop_ = &plan_.lane_loops[number_];
  uniform_.clear();
  operands_.clear();
  exits_.clear();
  for (const ir::BlockId block : loop_->blocks)
    if (block != header) variables_.clear_begun(block, /*runs=*/false);

  llvm::AllocaInst* rest = make_variable(code_.getInt32Ty());
  code_.CreateStore(body_.running.word, rest);
  store_operands();
  find_exits();

  llvm::BasicBlock* lane = make_block("lane");
  llvm::BasicBlock* end =
      llvm::BasicBlock::Create(code_.getContext(), "lanes_done", inputs_.function, inputs_.done);
  next_lane_ = llvm::BasicBlock::Create(code_.getContext(), "next_lane", inputs_.function, end);
  blocks_.assign(function_->blocks.size(), nullptr);
  for (const ir::BlockId block : loop_->blocks)
    blocks_[block] = llvm::BasicBlock::Create(code_.getContext(), "alone" + std::to_string(block),
                                              inputs_.function, next_lane_);
  code_.CreateBr(lane);
  code_.SetInsertPoint(lane);
  llvm::Value* word = code_.CreateLoad(code_.getInt32Ty(), rest);
  lane_ = code_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, word, code_.getTrue());
  begin_lane();
  for (const ir::BlockId block : loop_->blocks) emit_block(block);

  code_.SetInsertPoint(next_lane_);
  word = code_.CreateLoad(code_.getInt32Ty(), rest);
  word = code_.CreateAnd(word, code_.CreateSub(word, code_.getInt32(1)));
  code_.CreateStore(word, rest);
  code_.CreateCondBr(code_.CreateICmpNE(word, code_.getInt32(0)), lane, end);

  values_.begin_block(Version::masked, header, end);
  std::ranges::for_each(exits_, [&](const Exit& exit) { arrive(exit); });
}

llvm::AllocaInst* LaneCode::make_variable(llvm::Type* type) {
  llvm::IRBuilder<> at(inputs_.entry, inputs_.entry->begin());
  return at.CreateAlloca(type);
}

/// Vectors of i1 are kept as bytes.
llvm::Type* LaneCode::element_type(ir::Value value) const {
  return inst(value).type == ir::Type::i1 ? code_.getInt8Ty() : type_of(inst(value).type);
}

/// The address of the lane's element.
llvm::Value* LaneCode::element(llvm::AllocaInst* array, ir::Value value) {
  return code_.CreateGEP(element_type(value), array, code_.CreateZExt(lane_, code_.getInt64Ty()));
}

/// Stores what the loop reads from outside where each lane finds its own.
void LaneCode::store_operands() {
  const auto store = [&](ir::Value value) {
    if (!slots_.has(Version::lane, value)) return;  // known at compile time
    if (pattern(value).kind == analysis::LanePatternKind::uniform) {
      uniform_.emplace_back(value, values_.scalar(value));
      return;
    }
    llvm::Value* all = values_.as_kept(value, false);
    llvm::Type* type = llvm::FixedVectorType::get(element_type(value), kWarpSize);
    if (all->getType() != type) all = code_.CreateZExt(all, type);
    code_.CreateStore(all, operands_.emplace_back(Array{value, make_variable(type)}).memory);
  };
  std::ranges::for_each(loop_->reads, store);
  for (const ir::Value phi : function_->blocks[loop_->header()].insts) {
    if (!is_phi(phi)) break;
    store(phi);
  }
}

void LaneCode::find_exits() {
  for (const ir::BlockId block : loop_->blocks)
    for (const ir::BlockId next : function_->blocks[block].succs) {
      if (is_inside(next) || std::ranges::find(exits_, next, &Exit::block) != exits_.end()) continue;
      Exit& exit = exits_.emplace_back(Exit{next, make_variable(code_.getInt32Ty()), {}});
      code_.CreateStore(code_.getInt32(0), exit.lanes);
      for (const ir::Value phi : function_->blocks[next].insts) {
        if (!is_phi(phi)) break;
        if (!slots_.has(Version::masked, phi) || kept_scalar(Version::masked, phi)) continue;
        exit.phis.push_back({phi, make_variable(llvm::FixedVectorType::get(element_type(phi), kWarpSize))});
      }
    }
}

/// The lane's elements become the values of the code that follows. Those that all lanes share are stored
/// again: the phis of the header change.
void LaneCode::begin_lane() {
  for (const auto& [value, what] : uniform_) code_.CreateStore(what, slots_.at(Version::lane, value).memory);
  for (const Array& array : operands_) {
    llvm::Value* what = code_.CreateLoad(element_type(array.value), element(array.memory, array.value));
    const Slot& to = slots_.at(Version::lane, array.value);
    if (what->getType() != to.type) what = code_.CreateTrunc(what, to.type);
    code_.CreateStore(what, to.memory);
  }
  code_.CreateBr(blocks_[loop_->header()]);
}

void LaneCode::emit_block(ir::BlockId block) {
  values_.begin_block(Version::lane, block, blocks_[block]);
  instructions_.emit(block);
  const auto is_short = std::ranges::find(loop_->short_loops, block, &cuts::LaneLoop::Short::header);
  if (is_short != loop_->short_loops.end())
    for (unsigned copy = 1; copy < is_short->copies; ++copy) emit_next_copy(*is_short);
  const ir::Inst& last = terminator(block);
  if (last.op == ir::Op::br) return emit_edge(block, 0);
  llvm::BasicBlock* taken = make_block("taken");
  llvm::BasicBlock* not_taken = make_block("not_taken");
  code_.CreateCondBr(values_.scalar(last.args[0]), taken, not_taken);
  code_.SetInsertPoint(taken);
  emit_edge(block, 0);
  code_.SetInsertPoint(not_taken);
  emit_edge(block, 1);
}

/// The header's next iteration for a lane that stays in the loop, the same one again for a lane that leaves
/// it.
void LaneCode::emit_next_copy(const cuts::LaneLoop::Short& loop) {
  const std::vector<ir::BlockId>& succs = function_->blocks[loop.header].succs;
  const unsigned inside = succs[0] == loop.latch ? 0 : 1;
  llvm::Value* stays = values_.scalar(terminator(loop.header).args[0]);
  if (inside == 1) stays = code_.CreateNot(stays);
  std::vector<std::pair<llvm::Value*, llvm::Value*>> stores;
  // A number that grows by a constant grows by that or by 0, so that share_checks sees how far it is from the
  // one before.
  const auto next_of = [&](ir::Value phi, ir::Value operand) -> llvm::Value* {
    llvm::Value *before = values_.scalar(phi), *after = values_.scalar(operand);
    const ir::Inst& sum = inst(operand);
    if (sum.op != ir::Op::iadd || sum.args[0] != phi || inst(sum.args[1]).op != ir::Op::constant)
      return code_.CreateSelect(stays, after, before);
    llvm::Value* step = values_.scalar(sum.args[1]);
    return code_.CreateAdd(before, code_.CreateMul(code_.CreateZExt(stays, step->getType()), step));
  };
  for (const auto& [phi, operand] : edges_.phi_operands(loop.latch, loop.latch == loop.header ? inside : 0))
    if (slots_.has(Version::lane, phi))
      stores.emplace_back(slots_.at(Version::lane, phi).memory, next_of(phi, operand));
  for (const auto& [memory, what] : stores) code_.CreateStore(what, memory);
  llvm::BasicBlock* next = make_block("again");
  code_.CreateBr(next);
  values_.begin_block(Version::lane, loop.header, next);
  instructions_.emit(loop.header);
}

void LaneCode::emit_edge(ir::BlockId block, unsigned successor_index) {
  const ir::BlockId next = function_->blocks[block].succs[successor_index];
  if (!is_inside(next)) return leave(*std::ranges::find(exits_, next, &Exit::block), block, successor_index);
  std::vector<std::pair<llvm::Value*, llvm::Value*>> stores;  // a phi may read another one: read all first
  for (const auto& [phi, operand] : edges_.phi_operands(block, successor_index))
    if (slots_.has(Version::lane, phi))
      stores.emplace_back(slots_.at(Version::lane, phi).memory, values_.scalar(operand));
  for (const auto& [memory, what] : stores) code_.CreateStore(what, memory);
  code_.CreateBr(blocks_[next]);
}

/// The lane leaves the loop, and what it computed stays behind.
void LaneCode::leave(Exit& exit, ir::BlockId block, unsigned successor_index) {
  for (const auto& [phi, operand] : edges_.phi_operands(block, successor_index)) {
    if (!slots_.has(Version::masked, phi)) continue;
    llvm::Value* what = values_.scalar(operand);
    llvm::Value* to = slots_.at(Version::masked, phi).memory;
    if (!kept_scalar(Version::masked, phi)) {
      to = element(std::ranges::find(exit.phis, phi, &Array::value)->memory, phi);
      if (what->getType() != element_type(phi)) what = code_.CreateZExt(what, element_type(phi));
    }
    code_.CreateStore(what, to);
  }
  llvm::Value* lanes = code_.CreateLoad(code_.getInt32Ty(), exit.lanes);
  code_.CreateStore(code_.CreateOr(lanes, code_.CreateShl(code_.getInt32(1), lane_)), exit.lanes);
  code_.CreateBr(next_lane_);
}

/// In masked code: the lanes that left the loop there wait at the exit, or end.
void LaneCode::arrive(const Exit& exit) {
  llvm::Value* word = code_.CreateLoad(code_.getInt32Ty(), exit.lanes);
  if (plan_.ends[exit.block]) {
    llvm::Value* live = code_.CreateLoad(code_.getInt32Ty(), body_.live);
    code_.CreateStore(code_.CreateAnd(live, code_.CreateNot(word)), body_.live);
    return;
  }
  llvm::Value* bits = masks_.bits_of_word(word);
  for (const Array& array : exit.phis) {
    const Slot& to = slots_.at(Version::masked, array.value);
    llvm::Value* what = code_.CreateLoad(array.memory->getAllocatedType(), array.memory);
    if (inst(array.value).type == ir::Type::i1) what = code_.CreateTrunc(what, masks_.bits_type());
    what = code_.CreateSelect(bits, slots_.pack_bits(what), code_.CreateLoad(to.type, to.memory));
    code_.CreateStore(what, to.memory);
  }
  llvm::AllocaInst* waiting = body_.masked_blocks[exit.block].waiting;
  code_.CreateStore(masks_.either(masks_.lanes_of(bits), code_.CreateLoad(masks_.type(), waiting)), waiting);
}

}  // namespace quern::cpu::emit
