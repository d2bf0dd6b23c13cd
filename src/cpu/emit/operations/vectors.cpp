// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/vectors.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <cassert>
#include <numeric>
#include <vector>

namespace quern::cpu::emit {

llvm::Constant* lane_constant(Context& context, unsigned bits,
                              const std::array<std::int64_t, kWarpSize>& values) {
  llvm::Type* const type = llvm::IntegerType::get(context.llvm(), bits);
  llvm::SmallVector<llvm::Constant*, kWarpSize> lanes;
  for (const std::int64_t value : values)
    lanes.push_back(llvm::ConstantInt::get(
        type, llvm::APInt(64, static_cast<std::uint64_t>(value), true).sextOrTrunc(bits)));
  return llvm::ConstantVector::get(lanes);
}

llvm::Constant* lanes_before(Context& context) {
  std::array<std::int64_t, kWarpSize> before{};
  for (unsigned lane = 0; lane < kWarpSize; ++lane) before[lane] = (std::int64_t{1} << lane) - 1;
  return lane_constant(context, 32, before);
}

llvm::Constant* lane_numbers(Context& context, unsigned bits) {
  std::array<std::int64_t, kWarpSize> values{};
  std::iota(values.begin(), values.end(), 0);
  return lane_constant(context, bits, values);
}

llvm::Constant* lane_mask(Context& context, std::uint32_t bits) {
  std::array<std::int64_t, kWarpSize> values{};
  for (unsigned lane = 0; lane < kWarpSize; ++lane) values[lane] = (bits >> lane) & 1;
  return lane_constant(context, 1, values);
}

llvm::Value* first_lane(Context& context) {
  llvm::IRBuilder<>& b = context.builder();
  if (context.full()) return b.getInt32(0);
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, context.mask_bits(), b.getFalse());
}

llvm::Value* last_lane(Context& context) {
  llvm::IRBuilder<>& b = context.builder();
  if (context.full()) return b.getInt32(kWarpSize - 1);
  // Masked to 31, so that the result is a lane number for an empty mask too (code may run without lanes).
  llvm::Value* const zeros =
      b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, context.mask_bits(), b.getFalse());
  return b.CreateAnd(b.CreateSub(b.getInt32(kWarpSize - 1), zeros), kWarpSize - 1);
}

llvm::Value* extract_lane(Context& context, llvm::Value* vector, llvm::Value* lane) {
  llvm::IRBuilder<>& b = context.builder();
  if (llvm::isa<llvm::Constant>(lane)) return b.CreateExtractElement(vector, lane);
  return b.CreateExtractElement(vector, b.CreateAnd(lane, kWarpSize - 1));
}

llvm::Value* splat(Context& context, llvm::Value* scalar) {
  return context.builder().CreateVectorSplat(kWarpSize, scalar);
}

llvm::Value* mask_to_bits(Context& context, llvm::Value* mask) {
  return context.builder().CreateBitCast(mask, context.builder().getInt32Ty());
}

llvm::Value* slice(Context& context, llvm::Value* vector, unsigned first, unsigned count) {
  if (first == 0 && count == llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements())
    return vector;
  llvm::SmallVector<int, 64> lanes(count);
  std::iota(lanes.begin(), lanes.end(), static_cast<int>(first));
  return context.builder().CreateShuffleVector(vector, lanes);
}

llvm::Value* concat(Context& context, std::span<llvm::Value* const> parts) {
  std::vector<llvm::Value*> level(parts.begin(), parts.end());
  while (level.size() > 1) {
    assert(level.size() % 2 == 0);
    const unsigned count = llvm::cast<llvm::FixedVectorType>(level[0]->getType())->getNumElements();
    llvm::SmallVector<int, 128> lanes(count * 2);
    std::iota(lanes.begin(), lanes.end(), 0);
    std::vector<llvm::Value*> next;
    for (std::size_t at = 0; at < level.size(); at += 2)
      next.push_back(context.builder().CreateShuffleVector(level[at], level[at + 1], lanes));
    level = std::move(next);
  }
  return level[0];
}

llvm::Value* blend(Context& context, std::uint32_t mask, llvm::Value* then, llvm::Value* otherwise) {
  if (mask == kAllLanes) return then;
  if (mask == 0) return otherwise;
  llvm::SmallVector<int, kWarpSize> lanes;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    lanes.push_back(static_cast<int>((mask >> lane) & 1 ? lane : lane + kWarpSize));
  return context.builder().CreateShuffleVector(then, otherwise, lanes);
}

llvm::Value* scratch(Context& context, llvm::Type* type) {
  llvm::IRBuilder<>& b = context.builder();
  llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::AllocaInst* const variable = at_entry.CreateAlloca(type);
  variable->setAlignment(llvm::Align(64));
  b.CreateLifetimeStart(variable);
  return variable;
}

llvm::Value* spill(Context& context, llvm::Value* value) {
  llvm::Value* const variable = scratch(context, value->getType());
  context.builder().CreateAlignedStore(value, variable, llvm::Align(64));
  return variable;
}

void release(Context& context, std::initializer_list<llvm::Value*> variables) {
  for (llvm::Value* const variable : variables)
    if (llvm::isa<llvm::AllocaInst>(variable)) context.builder().CreateLifetimeEnd(variable);
}

Parts choose(Context& context, llvm::Value* condition, llvm::function_ref<void()> first,
             llvm::function_ref<void()> second) {
  llvm::IRBuilder<>& b = context.builder();
  llvm::BasicBlock* const from = b.GetInsertBlock();
  llvm::BasicBlock* const begin = context.new_block("first");
  first();
  Parts parts{b.GetInsertBlock(), nullptr};
  llvm::BasicBlock* const other = context.new_block("second");
  second();
  parts.second = b.GetInsertBlock();
  llvm::BasicBlock* const end = context.new_block("both");
  llvm::IRBuilder<>(from).CreateCondBr(condition, begin, other);
  llvm::IRBuilder<>(parts.first).CreateBr(end);
  llvm::IRBuilder<>(parts.second).CreateBr(end);
  return parts;
}

std::vector<llvm::Value*> choose_values(Context& context, llvm::Value* condition,
                                        llvm::function_ref<std::vector<llvm::Value*>()> first,
                                        llvm::function_ref<std::vector<llvm::Value*>()> second) {
  std::vector<llvm::Value*> ones, others;
  const Parts parts = choose(context, condition, [&] { ones = first(); }, [&] { others = second(); });
  std::vector<llvm::Value*> values;
  for (std::size_t i = 0; i < ones.size(); ++i) {
    llvm::PHINode* const either = context.builder().CreatePHI(ones[i]->getType(), 2);
    either->addIncoming(ones[i], parts.first);
    either->addIncoming(others[i], parts.second);
    values.push_back(either);
  }
  return values;
}

void define_scalar(Context& context, ir::Value value, llvm::Value* scalar) {
  context.define(value, context.pattern(value).scalar() ? scalar : splat(context, scalar));
}

void define_vector(Context& context, ir::Value value, llvm::Value* vector) {
  context.define(
      value, context.pattern(value).scalar() ? extract_lane(context, vector, first_lane(context)) : vector);
}

llvm::CallInst* call_helper(Context& context, std::string_view name, llvm::Type* result,
                            llvm::ArrayRef<llvm::Value*> args, Touches touches) {
  llvm::SmallVector<llvm::Type*, 8> types;
  for (const llvm::Value* const arg : args) types.push_back(arg->getType());
  const llvm::FunctionCallee callee = context.helper(name, llvm::FunctionType::get(result, types, false));
  llvm::CallInst* const call = context.builder().CreateCall(callee, args);
  call->setDoesNotThrow();
  if (touches == Touches::arguments_only) call->setMemoryEffects(llvm::MemoryEffects::argMemOnly());
  if (touches == Touches::reads_memory)
    call->setMemoryEffects(llvm::MemoryEffects::readOnly() | llvm::MemoryEffects::argMemOnly());
  return call;
}

llvm::Value* fused_multiply_add(Context& context, llvm::Value* x, llvm::Value* y, llvm::Value* z) {
  llvm::IRBuilder<>& b = context.builder();
  llvm::Type* const type = x->getType();
  if (context.specialisation().isa != Isa::baseline)
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z});
  // There is no instruction for it; LLVM would emit 32 calls inline.
  llvm::Value* const out = scratch(context, type);
  llvm::Value* const in[] = {spill(context, x), spill(context, y), spill(context, z)};
  llvm::Value* const count = b.getInt32(type->isVectorTy() ? kWarpSize : 1);
  call_helper(context, type->getScalarType()->isFloatTy() ? "quern_cpu_fma_f32" : "quern_cpu_fma_f64",
              b.getVoidTy(), {count, out, in[0], in[1], in[2]}, Touches::arguments_only);
  llvm::Value* const result = b.CreateAlignedLoad(type, out, llvm::Align(64));
  release(context, {out, in[0], in[1], in[2]});
  return result;
}

}  // namespace quern::cpu::emit
