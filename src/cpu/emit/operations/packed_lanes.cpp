// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/packed_lanes.hpp"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cpu/abi/state.hpp"
#include "cpu/emit/operations/lanes.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kVectorBits = 512;
/// After lanes that were apart, the next executions are not tested: they are likely to be apart, too.
constexpr std::uint8_t kUntested = 31;

/// Lanes that are tested by themselves.
struct Group {
  Value* mask = nullptr;   ///< the lanes that run
  Value* begin = nullptr;  ///< the index of the first of them
  Value* apart = nullptr;  ///< as mask: lanes that do not follow the one before
};

/// AVX-512 moves lanes of 32 and 64 bits.
bool can_pack(const Access& access, const LanePointers& pointers) {
  const Context& c = access.context;
  return !c.full() && c.specialisation().isa == Isa::avx512 && access.count == 1 &&
         access.element_bytes >= 4 && pointers.scale > 0 && access.element_bytes % pointers.scale == 0 &&
         chooses_at_run_time(c.function());
}

unsigned group_lanes(const Access& access, const LanePointers& pointers) {
  return kVectorBits / std::max(access.element_bytes * 8, pointers.index->getType()->getScalarSizeInBits());
}

/// The lanes of `vector` that are in `mask`, side by side from the first one on.
Value* moved_together(Context& context, Value* vector, Value* mask) {
  llvm::Type* const type = vector->getType();
  return context.builder().CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_compress, {type},
                                           {vector, llvm::Constant::getNullValue(type), mask});
}

/// The vector 0, step, 2 * step, ...
Value* ramp(llvm::Type* type, std::uint64_t step) {
  llvm::SmallVector<llvm::Constant*, 16> values;
  for (unsigned lane = 0; lane < llvm::cast<llvm::FixedVectorType>(type)->getNumElements(); ++lane)
    values.push_back(llvm::ConstantInt::get(type->getScalarType(), lane * step));
  return llvm::ConstantVector::get(values);
}

std::vector<Group> compare_indices(const Access& access, const LanePointers& pointers) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const unsigned lanes = group_lanes(access, pointers);
  const std::uint64_t step = access.element_bytes / static_cast<std::uint64_t>(pointers.scale);
  std::vector<Group> groups;
  for (unsigned first = 0; first < kWarpSize; first += lanes) {
    Group group;
    group.mask = slice(c, c.mask(), first, lanes);
    Value* const index = slice(c, pointers.index, first, lanes);
    llvm::Type* const type = index->getType();
    Value* const places =
        b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_expand, {type},
                          {ramp(type, step), llvm::Constant::getNullValue(type), group.mask});
    Value* const begins = b.CreateSub(index, places);  // equal in all lanes of a run
    group.begin = b.CreateExtractElement(moved_together(c, begins, group.mask), std::uint64_t{0});
    group.apart = b.CreateAnd(b.CreateICmpNE(begins, b.CreateVectorSplat(lanes, group.begin)), group.mask);
    groups.push_back(group);
  }
  return groups;
}

/// i1: each group is a run.
Value* are_packed(Context& context, const std::vector<Group>& groups) {
  llvm::IRBuilder<>& b = context.builder();
  Value* apart = groups[0].apart;
  for (std::size_t i = 1; i < groups.size(); ++i) apart = b.CreateOr(apart, groups[i].apart);
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(apart->getType())->getNumElements();
  return b.CreateICmpEQ(b.CreateBitCast(apart, b.getIntNTy(lanes)), b.getIntN(lanes, 0));
}

void store_groups(const Access& access, const LanePointers& pointers, std::int64_t displacement,
                  Value* values, const std::vector<Group>& groups) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const unsigned lanes = group_lanes(access, pointers);
  unsigned first = 0;
  for (const Group& group : groups) {
    Value* const running =
        b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b.CreateBitCast(group.mask, b.getIntNTy(lanes)));
    llvm::Type* const counts = llvm::FixedVectorType::get(b.getInt32Ty(), lanes);
    Value* const kept =
        b.CreateICmpULT(ramp(counts, 1), b.CreateVectorSplat(lanes, b.CreateZExt(running, b.getInt32Ty())));
    Value* const bytes = b.CreateMul(b.CreateSExtOrTrunc(group.begin, b.getInt64Ty()),
                                     b.getInt64(static_cast<std::uint64_t>(pointers.scale)));
    Value* const pointer = b.CreateGEP(b.getInt8Ty(), pointers.base, bytes);
    store_masked(access, moved_together(c, slice(c, values, first, lanes), group.mask),
                 advance(c, pointer, displacement), kept);
    first += lanes;
  }
}

Value* untested_place(const Access& access) {
  Context& c = access.context;
  const std::size_t offset =
      offsetof(engine::WorkerState, untested) + access.address % engine::kUntestedSlots;
  return c.builder().CreateConstInBoundsGEP1_64(c.builder().getInt8Ty(), c.worker(), offset);
}

}  // namespace

void store_packed_or(const Access& access, const LanePointers& pointers, std::int64_t displacement,
                     Value* values, llvm::function_ref<void()> scatter) {
  if (!can_pack(access, pointers)) return scatter();
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* const untested = untested_place(access);
  Value* const left = b.CreateLoad(b.getInt8Ty(), untested);
  Value* const tests = b.CreateICmpEQ(left, b.getInt8(0));
  Value* const one_less = b.CreateSub(left, b.getInt8(1));
  llvm::BasicBlock* const before = b.GetInsertBlock();

  llvm::BasicBlock* const test = c.new_block("test");
  const std::vector<Group> groups = compare_indices(access, pointers);
  Value* const packed = are_packed(c, groups);
  llvm::BasicBlock* const tested = b.GetInsertBlock();

  llvm::BasicBlock* const together = c.new_block("together");
  store_groups(access, pointers, displacement, values, groups);
  llvm::BasicBlock* const stored = b.GetInsertBlock();

  llvm::BasicBlock* const apart = c.new_block("apart");
  llvm::PHINode* const next = b.CreatePHI(b.getInt8Ty(), 2);
  next->addIncoming(one_less, before);
  next->addIncoming(b.getInt8(kUntested), tested);
  b.CreateStore(next, untested);
  scatter();
  llvm::BasicBlock* const scattered = b.GetInsertBlock();

  llvm::BasicBlock* const end = c.new_block("end");
  llvm::MDNode* const likely = llvm::MDBuilder(c.llvm()).createBranchWeights(8, 1);
  llvm::IRBuilder<>(before).CreateCondBr(tests, test, apart, likely);
  llvm::IRBuilder<>(tested).CreateCondBr(packed, together, apart, likely);
  llvm::IRBuilder<>(stored).CreateBr(end);
  llvm::IRBuilder<>(scattered).CreateBr(end);
}

}  // namespace quern::cpu::emit
