// SPDX-License-Identifier: Apache-2.0
// Emits fences, host calls, and sleep.
#include <llvm/IR/Intrinsics.h>

#include "cpu/emit/operations/address.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// A block runs on one worker, so among its threads only the compiler could change the order.
void emit_fence(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  if (inst.attr.scope == ir::Scope::cta) return compiler_barrier(context);
  const bool sequential = inst.attr.semantics == ir::Semantics::sc;
  context.builder().CreateFence(sequential ? llvm::AtomicOrdering::SequentiallyConsistent
                                           : llvm::AtomicOrdering::AcquireRelease);
}

/// Returns a lane's argument as 8 bytes: integers are zero-extended, floating-point numbers keep their bits.
Value* as_argument(Context& context, ir::Value value) {
  llvm::IRBuilder<>& b = context.builder();
  Value* const lanes = context.vector(value);
  Value* const integers = b.CreateBitCast(lanes, as_integer(lanes->getType()));
  return b.CreateZExt(integers, llvm::FixedVectorType::get(b.getInt64Ty(), kWarpSize));
}

void emit_host_call(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  llvm::IRBuilder<>& b = context.builder();
  llvm::Type* const lanes = llvm::FixedVectorType::get(b.getInt64Ty(), kWarpSize);
  const std::uint32_t count = static_cast<std::uint32_t>(inst.args.size());
  Value* const args = scratch(context, llvm::ArrayType::get(lanes, std::max(count, 1u)));
  for (std::uint32_t at = 0; at < count; ++at)
    b.CreateAlignedStore(as_argument(context, inst.args[at]), b.CreateConstInBoundsGEP1_64(lanes, args, at),
                         llvm::Align(64));
  Value* const results = spill(context, llvm::Constant::getNullValue(lanes));
  call_helper(context, "quern_cpu_host_calls", b.getVoidTy(),
              {context.worker(), context.launch(), b.getInt32(static_cast<std::uint32_t>(inst.imm)),
               b.getInt32(count), args, results, context.mask_bits(), b.getInt32(inst.location)},
              Touches::anything);
  if (inst.type != ir::Type::none) {
    Value* const result = b.CreateAlignedLoad(lanes, results, llvm::Align(64));
    define_vector(context, value, b.CreateZExtOrTrunc(result, context.vector_type_of(inst.type)));
  }
  release(context, {args, results});
}

/// Sleeps as long as the longest sleep of any running lane.
void emit_nanosleep(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  llvm::IRBuilder<>& b = context.builder();
  Value* time = nullptr;
  if (context.pattern(inst.args[0]).kind == analysis::LanePatternKind::uniform) {
    time = context.scalar(inst.args[0]);
  } else {
    Value* lanes = context.vector(inst.args[0]);
    if (!context.full())
      lanes = b.CreateSelect(context.mask(), lanes, llvm::Constant::getNullValue(lanes->getType()));
    time = b.CreateIntrinsic(llvm::Intrinsic::vector_reduce_umax, {lanes->getType()}, {lanes});
  }
  call_helper(context, "quern_cpu_nanosleep", b.getVoidTy(), {time}, Touches::anything);
}

bool accepts_host_call(const ir::Inst& inst) {
  constexpr std::size_t kMaxArguments = 8;
  return inst.args.size() <= kMaxArguments && !ir::is_float(inst.type);
}

constexpr Row kRows[] = {
    {ir::Op::fence, nullptr, emit_fence},
    {ir::Op::host_call, nullptr, emit_host_call, accepts_host_call},
    {ir::Op::nanosleep, nullptr, emit_nanosleep},
};

}  // namespace

std::span<const Row> system_rows() { return kRows; }

}  // namespace quern::cpu::emit
