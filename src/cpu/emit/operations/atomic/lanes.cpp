// SPDX-License-Identifier: Apache-2.0
// Emits an atomic operation at one address, and the loop over the lanes of a warp.
//
// No locked instruction is needed if no other thread can access the address at the same time:
//
// * Shared memory, and any memory at the scope of the block: a block runs entirely on one worker, and its
//   warps change only between operations.
// * The scopes of the GPU if there is one worker: all threads of the device run on it.
// * The same scopes in regions of memory that belong to the worker (biased.cpp).
//
// At the scope of the system, the host may access the address, so the instruction is locked.
#include <llvm/IR/Intrinsics.h>

#include "cpu/emit/operations/atomic/atomic.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::LanePatternKind;
using ir::AtomicOp;
using llvm::AtomicRMWInst;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

AtomicRMWInst::BinOp locked_operation(AtomicOp op) {
  switch (op) {
    case AtomicOp::add:
      return AtomicRMWInst::Add;
    case AtomicOp::fadd:
      return AtomicRMWInst::FAdd;
    case AtomicOp::and_:
      return AtomicRMWInst::And;
    case AtomicOp::or_:
      return AtomicRMWInst::Or;
    case AtomicOp::xor_:
      return AtomicRMWInst::Xor;
    case AtomicOp::exch:
      return AtomicRMWInst::Xchg;
    case AtomicOp::smin:
      return AtomicRMWInst::Min;
    case AtomicOp::smax:
      return AtomicRMWInst::Max;
    case AtomicOp::umin:
      return AtomicRMWInst::UMin;
    case AtomicOp::umax:
      return AtomicRMWInst::UMax;
    case AtomicOp::inc:
      return AtomicRMWInst::UIncWrap;
    case AtomicOp::dec:
      return AtomicRMWInst::UDecWrap;
    default:
      return AtomicRMWInst::BAD_BINOP;
  }
}

Value* update_plainly(const Access& access, Value* pointer, Value* operand, Value* second) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const llvm::Align align(access.element_bytes);
  if (!is_relaxed(access)) compiler_barrier(c);
  llvm::LoadInst* const old = b.CreateAlignedLoad(operand->getType(), pointer, align);
  annotate(access, old);
  llvm::StoreInst* const store =
      b.CreateAlignedStore(combine(b, access.inst.attr.atomic, old, operand, second), pointer, align);
  annotate(access, store);
  if (access.space != ir::Space::shared) {
    // Concurrent readers (the host, in mapped memory) observe each step.
    old->setAtomic(llvm::AtomicOrdering::Monotonic);
    store->setAtomic(llvm::AtomicOrdering::Monotonic);
  }
  if (!is_relaxed(access)) compiler_barrier(c);
  return old;
}

Value* update_locked(const Access& access, Value* pointer, Value* operand, Value* second) {
  llvm::IRBuilder<>& b = access.context.builder();
  const llvm::Align align(access.element_bytes);
  const auto order =
      is_relaxed(access) ? llvm::AtomicOrdering::Monotonic : llvm::AtomicOrdering::AcquireRelease;
  if (access.inst.attr.atomic == AtomicOp::cas) {
    const auto order_of_failure =
        is_relaxed(access) ? llvm::AtomicOrdering::Monotonic : llvm::AtomicOrdering::Acquire;
    llvm::AtomicCmpXchgInst* const exchange =
        b.CreateAtomicCmpXchg(pointer, operand, second, align, order, order_of_failure);
    annotate(access, exchange);
    return b.CreateExtractValue(exchange, 0);
  }
  llvm::AtomicRMWInst* const old =
      b.CreateAtomicRMW(locked_operation(access.inst.attr.atomic), pointer, operand, align, order);
  annotate(access, old);
  return old;
}

Exchange exchange_locked(const Access& access, Value* pointer, Value* seen, Value* next) {
  llvm::IRBuilder<>& b = access.context.builder();
  const bool relaxed = is_relaxed(access);
  llvm::AtomicCmpXchgInst* const made =
      b.CreateAtomicCmpXchg(pointer, seen, next, llvm::Align(width_of(seen->getType()) / 8),
                            relaxed ? llvm::AtomicOrdering::Monotonic : llvm::AtomicOrdering::AcquireRelease,
                            relaxed ? llvm::AtomicOrdering::Monotonic : llvm::AtomicOrdering::Acquire);
  annotate(access, made);
  return {b.CreateExtractValue(made, 0), b.CreateExtractValue(made, 1)};
}

Exchange exchange_plainly(const Access& access, Value* pointer, Value* seen, Value* next) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const llvm::Align align(width_of(seen->getType()) / 8);
  if (!is_relaxed(access)) compiler_barrier(c);
  llvm::LoadInst* const old = b.CreateAlignedLoad(seen->getType(), pointer, align);
  old->setAtomic(llvm::AtomicOrdering::Monotonic);
  annotate(access, old);
  Value* const same = b.CreateICmpEQ(old, seen);
  llvm::StoreInst* const store = b.CreateAlignedStore(b.CreateSelect(same, next, old), pointer, align);
  store->setAtomic(llvm::AtomicOrdering::Monotonic);
  annotate(access, store);
  if (!is_relaxed(access)) compiler_barrier(c);
  return {old, same};
}

}  // namespace

Value* combine(llvm::IRBuilder<>& b, AtomicOp op, Value* old, Value* operand, Value* second) {
  const auto number = [&](std::uint64_t value) { return bits(old->getType(), value); };
  switch (op) {
    case AtomicOp::add:
      return b.CreateAdd(old, operand);
    case AtomicOp::fadd:
      return b.CreateFAdd(old, operand);
    case AtomicOp::and_:
      return b.CreateAnd(old, operand);
    case AtomicOp::or_:
      return b.CreateOr(old, operand);
    case AtomicOp::xor_:
      return b.CreateXor(old, operand);
    case AtomicOp::exch:
      return operand;
    case AtomicOp::cas:
      return b.CreateSelect(b.CreateICmpEQ(old, operand), second, old);
    case AtomicOp::smin:
      return b.CreateBinaryIntrinsic(Intrinsic::smin, old, operand);
    case AtomicOp::smax:
      return b.CreateBinaryIntrinsic(Intrinsic::smax, old, operand);
    case AtomicOp::umin:
      return b.CreateBinaryIntrinsic(Intrinsic::umin, old, operand);
    case AtomicOp::umax:
      return b.CreateBinaryIntrinsic(Intrinsic::umax, old, operand);
    case AtomicOp::inc:
      return b.CreateSelect(b.CreateICmpUGE(old, operand), number(0), b.CreateAdd(old, number(1)));
    case AtomicOp::dec:
      return b.CreateSelect(b.CreateOr(b.CreateICmpEQ(old, number(0)), b.CreateICmpUGT(old, operand)),
                            operand, b.CreateSub(old, number(1)));
    default:
      throw Defect("an atomic operation that is not emitted inline");
  }
}

bool is_relaxed(const Access& access) {
  return access.inst.attr.semantics == ir::Semantics::weak ||
         access.inst.attr.semantics == ir::Semantics::relaxed;
}

bool needs_lock(const Access& access) {
  const ir::Scope scope = access.inst.attr.scope;
  if (access.exclusive || access.space == ir::Space::shared || scope == ir::Scope::cta) return false;
  return scope == ir::Scope::sys || !access.context.specialisation().alone;
}

bool has_update(AtomicOp op, ir::Type type) {
  if (op == AtomicOp::fadd) return type == ir::Type::f32 || type == ir::Type::f64;
  const bool integer = type == ir::Type::i32 || type == ir::Type::i64;
  return integer && (op == AtomicOp::cas || locked_operation(op) != AtomicRMWInst::BAD_BINOP);
}

Value* update(const Access& access, Value* pointer, Value* operand, Value* second) {
  return needs_lock(access) ? update_locked(access, pointer, operand, second)
                            : update_plainly(access, pointer, operand, second);
}

Exchange exchange(const Access& access, Value* pointer, Value* seen, Value* next) {
  return needs_lock(access) ? exchange_locked(access, pointer, seen, next)
                            : exchange_plainly(access, pointer, seen, next);
}

LaneArray lanes_of_operand(const Access& access, std::size_t index) {
  Context& c = access.context;
  const ir::Value operand = access.inst.args[index];
  if (c.pattern(operand).kind == LanePatternKind::uniform)
    return LaneArray::of_scalar(to_memory(access, c.scalar(operand)));
  return {c, to_memory(access, c.vector(operand))};
}

Value* vector_of_operand(const Access& access, std::size_t index) {
  return to_memory(access, access.context.vector(access.inst.args[index]));
}

Value* emit_either(Context& c, Value* condition, const char* name, const Side& then, const Side& otherwise) {
  llvm::BasicBlock* const before = c.builder().GetInsertBlock();
  llvm::BasicBlock* const yes = c.new_block(name);
  Value* const one = then();
  llvm::BasicBlock* const end_of_yes = c.builder().GetInsertBlock();
  llvm::BasicBlock* const no = c.new_block(name);
  llvm::IRBuilder<>(before).CreateCondBr(condition, yes, no);
  Value* const other = otherwise();
  llvm::BasicBlock* const end_of_no = c.builder().GetInsertBlock();
  llvm::BasicBlock* const done = c.new_block(name);
  llvm::IRBuilder<>(end_of_yes).CreateBr(done);
  llvm::IRBuilder<>(end_of_no).CreateBr(done);
  if (one == nullptr) return nullptr;
  llvm::PHINode* const result = c.builder().CreatePHI(one->getType(), 2);
  result->addIncoming(one, end_of_yes);
  result->addIncoming(other, end_of_no);
  return result;
}

Value* emit_lanes(const Access& access) {
  return emit_lanes_at(access, LanePlaces(access), [&](Value* pointer, Value* operand, Value* second) {
    return update(access, pointer, operand, second);
  });
}

Value* emit_lanes_at(const Access& access, LanePlaces places, const UpdateOne& update_one) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const bool is_cas = access.inst.attr.atomic == AtomicOp::cas;
  LaneArray operands = lanes_of_operand(access, 1);
  LaneArray seconds = is_cas ? lanes_of_operand(access, 2) : LaneArray();
  llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), kWarpSize);
  Value* out = nullptr;
  if (!access.inst.attr.unused_result)
    out = c.full() ? scratch(c, type) : spill(c, llvm::Constant::getNullValue(type));
  for_lanes(c, [&](Value* lane) {
    Value* const second = is_cas ? seconds.at(b, lane) : nullptr;
    Value* const old = update_one(places.at(b, lane), operands.at(b, lane), second);
    if (out != nullptr) b.CreateStore(old, b.CreateGEP(access.memory_type(), out, lane));
  });
  places.release(c);
  operands.release(c);
  seconds.release(c);
  if (out == nullptr) return nullptr;
  Value* const old = b.CreateAlignedLoad(type, out, llvm::Align(64));
  release(c, {out});
  return old;
}

}  // namespace quern::cpu::emit
