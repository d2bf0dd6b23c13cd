// SPDX-License-Identifier: Apache-2.0
// Selects the implementation of atomics. Lanes are processed in lane order. An operation on one address whose
// result is not used is first reduced over the warp; floating-point sums are in lane order too, so that every
// run gives the same result.
#include <llvm/IR/Intrinsics.h>

#include <optional>

#include "cpu/emit/helpers/helpers.hpp"
#include "cpu/emit/operations/atomic/atomic.hpp"
#include "cpu/emit/operations/atomic/joint.hpp"
#include "cpu/emit/operations/atomic/settle.hpp"
#include "cpu/emit/operations/lanes.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using ir::AtomicOp;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

/// The properties of an operation that a reduction over the warp needs.
struct Reduction {
  AtomicOp op;
  Intrinsic::ID over_lanes;
  std::uint64_t identity;  ///< operand of lanes that do not run; narrower types use its low bits
};
constexpr Reduction kReductions[] = {
    {AtomicOp::add, Intrinsic::vector_reduce_add, 0},
    {AtomicOp::and_, Intrinsic::vector_reduce_and, ~std::uint64_t{0}},
    {AtomicOp::or_, Intrinsic::vector_reduce_or, 0},
    {AtomicOp::xor_, Intrinsic::vector_reduce_xor, 0},
    {AtomicOp::umin, Intrinsic::vector_reduce_umin, ~std::uint64_t{0}},
    {AtomicOp::umax, Intrinsic::vector_reduce_umax, 0},
    {AtomicOp::smin, Intrinsic::vector_reduce_smin, 0},
    {AtomicOp::smax, Intrinsic::vector_reduce_smax, 0},
};

const Reduction* reduction_of(AtomicOp op) {
  for (const Reduction& row : kReductions)
    if (row.op == op) return &row;
  return nullptr;
}

llvm::Constant* identity_of(const Reduction& row, llvm::Type* type) {
  const unsigned width = width_of(type);
  if (row.op == AtomicOp::smin) return llvm::ConstantInt::get(type, llvm::APInt::getSignedMaxValue(width));
  if (row.op == AtomicOp::smax) return llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(width));
  return bits(type, row.identity);
}

bool is_idempotent(AtomicOp op) { return op != AtomicOp::add && op != AtomicOp::xor_; }

/// Reduces the operands of the running lanes to one.
Value* reduce_integers(const Access& access, const Reduction& row) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const ir::Value operand = access.inst.args[1];
  if (c.pattern(operand).kind == analysis::LanePatternKind::uniform) {
    if (is_idempotent(row.op)) return c.scalar(operand);
    if (row.op == AtomicOp::add) {
      Value* const lanes = b.CreateUnaryIntrinsic(Intrinsic::ctpop, c.mask_bits());
      return b.CreateMul(c.scalar(operand), b.CreateZExtOrTrunc(lanes, c.type_of(access.element)));
    }
  }
  Value* values = c.vector(operand);
  if (!c.full()) values = b.CreateSelect(c.mask(), values, identity_of(row, values->getType()));
  return b.CreateIntrinsic(row.over_lanes, {values->getType()}, {values});
}

Value* sum_reals(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const bool is_float = access.element == ir::Type::f32;
  Value* const in = spill(c, c.vector(access.inst.args[1]));
  Value* const sum =
      call_helper(c, is_float ? "quern_cpu_sum_f32" : "quern_cpu_sum_f64",
                  is_float ? b.getFloatTy() : b.getDoubleTy(), {in, c.mask_bits()}, Touches::arguments_only);
  release(c, {in});
  return sum;
}

/// Emits one operation; returns the old value.
Value* update_once(const Access& access, Value* operand) {
  return update(access, uniform_pointer(access), operand, nullptr);
}

/// Emits one operation for the warp if it is equivalent to 32 operations; otherwise returns false.
bool emit_reduced(const Access& access) {
  const AtomicOp op = access.inst.attr.atomic;
  if (access.layout.kind != LayoutKind::uniform || !access.inst.attr.unused_result) return false;
  const bool real =
      op == AtomicOp::fadd && (access.element == ir::Type::f32 || access.element == ir::Type::f64);
  const Reduction* const row = reduction_of(op);
  if (!real && row == nullptr) return false;
  Value* const operand = real ? sum_reals(access) : reduce_integers(access, *row);
  if (is_gathered(access))
    emit_gathered_once(access, operand);
  else
    update_once(access, operand);
  return true;
}

/// Emits code that makes one operation if, at run time, all lanes access one address, as is common for
/// counters: locked operations cost much more than the test.
void emit_met(const Access& access, const Reduction& row) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const LanePointers pointers = lane_pointers(access);
  Value* const place = extract_lane(c, pointers.index, first_lane(c));
  Value* same = b.CreateICmpEQ(pointers.index, splat(c, place));
  if (!c.full()) same = b.CreateOr(same, b.CreateNot(c.mask()));
  Value* const met = b.CreateICmpEQ(mask_to_bits(c, same), b.getInt32(kAllLanes));
  const auto once = [&] {
    Value* const scale = b.getInt64(static_cast<std::uint64_t>(pointers.scale));
    Value* const offset = b.CreateMul(b.CreateSExt(place, b.getInt64Ty()), scale);
    update(access, b.CreateGEP(b.getInt8Ty(), pointers.base, offset), reduce_integers(access, row), nullptr);
    return nullptr;
  };
  emit_either(c, met, "met", once, [&] { return emit_lanes(access); });
}

/// For each lane, the sum over the lanes up to and including it.
Value* running_sums(Context& c, Value* values) {
  llvm::IRBuilder<>& b = c.builder();
  Value* const zero = llvm::Constant::getNullValue(values->getType());
  for (unsigned distance = 1; distance < kWarpSize; distance *= 2) {
    llvm::SmallVector<int, kWarpSize> from;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      from.push_back(static_cast<int>(lane < distance ? lane : kWarpSize + lane - distance));
    values = b.CreateAdd(values, b.CreateShuffleVector(zero, values, from));
  }
  return values;
}

/// The operands of a warp's running lanes: their sum, and for each lane the sum of those before it.
struct Sums {
  Value* total;
  Value* before;
};

Sums sum_operands(Context& c, const ir::Inst& inst) {
  llvm::IRBuilder<>& b = c.builder();
  const ir::Value operand = inst.args[1];
  if (c.pattern(operand).kind == analysis::LanePatternKind::uniform) {
    Value* const each = c.scalar(operand);
    const auto times = [&](Value* count) {
      Value* const factor = count->getType()->isVectorTy() ? splat(c, each) : each;
      return b.CreateMul(b.CreateZExtOrTrunc(count, factor->getType()), factor);
    };
    Value* const bits_before = b.CreateAnd(splat(c, c.mask_bits()), lanes_before(c));
    return {times(b.CreateUnaryIntrinsic(Intrinsic::ctpop, c.mask_bits())),
            times(b.CreateUnaryIntrinsic(Intrinsic::ctpop, bits_before))};
  }
  Value* operands = c.vector(operand);
  if (!c.full())
    operands = b.CreateSelect(c.mask(), operands, llvm::Constant::getNullValue(operands->getType()));
  Value* const sums = running_sums(c, operands);
  return {b.CreateExtractElement(sums, kWarpSize - 1), b.CreateSub(sums, operands)};
}

/// Emits integer sums at one address whose old values are used (the counter of a queue): one operation adds
/// them all, and the lanes and warps before a lane determine its old value.
void emit_sums(Context& context, ir::Value value, ForEachWarp for_each_warp) {
  llvm::IRBuilder<>& b = context.builder();
  const ir::Inst& inst = context.function()[value];
  std::vector<Value*> before;
  Value* total = nullptr;
  for_each_warp([&] {
    const Sums sums = sum_operands(context, inst);
    before.push_back(total == nullptr ? sums.before : b.CreateAdd(sums.before, splat(context, total)));
    total = total == nullptr ? sums.total : b.CreateAdd(total, sums.total);
  });
  Value* const old = update_once(Access(context, value, context.function()[inst.args[1]].type), total);
  auto of_warp = before.begin();
  for_each_warp([&] { define_vector(context, value, b.CreateAdd(splat(context, old), *of_warp++)); });
}

bool emit_scanned(const Access& access, ir::Value value) {
  if (access.layout.kind != LayoutKind::uniform || access.inst.attr.atomic != AtomicOp::add) return false;
  emit_sums(access.context, value, [](llvm::function_ref<void()> emit) { emit(); });
  return true;
}

// --- lane by lane, by a helper: 16-bit types and barrier objects

std::optional<AtomicType> helper_type(AtomicOp op, ir::Type type) {
  switch (op) {
    case AtomicOp::fadd:
    case AtomicOp::fmin:
    case AtomicOp::fmax:
      return type == ir::Type::f16    ? std::optional(AtomicType::f16)
             : type == ir::Type::bf16 ? std::optional(AtomicType::bf16)
                                      : std::nullopt;
    case AtomicOp::cas:
      return type == ir::Type::i16 ? std::optional(AtomicType::b16) : std::nullopt;
    case AtomicOp::arrive:
    case AtomicOp::arrive_drop:
      return type == ir::Type::i64 ? std::optional(AtomicType::b64) : std::nullopt;
    default:
      return std::nullopt;
  }
}

void call_by_lane(const Access& access, ir::Value value) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const AtomicOp op = access.inst.attr.atomic;
  const auto number = [&](auto what) { return b.getInt32(static_cast<std::uint32_t>(what)); };
  Value* const addresses = spill(c, lane_addresses(access));
  Value* const operand = spill(c, to_memory(access, c.vector(access.inst.args[1])));
  Value* const second =
      op == AtomicOp::cas ? spill(c, to_memory(access, c.vector(access.inst.args[2]))) : operand;
  llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), kWarpSize);
  Value* const none = llvm::ConstantPointerNull::get(b.getPtrTy());
  Value* const out = access.inst.attr.unused_result ? none : spill(c, llvm::Constant::getNullValue(type));
  call_helper(c, "quern_cpu_atomic", b.getVoidTy(),
              {number(op), number(*helper_type(op, access.element)), number(!needs_lock(access)), out,
               addresses, operand, second, c.mask_bits()},
              Touches::anything);
  if (!access.inst.attr.unused_result)
    define_vector(c, value, from_memory(access, b.CreateAlignedLoad(type, out, llvm::Align(64))));
  release(c, {addresses, operand, second == operand ? none : second, out});
}

/// Emits an operation for which update() has code; returns the old values, or null if they are not used.
Value* emit_inline(const Access& access) {
  const bool one_address = access.layout.kind == LayoutKind::uniform;
  if (one_address && (needs_lock(access) || access.inst.attr.atomic == AtomicOp::cas))
    return emit_chained(access);
  if (!needs_lock(access)) return is_consecutive(access) ? emit_consecutive(access) : emit_lanes(access);
  const Side by_lane = [&] { return emit_lanes(access); };
  const auto locked = [&] { return has_pieces(access) ? emit_pieces(access, by_lane) : by_lane(); };
  if (gathers_neighbours(access)) return emit_gathered_neighbours(access, locked), nullptr;
  if (has_pieces(access)) return locked();
  const Reduction* const row =
      access.inst.attr.unused_result ? reduction_of(access.inst.attr.atomic) : nullptr;
  if (row == nullptr) return emit_lanes(access);
  if (!is_gathered(access)) return emit_met(access, *row), nullptr;
  emit_gathered(access, [&] { emit_met(access, *row); });
  return nullptr;
}

void emit_atomic(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  const Access access(context, value, context.function()[inst.args[1]].type);
  const bool inlined = has_update(inst.attr.atomic, access.element);
  if (is_biased(access) && inlined && has_owned(access)) {
    if (Value* const old = emit_owned(access, [&] { return emit_inline(access); }))
      define_vector(context, value, from_memory(access, old));
    return;
  }
  if (is_biased(access)) emit_unbias(access);
  if (!inlined) return call_by_lane(access, value);
  if (emit_reduced(access) || emit_scanned(access, value)) return;
  if (Value* const old = emit_inline(access)) define_vector(context, value, from_memory(access, old));
}

bool accepts_atomic(const ir::Inst& inst) {
  const ir::Space space = inst.attr.space;
  const bool placed = space == ir::Space::generic || space == ir::Space::global || space == ir::Space::shared;
  const auto displacement = static_cast<std::int64_t>(inst.imm);
  const bool near = displacement >= INT32_MIN && displacement <= INT32_MAX;
  // A red has no result, so its type may be missing.
  const bool typed = inst.type == ir::Type::none || has_update(inst.attr.atomic, inst.type) ||
                     helper_type(inst.attr.atomic, inst.type).has_value();
  return placed && near && typed && inst.attr.count == 1;
}

constexpr Row kRows[] = {{ir::Op::atomic, nullptr, emit_atomic, accepts_atomic}};

}  // namespace

Value* lane_addresses(const Access& access) {
  Context& c = access.context;
  if (access.layout.kind != LayoutKind::uniform) return absolute_addresses(c, lane_pointers(access), 0);
  return splat(c, c.builder().CreatePtrToInt(uniform_pointer(access), c.builder().getInt64Ty()));
}

std::span<const Row> atomic_rows() { return kRows; }

void emit_joint(Context& context, ir::Value value, ForEachWarp for_each_warp) {
  settle(context, value);
  emit_sums(context, value, for_each_warp);
}

}  // namespace quern::cpu::emit
