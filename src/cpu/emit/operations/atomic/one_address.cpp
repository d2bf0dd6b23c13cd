// SPDX-License-Identifier: Apache-2.0
// Operations of all lanes on one address: the lanes are combined in registers, in their order, and one
// compare and swap makes the result visible. For addresses that are locked, and for compare and swap.
#include <llvm/IR/Intrinsics.h>

#include "cpu/emit/operations/atomic/atomic.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

/// The lanes' operations in registers.
class Chain {
 public:
  explicit Chain(const Access& access)
      : access_(access),
        is_cas_(access.inst.attr.atomic == ir::AtomicOp::cas),
        operands_(lanes_of_operand(access, 1)),
        value_(scratch(access.context, access.memory_type())) {
    Context& c = access.context;
    llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), kWarpSize);
    if (is_cas_) seconds_ = lanes_of_operand(access, 2);
    if (!access.inst.attr.unused_result)
      out_ = c.full() ? scratch(c, type) : spill(c, llvm::Constant::getNullValue(type));
  }

  /// Emits the operations on `old`; returns the last lane's result.
  Value* run(Value* old) {
    llvm::IRBuilder<>& b = access_.context.builder();
    b.CreateStore(old, value_);
    for_lanes(access_.context, [&](Value* lane) {
      Value* const before = b.CreateLoad(access_.memory_type(), value_);
      if (out_ != nullptr) b.CreateStore(before, b.CreateGEP(access_.memory_type(), out_, lane));
      Value* const second = is_cas_ ? seconds_.at(b, lane) : nullptr;
      b.CreateStore(combine(b, access_.inst.attr.atomic, before, operands_.at(b, lane), second), value_);
    });
    return b.CreateLoad(access_.memory_type(), value_);
  }

  /// Returns the old values of the last run.
  Value* finish() {
    Context& c = access_.context;
    operands_.release(c);
    seconds_.release(c);
    release(c, {value_});
    if (out_ == nullptr) return nullptr;
    llvm::Type* const type = llvm::FixedVectorType::get(access_.memory_type(), kWarpSize);
    Value* const old = c.builder().CreateAlignedLoad(type, out_, llvm::Align(64));
    release(c, {out_});
    return old;
  }

 private:
  const Access& access_;
  const bool is_cas_;
  LaneArray operands_;
  LaneArray seconds_;
  Value* value_;
  Value* out_ = nullptr;
};

Value* bits_of_scalar(llvm::IRBuilder<>& b, Value* scalar) {
  return b.CreateBitCast(scalar, as_integer(scalar->getType()));
}

/// Emits the chain of the lanes, again if another thread has written meanwhile.
Value* emit_chain(const Access& access, Value* pointer) {
  llvm::IRBuilder<>& b = access.context.builder();
  Chain chain(access);
  llvm::LoadInst* const first =
      b.CreateAlignedLoad(as_integer(access.memory_type()), pointer, llvm::Align(access.element_bytes));
  first->setAtomic(llvm::AtomicOrdering::Monotonic);
  annotate(access, first);
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const loop = access.context.new_block("chain");
  llvm::IRBuilder<>(before).CreateBr(loop);
  llvm::PHINode* const seen = b.CreatePHI(first->getType(), 2);
  seen->addIncoming(first, before);
  Value* const next = chain.run(b.CreateBitCast(seen, access.memory_type()));
  const Exchange made = exchange(access, pointer, seen, bits_of_scalar(b, next));
  llvm::BasicBlock* const latch = b.GetInsertBlock();
  seen->addIncoming(made.old, latch);
  llvm::BasicBlock* const done = access.context.new_block("chain_done");
  llvm::IRBuilder<>(latch).CreateCondBr(made.done, done, loop);
  return chain.finish();
}

/// Emits compare and swap of lanes that all expect the value `expected`. The lanes succeed up to the first
/// one that swaps in another value: that one is read by all lanes behind it, which fail. If the exchange
/// fails, so do all lanes.
Value* emit_same_expected(const Access& access, Value* pointer, Value* expected) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* const seconds = vector_of_operand(access, 2);
  Value* changes = b.CreateICmpNE(seconds, splat(c, expected));
  if (!c.full()) changes = b.CreateAnd(changes, c.mask());
  Value* const word = mask_to_bits(c, changes);
  Value* const any = b.CreateICmpNE(word, b.getInt32(0));
  Value* const changer = b.CreateBinaryIntrinsic(Intrinsic::cttz, word, b.getFalse());
  Value* const next = b.CreateSelect(any, extract_lane(c, seconds, changer), expected);
  const Exchange made = exchange(access, pointer, expected, next);
  if (access.inst.attr.unused_result) return nullptr;
  Value* const behind = b.CreateICmpUGT(lane_numbers(c, 32), splat(c, changer));
  Value* const old = b.CreateSelect(behind, splat(c, next), splat(c, expected));
  return b.CreateSelect(made.done, old, splat(c, made.old));
}

Value* emit_swap(const Access& access, Value* pointer) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const ir::Value operand = access.inst.args[1];
  if (c.pattern(operand).kind == analysis::LanePatternKind::uniform)
    return emit_same_expected(access, pointer, to_memory(access, c.scalar(operand)));
  Value* const operands = vector_of_operand(access, 1);
  Value* const expected = extract_lane(c, operands, first_lane(c));
  Value* differ = b.CreateICmpNE(operands, splat(c, expected));
  if (!c.full()) differ = b.CreateAnd(differ, c.mask());
  Value* const same = b.CreateICmpEQ(mask_to_bits(c, differ), b.getInt32(0));
  return emit_either(
      c, same, "swap", [&] { return emit_same_expected(access, pointer, expected); },
      [&] { return emit_chain(access, pointer); });
}

}  // namespace

Value* emit_chained(const Access& access) {
  Value* const pointer = uniform_pointer(access);
  return access.inst.attr.atomic == ir::AtomicOp::cas ? emit_swap(access, pointer)
                                                      : emit_chain(access, pointer);
}

}  // namespace quern::cpu::emit
