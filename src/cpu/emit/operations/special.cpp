// SPDX-License-Identifier: Apache-2.0
// Values that do not come from other operations: constants, parameters, special registers, addresses and
// their spaces.
#include <llvm/IR/Intrinsics.h>

#include <cassert>
#include <cstddef>

#include "cpu/abi/state.hpp"
#include "cpu/emit/operations/address.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using engine::LaunchState;
using engine::WorkerState;
using llvm::Value;

void emit_constant(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  define_scalar(context, value, constant_of(context, inst.type, inst.op == ir::Op::undef ? 0 : inst.imm));
}

void emit_param(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  llvm::IRBuilder<>& b = context.builder();
  Value* const pointer = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), context.params(), inst.imm);
  if (inst.type == ir::Type::i1) {
    Value* const byte = load_invariant(context, b.getInt8Ty(), pointer);
    return define_scalar(context, value, b.CreateICmpNE(byte, b.getInt8(0)));
  }
  define_scalar(context, value, load_invariant(context, context.type_of(inst.type), pointer));
}

void emit_symbol(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  llvm::IRBuilder<>& b = context.builder();
  const ir::Symbol& symbol = context.module().symbols[inst.imm];
  if (symbol.space == ir::Space::shared)
    return define_scalar(context, value, b.getInt64(symbol.shared_offset));
  Value* const field =
      b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), context.launch(), offsetof(LaunchState, symbols));
  Value* const table = load_invariant(context, b.getPtrTy(), field);
  Value* const entry = b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), table, inst.imm);
  define_scalar(context, value, load_invariant(context, b.getInt64Ty(), entry));
}

void emit_local_address(Context& context, ir::Value value) {
  llvm::IRBuilder<>& b = context.builder();
  define_scalar(context, value,
                b.CreateAdd(context.local_begin(), b.getInt64(context.function()[value].imm)));
}

// --- special registers

/// tid.x, y or z of thread number `linear` of the block.
Value* thread_index(Context& context, Value* linear, unsigned dimension) {
  llvm::IRBuilder<>& b = context.builder();
  const auto& block = context.specialisation().block;
  const std::uint64_t below = dimension == 0   ? 1
                              : dimension == 1 ? block[0]
                                               : std::uint64_t{block[0]} * block[1];
  Value* const quotient = below == 1 ? linear : b.CreateUDiv(linear, bits(linear->getType(), below));
  // there is no higher dimension
  if (below * block[dimension] == context.specialisation().threads()) return quotient;
  return b.CreateURem(quotient, bits(linear->getType(), block[dimension]));
}

/// The value of the register in each of 32 lanes if `lanes` is a vector, or in lane 0 if it is a scalar.
Value* lane_register(Context& context, ir::Special which, Value* lanes) {
  llvm::IRBuilder<>& b = context.builder();
  llvm::Type* const type = lanes->getType();
  Value* const one = bits(type, 1);
  Value* const self = b.CreateShl(one, lanes);
  switch (which) {
    case ir::Special::laneid:
      return lanes;
    case ir::Special::lanemask_eq:
      return self;
    case ir::Special::lanemask_lt:
      return b.CreateSub(self, one);
    case ir::Special::lanemask_le:
      return b.CreateOr(b.CreateSub(self, one), self);
    case ir::Special::lanemask_ge:
      return b.CreateNeg(self);
    case ir::Special::lanemask_gt:
      return b.CreateXor(b.CreateNeg(self), self);
    default:
      break;
  }
  Value* const first = b.CreateShl(context.warp_index(), 5);
  Value* const linear = b.CreateAdd(type->isVectorTy() ? splat(context, first) : first, lanes);
  return thread_index(context, linear,
                      static_cast<unsigned>(which) - static_cast<unsigned>(ir::Special::tid_x));
}

bool differs_between_lanes(ir::Special which) {
  return which <= ir::Special::tid_z || which == ir::Special::laneid ||
         (which >= ir::Special::lanemask_eq && which <= ir::Special::lanemask_gt);
}

Value* field(Context& context, Value* structure, std::size_t offset, llvm::Type* type) {
  llvm::IRBuilder<>& b = context.builder();
  return load_invariant(context, type, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), structure, offset));
}

Value* clock_register(Context& context, ir::Special which) {
  llvm::IRBuilder<>& b = context.builder();
  if (which >= ir::Special::globaltimer) {
    Value* const time = call_helper(context, "quern_cpu_global_timer", b.getInt64Ty(), {}, Touches::anything);
    return which == ir::Special::globaltimer_hi ? b.CreateLShr(time, 32) : time;
  }
  Value* const cycles = b.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {});
  return which == ir::Special::clock_hi ? b.CreateLShr(cycles, 32) : cycles;
}

constexpr std::uint64_t kFieldOfNctaid[] = {offsetof(LaunchState, grid), offsetof(LaunchState, grid) + 4,
                                            offsetof(LaunchState, grid) + 8};

Value* uniform_register(Context& context, ir::Special which) {
  llvm::IRBuilder<>& b = context.builder();
  llvm::Type* const word = b.getInt32Ty();
  const auto dimension = [&](ir::Special first) {
    return static_cast<unsigned>(which) - static_cast<unsigned>(first);
  };
  switch (which) {
    case ir::Special::ntid_x:
    case ir::Special::ntid_y:
    case ir::Special::ntid_z:
      return b.getInt32(context.specialisation().block[dimension(ir::Special::ntid_x)]);
    case ir::Special::ctaid_x:
    case ir::Special::ctaid_y:
    case ir::Special::ctaid_z:
      return context.ctaid(dimension(ir::Special::ctaid_x));
    case ir::Special::nctaid_x:
    case ir::Special::nctaid_y:
    case ir::Special::nctaid_z:
      return field(context, context.launch(), kFieldOfNctaid[dimension(ir::Special::nctaid_x)], word);
    case ir::Special::warpid:
      return context.warp_index();
    case ir::Special::nwarpid:
      return b.getInt32(context.specialisation().warps());
    case ir::Special::smid:
      return field(context, context.worker(), offsetof(WorkerState, worker_index), word);
    case ir::Special::nsmid:
      return field(context, context.launch(), offsetof(LaunchState, sm_count), word);
    case ir::Special::gridid:
      return field(context, context.launch(), offsetof(LaunchState, grid_id), b.getInt64Ty());
    case ir::Special::dynamic_smem_size:
      return field(context, context.launch(), offsetof(LaunchState, dynamic_shared_bytes), word);
    case ir::Special::total_smem_size:
      return field(context, context.launch(), offsetof(LaunchState, total_shared_bytes), word);
    case ir::Special::grid_workspace_lo:
      return field(context, context.launch(), offsetof(LaunchState, grid_workspace), word);
    case ir::Special::grid_workspace_hi:
      return field(context, context.launch(), offsetof(LaunchState, grid_workspace) + 4, word);
    default:
      return clock_register(context, which);
  }
}

void emit_special(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  llvm::IRBuilder<>& b = context.builder();
  const auto which = static_cast<ir::Special>(inst.imm);
  if (!differs_between_lanes(which))
    return define_scalar(context, value,
                         b.CreateZExtOrTrunc(uniform_register(context, which), context.type_of(inst.type)));
  const bool scalar = context.pattern(value).scalar();
  Value* const lanes = scalar ? static_cast<Value*>(b.getInt32(0)) : lane_numbers(context, 32);
  Value* const number = lane_register(context, which, lanes);
  context.define(value,
                 b.CreateZExtOrTrunc(number, with_element(number->getType(), context.type_of(inst.type))));
}

// --- state spaces

/// The start of the space for each lane, as a scalar or vector like `like`.
Value* space_origin(Operands& o, llvm::Type* like) {
  llvm::IRBuilder<>& b = o.b;
  Context& c = o.context;
  if (o.inst.attr.space == ir::Space::shared) {
    Value* const base = b.CreatePtrToInt(c.shared_base(), b.getInt64Ty());
    return like->isVectorTy() ? splat(c, base) : base;
  }
  assert(o.inst.attr.space == ir::Space::local && like->isVectorTy() &&
         "local addresses differ between lanes");
  Value* const base = splat(c, b.CreatePtrToInt(c.local_base(), b.getInt64Ty()));
  return b.CreateAdd(base, b.CreateMul(lane_numbers(c, 64), splat(c, c.local_stride())));
}

bool has_origin(ir::Space space) { return space == ir::Space::shared || space == ir::Space::local; }

Value* to_generic(Operands& o) {
  return has_origin(o.inst.attr.space) ? o.b.CreateAdd(o[0], space_origin(o, o.type)) : o[0];
}

Value* from_generic(Operands& o) {
  return has_origin(o.inst.attr.space) ? o.b.CreateSub(o[0], space_origin(o, o.type)) : o[0];
}

Value* within(Operands& o, Value* origin, Value* size) {
  llvm::Type* const type = o[0]->getType();
  if (type->isVectorTy() && !size->getType()->isVectorTy()) size = splat(o.context, size);
  if (type->isVectorTy() && !origin->getType()->isVectorTy()) origin = splat(o.context, origin);
  return o.b.CreateICmpULT(o.b.CreateSub(o[0], origin), size);
}

/// Checks the local memory of the whole warp: a lane may have the address of another lane's memory.
Value* is_local(Operands& o) {
  Value* const base = o.b.CreatePtrToInt(o.context.local_base(), o.b.getInt64Ty());
  return within(o, base, o.b.CreateMul(o.context.local_stride(), o.b.getInt64(kWarpSize)));
}

Value* is_shared(Operands& o) {
  Value* const base = o.b.CreatePtrToInt(o.context.shared_base(), o.b.getInt64Ty());
  return within(o, base,
                o.b.getInt64(o.context.specialisation().compact ? engine::kCompactSharedBytes
                                                                : engine::kSharedReservationBytes));
}

Value* is_space(Operands& o) {
  if (o.inst.attr.space == ir::Space::shared) return is_shared(o);
  if (o.inst.attr.space == ir::Space::local) return is_local(o);
  Value* const other = o.b.CreateOr(is_shared(o), is_local(o));
  return o.b.CreateAnd(within(o, o.context.window_base(), o.context.window_bytes()), o.b.CreateNot(other));
}

/// Parameters and constant memory have no separate range in the window.
bool accepts_conversion(const ir::Inst& inst) { return inst.attr.space != ir::Space::param; }
bool accepts_test(const ir::Inst& inst) {
  return accepts_conversion(inst) && inst.attr.space != ir::Space::constant;
}

constexpr Row kRows[] = {
    {ir::Op::constant, nullptr, emit_constant},
    {ir::Op::undef, nullptr, emit_constant},
    {ir::Op::param, nullptr, emit_param},
    {ir::Op::special, nullptr, emit_special},
    {ir::Op::symbol, nullptr, emit_symbol},
    {ir::Op::local_address, nullptr, emit_local_address},
    {ir::Op::to_generic, to_generic, nullptr, accepts_conversion},
    {ir::Op::from_generic, from_generic, nullptr, accepts_conversion},
    {ir::Op::is_space, is_space, nullptr, accepts_test},
};

}  // namespace

std::span<const Row> value_rows() { return kRows; }

}  // namespace quern::cpu::emit
