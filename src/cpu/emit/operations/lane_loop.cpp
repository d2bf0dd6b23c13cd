// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/lane_loop.hpp"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <bit>

#include "cpu/emit/llvm/opaque.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

bool runs_few_known_lanes(Context& c) {
  const auto* const lanes = llvm::dyn_cast<llvm::ConstantInt>(c.mask_bits());
  return lanes != nullptr && std::popcount(lanes->getZExtValue()) <= kFewLanes;
}

LaneArray::LaneArray(Context& c, Value* vector) : type_(vector->getType()->getScalarType()) {
  if (c.full() || runs_few_known_lanes(c))
    vector_ = vector;
  else
    memory_ = spill(c, vector);
}

LaneArray LaneArray::of_scalar(Value* scalar) {
  LaneArray made;
  made.scalar_ = scalar;
  return made;
}

/// Returns two 32-bit lanes in one register, which halves the number of moves out of the vector. It does not
/// use memory: loads would wait for stores of other lanes whose addresses have the same lowest 12 bits.
Value* LaneArray::pair_at(llvm::IRBuilder<>& b, std::uint64_t index) {
  Value*& pair = pairs_[index];
  if (pair != nullptr) return pair;
  llvm::Type* const wide = b.getInt64Ty();
  Value* const pairs = b.CreateBitCast(vector_, llvm::FixedVectorType::get(wide, kWarpSize / 2));
  // Opaque to LLVM, which would otherwise extract the halves one by one.
  return pair = opaque(b, b.CreateExtractElement(pairs, index), 'r');
}

Value* LaneArray::at(llvm::IRBuilder<>& b, Value* lane) {
  if (scalar_ != nullptr) return scalar_;
  if (memory_ != nullptr) return b.CreateLoad(type_, b.CreateGEP(type_, memory_, lane));
  if (!type_->isIntegerTy(32)) return b.CreateExtractElement(vector_, lane);
  const std::uint64_t index = llvm::cast<llvm::ConstantInt>(lane)->getZExtValue();
  Value* const pair = pair_at(b, index / 2);
  return b.CreateTrunc(index % 2 == 0 ? pair : b.CreateLShr(pair, 32), type_);
}

void LaneArray::release(Context& c) const {
  if (memory_ != nullptr) emit::release(c, {memory_});
}

LanePlaces::LanePlaces(const Access& access) {
  if (access.layout.kind == LayoutKind::uniform) {
    pointers_.base = uniform_pointer(access);
    return;
  }
  pointers_ = lane_pointers(access);
  index_ = LaneArray(access.context, pointers_.index);
}

Value* LanePlaces::at(llvm::IRBuilder<>& b, Value* lane) {
  if (pointers_.index == nullptr) return pointers_.base;
  Value* const index = b.CreateSExt(index_.at(b, lane), b.getInt64Ty());
  Value* const scale = b.getInt64(static_cast<std::uint64_t>(pointers_.scale));
  return b.CreateGEP(b.getInt8Ty(), pointers_.base, b.CreateMul(index, scale));
}

namespace {

using Body = std::function<void(Value*)>;

void for_running_lanes(Context& c, const Body& body) {
  llvm::IRBuilder<>& b = c.builder();
  Value* const mask = c.mask_bits();
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const loop = c.new_block("lanes");
  llvm::IRBuilder<>(before).CreateBr(loop);
  llvm::PHINode* const left = b.CreatePHI(b.getInt32Ty(), 2);
  left->addIncoming(mask, before);
  Value* const lane = b.CreateBinaryIntrinsic(Intrinsic::cttz, left, b.getTrue());
  body(b.CreateZExt(lane, b.getInt64Ty()));
  Value* const next = b.CreateAnd(left, b.CreateSub(left, b.getInt32(1)));
  Value* const more = b.CreateICmpNE(next, b.getInt32(0));
  llvm::BasicBlock* const latch = b.GetInsertBlock();
  left->addIncoming(next, latch);
  llvm::BasicBlock* const done = c.new_block("lanes_done");
  llvm::IRBuilder<>(latch).CreateCondBr(more, loop, done,
                                        llvm::MDBuilder(c.llvm()).createBranchWeights(1, 1));
}

}  // namespace

void for_lanes(Context& c, const Body& body) {
  if (!c.full() && !runs_few_known_lanes(c)) return for_running_lanes(c, body);
  const std::uint64_t lanes = llvm::cast<llvm::ConstantInt>(c.mask_bits())->getZExtValue();
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if ((lanes >> lane & 1) != 0) body(c.builder().getInt64(lane));
}

}  // namespace quern::cpu::emit
