// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic. Every lane, running or not, may contain any value, so no operation here may fault.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>

#include "cpu/emit/llvm/llvm_target.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/scalar_division.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

template <llvm::Instruction::BinaryOps op>
Value* binary(Operands& o) {
  return o.b.CreateBinOp(op, o[0], o[1]);
}

template <Intrinsic::ID id>
Value* intrinsic2(Operands& o) {
  return o.b.CreateBinaryIntrinsic(id, o[0], o[1]);
}

/// The high half of a 64-bit unsigned product, from 32-bit halves, since there is no vector instruction for
/// it.
Value* high_half_64(Operands& o, Value* x, Value* y) {
  llvm::IRBuilder<>& b = o.b;
  Value* const low_mask = bits(o.type, 0xffffffffu);
  Value* const x0 = b.CreateAnd(x, low_mask);
  Value* const x1 = b.CreateLShr(x, 32);
  Value* const y0 = b.CreateAnd(y, low_mask);
  Value* const y1 = b.CreateLShr(y, 32);
  Value* const mid = b.CreateAdd(b.CreateMul(x1, y0), b.CreateLShr(b.CreateMul(x0, y0), 32));
  Value* const mid2 = b.CreateAdd(b.CreateMul(x0, y1), b.CreateAnd(mid, low_mask));
  return b.CreateAdd(b.CreateAdd(b.CreateMul(x1, y1), b.CreateLShr(mid, 32)), b.CreateLShr(mid2, 32));
}

template <bool is_signed>
Value* multiply_high(Operands& o) {
  llvm::IRBuilder<>& b = o.b;
  const unsigned width = width_of(o.type);
  if (width == 64 && o.is_vector()) {
    Value* const high = high_half_64(o, o[0], o[1]);
    if (!is_signed) return high;
    // As an unsigned factor, a negative operand counts as itself + 2^64.
    Value* const from_x = b.CreateAnd(b.CreateAShr(o[0], 63), o[1]);
    Value* const from_y = b.CreateAnd(b.CreateAShr(o[1], 63), o[0]);
    return b.CreateSub(b.CreateSub(high, from_x), from_y);
  }
  llvm::Type* const wide = with_element(o.type, b.getIntNTy(width * 2));
  const auto extend = is_signed ? llvm::Instruction::SExt : llvm::Instruction::ZExt;
  Value* const product = b.CreateMul(b.CreateCast(extend, o[0], wide), b.CreateCast(extend, o[1], wide));
  return b.CreateTrunc(b.CreateLShr(product, width), o.type);
}

// --- division of vectors, for which there is no instruction
//
// A quotient of x and y is exact in a floating-point format of p bits, truncated: x / y is an integer or at
// least 1 / y away from the next one, and its rounding error, (x / y) * 2^-p, is smaller if x < 2^p. By a
// product with the reciprocal, (x + 1/2) * (1 / y), it is exact if x < 2^(p - 2): the sum is at least 1 / (2
// y) away from multiples of y, and two roundings are less than (x / y) * 2^(1 - p).

/// 64-bit integers of less magnitude are divided in f64.
constexpr unsigned kExactBits = 50;

struct Divisor {
  Value* value;    ///< in every lane, not 0 and, for a dividend of INT_MIN, not -1
  Value* uniform;  ///< the same as a scalar; null: lanes differ
};

/// Adding 1.5 * 2^52 moves an integer of less than 52 bits into the fraction of an f64, on processors that
/// have no conversion, too.
struct Shifted {
  Operands& o;
  llvm::Type* real = with_element(o.type, o.b.getDoubleTy());
  Value* shift = llvm::ConstantFP::get(real, 0x1.8p52);
  Value* shift_bits = bits(o.type, std::bit_cast<std::uint64_t>(0x1.8p52));

  /// Baseline processors round to the nearest integer only, by the same addition.
  Value* truncated(Value* value) {
    llvm::IRBuilder<>& b = o.b;
    if (o.isa() != Isa::baseline) return b.CreateUnaryIntrinsic(Intrinsic::trunc, value);
    const auto magnitude = [&](Value* number) { return b.CreateUnaryIntrinsic(Intrinsic::fabs, number); };
    Value* const nearest = b.CreateFSub(b.CreateFAdd(value, shift), shift);
    Value* const one = b.CreateBinaryIntrinsic(Intrinsic::copysign, llvm::ConstantFP::get(real, 1.0), value);
    return b.CreateSelect(b.CreateFCmpOGT(magnitude(nearest), magnitude(value)), b.CreateFSub(nearest, one),
                          nearest);
  }
  Value* to_real(Value* value) {
    return o.b.CreateFSub(o.b.CreateBitCast(o.b.CreateAdd(value, shift_bits), real), shift);
  }
  Value* to_integer(Value* value) {
    Value* const whole = truncated(value);
    return o.b.CreateSub(o.b.CreateBitCast(o.b.CreateFAdd(whole, shift), o.type), shift_bits);
  }
};

Value* to_real(Operands& o, Value* value, llvm::Type* real, bool is_signed) {
  return is_signed ? o.b.CreateSIToFP(value, real) : o.b.CreateUIToFP(value, real);
}

/// The quotient before it is truncated. `y` is a scalar if the divisor is uniform, else a vector, as `x`.
Value* real_quotient(Operands& o, Value* x, Value* y, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const real = x->getType();
  if (y->getType()->isVectorTy()) return b.CreateFDiv(x, y);
  Value* half = llvm::ConstantFP::get(real, 0.5);
  if (is_signed) half = b.CreateBinaryIntrinsic(Intrinsic::copysign, half, x);
  Value* const reciprocal = b.CreateFDiv(llvm::ConstantFP::get(y->getType(), 1.0), y);
  return b.CreateFMul(b.CreateFAdd(x, half), splat(o.context, reciprocal));
}

/// Divides vectors of up to 32 bits.
Value* quotient_of_32(Operands& o, Value* x, const Divisor& y, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const element = width_of(o.type) <= 16 ? b.getFloatTy() : b.getDoubleTy();
  llvm::Type* const real = with_element(o.type, element);
  Value* const divisor =
      y.uniform != nullptr ? to_real(o, y.uniform, element, is_signed) : to_real(o, y.value, real, is_signed);
  Value* const quotient = real_quotient(o, to_real(o, x, real, is_signed), divisor, is_signed);
  return is_signed ? b.CreateFPToSI(quotient, o.type) : b.CreateFPToUI(quotient, o.type);
}

Value* quotient_by_helper(Operands& o, Value* x, Value* y, bool is_signed) {
  Value* const out = scratch(o.context, o.type);
  Value* const in[] = {spill(o.context, x), spill(o.context, y)};
  call_helper(o.context, is_signed ? "quern_cpu_div_s64" : "quern_cpu_div_u64", o.b.getVoidTy(),
              {out, in[0], in[1]}, Touches::arguments_only);
  Value* const result = o.b.CreateAlignedLoad(o.type, out, llvm::Align(64));
  release(o.context, {out, in[0], in[1]});
  return result;
}

/// i1: the running lanes of both vectors are of magnitude 2^kExactBits or less.
Value* are_exact(Operands& o, Value* x, Value* y, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  const std::uint64_t bias = is_signed ? std::uint64_t{1} << kExactBits : 0;
  Value* const offset = bits(o.type, bias);
  Value* together = b.CreateOr(b.CreateAdd(x, offset), b.CreateAdd(y, offset));
  if (!o.context.full()) together = b.CreateSelect(o.context.mask(), together, bits(o.type, 0));
  return b.CreateICmpULT(b.CreateOrReduce(together), b.getInt64((std::uint64_t{1} << kExactBits) + bias));
}

/// Divides vectors of 64-bit integers: in f64 if all lanes allow it, as they do for indices and sizes, else
/// lane by lane.
Value* quotient_of_64(Operands& o, Value* x, const Divisor& y, bool is_signed) {
  Value* exact = nullptr;
  Value* other = nullptr;
  const auto in_reals = [&] {
    Shifted shifted{o};
    Value* const divisor =
        y.uniform != nullptr ? o.b.CreateSIToFP(y.uniform, o.b.getDoubleTy()) : shifted.to_real(y.value);
    exact = shifted.to_integer(real_quotient(o, shifted.to_real(x), divisor, is_signed));
  };
  const Parts parts = choose(o.context, are_exact(o, x, y.value, is_signed), in_reals,
                             [&] { other = quotient_by_helper(o, x, y.value, is_signed); });
  llvm::PHINode* const result = o.b.CreatePHI(o.type, 2);
  result->addIncoming(exact, parts.first);
  result->addIncoming(other, parts.second);
  return result;
}

Value* quotient_of_vectors(Operands& o, Value* x, const Divisor& y, bool is_signed) {
  return width_of(o.type) == 64 ? quotient_of_64(o, x, y, is_signed) : quotient_of_32(o, x, y, is_signed);
}

struct Division {
  Value* by_zero;  ///< i1, scalar where the divisor is
  Value* divisor;  ///< neither 0 nor overflowing
  Value* quotient;
};

Division divide(Operands& o, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  Value* const one = bits(o.type, 1);
  Value* const by_zero = b.CreateICmpEQ(o[1], bits(o.type, 0));
  Value* divisor = b.CreateSelect(by_zero, one, o[1]);
  if (is_signed) {
    const std::uint64_t minimum = std::uint64_t{1} << (width_of(o.type) - 1);
    Value* const overflow =
        b.CreateAnd(b.CreateICmpEQ(o[0], bits(o.type, minimum)), b.CreateICmpEQ(o[1], bits(o.type, ~0ull)));
    divisor = b.CreateSelect(overflow, one, divisor);  // INT_MIN / -1 wraps to INT_MIN / 1
  }
  // LLVM turns a division by a constant into a multiplication, and a scalar division is one instruction.
  if (!o.is_vector() || llvm::isa<llvm::Constant>(o[1]))
    return {by_zero, divisor, is_signed ? b.CreateSDiv(o[0], divisor) : b.CreateUDiv(o[0], divisor)};
  return {by_zero, divisor, quotient_of_vectors(o, o[0], {divisor, nullptr}, is_signed)};
}

/// The same for a divisor that is a scalar, and no constant.
Division divide_by_uniform(Operands& o, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  Value* const given = o.context.scalar(o.inst.args[1]);
  Value* const one = bits(given->getType(), 1);
  Value* const by_zero = b.CreateICmpEQ(given, bits(given->getType(), 0));
  Value* const by_minus_one = b.CreateICmpEQ(given, bits(given->getType(), ~0ull));
  Value* divisor = b.CreateSelect(by_zero, one, given);
  if (is_signed) divisor = b.CreateSelect(by_minus_one, one, divisor);  // INT_MIN / -1 would overflow
  Value* const in_lanes = splat(o.context, divisor);
  Value* quotient = quotient_of_vectors(o, o[0], {in_lanes, divisor}, is_signed);
  if (!is_signed) return {by_zero, in_lanes, quotient};
  quotient = b.CreateSelect(by_minus_one, b.CreateNeg(o[0]), quotient);
  return {by_zero, b.CreateSelect(by_minus_one, o[1], in_lanes), quotient};
}

Division division_of(Operands& o, bool is_signed) {
  const bool uniform = o.is_vector() && !llvm::isa<llvm::Constant>(o[1]) &&
                       o.context.pattern(o.inst.args[1]).kind == analysis::LanePatternKind::uniform;
  return uniform ? divide_by_uniform(o, is_signed) : divide(o, is_signed);
}

/// True if the division is an instruction of the processor.
bool divides_scalars(const Operands& o) { return !o.is_vector() && !llvm::isa<llvm::Constant>(o[1]); }

Value* divided_quotient(Operands& o, bool is_signed) {
  const Division d = division_of(o, is_signed);
  return o.b.CreateSelect(d.by_zero, bits(o.type, ~0ull), d.quotient);
}

template <bool is_signed>
Value* quotient(Operands& o) {
  if (!divides_scalars(o)) return divided_quotient(o, is_signed);
  return unless_below(o.b, o[0], o[1], is_signed, bits(o.type, 0),
                      [&] { return divided_quotient(o, is_signed); });
}

Value* divided_remainder(Operands& o, bool is_signed) {
  const Division d = division_of(o, is_signed);
  Value* const rest = o.b.CreateSub(o[0], o.b.CreateMul(d.quotient, d.divisor));
  return o.b.CreateSelect(d.by_zero, bits(o.type, ~0ull), rest);
}

/// i1: in every running lane the dividend is not negative and less than the divisor, and is the remainder.
Value* are_remainders(Operands& o, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  Value* beyond = b.CreateICmpUGE(o[0], o[1]);
  if (is_signed) beyond = b.CreateOr(beyond, b.CreateICmpSLT(o[1], bits(o.type, 0)));
  if (!o.context.full()) beyond = b.CreateAnd(beyond, o.context.mask());
  return b.CreateNot(b.CreateOrReduce(beyond));
}

template <bool is_signed>
Value* remainder(Operands& o) {
  if (divides_scalars(o))
    return unless_below(o.b, o[0], o[1], is_signed, o[0], [&] { return divided_remainder(o, is_signed); });
  if (!o.is_vector() || width_of(o.type) != 64 || llvm::isa<llvm::Constant>(o[1]))
    return divided_remainder(o, is_signed);
  // Most 64-bit remainders are of indices that wrap at the edge of an array, so that few are beyond it.
  Value* divided = nullptr;
  const Parts parts = choose(
      o.context, are_remainders(o, is_signed), [] {}, [&] { divided = divided_remainder(o, is_signed); });
  llvm::PHINode* const result = o.b.CreatePHI(o.type, 2);
  result->addIncoming(o[0], parts.first);
  result->addIncoming(divided, parts.second);
  return result;
}

/// Bytes of words, as 16-bit integers: of each half the lower or the upper byte.
Value* bytes_of_halves(Operands& o, Value* halves, bool upper, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  Value* const at_top = upper ? halves : b.CreateShl(halves, 8);
  return is_signed ? b.CreateAShr(at_top, 8) : b.CreateLShr(at_top, 8);
}

/// The sums of the products of neighbouring 16-bit integers, by the widest instruction that there is.
Value* multiply_pairs(Operands& o, Value* x, Value* y) {
  struct Instruction {
    Isa isa;
    unsigned lanes;
    Intrinsic::ID id;
  };
  static constexpr Instruction kInstructions[] = {{Isa::baseline, 4, Intrinsic::x86_sse2_pmadd_wd},
                                                  {Isa::avx2, 8, Intrinsic::x86_avx2_pmadd_wd},
                                                  {Isa::avx512, 16, Intrinsic::x86_avx512_pmaddw_d_512}};
  const Instruction& row = *std::ranges::find(kInstructions, o.isa(), &Instruction::isa);
  llvm::SmallVector<Value*, 8> parts;
  for (unsigned first = 0; first < kWarpSize; first += row.lanes)
    parts.push_back(o.b.CreateIntrinsic(
        row.id, {},
        {slice(o.context, x, 2 * first, 2 * row.lanes), slice(o.context, y, 2 * first, 2 * row.lanes)}));
  return concat(o.context, parts);
}

/// `sum` plus the products of the bytes of `x`, which are unsigned, and those of `y`, which are signed.
Value* add_products(Operands& o, Value* sum, Value* x, Value* y) {
  constexpr unsigned kLanes = 16;
  llvm::SmallVector<Value*, 2> parts;
  for (unsigned first = 0; first < kWarpSize; first += kLanes) {
    const auto part = [&](Value* whole) { return slice(o.context, whole, first, kLanes); };
    parts.push_back(
        o.b.CreateIntrinsic(Intrinsic::x86_avx512_vpdpbusd_512, {}, {part(sum), part(x), part(y)}));
  }
  return concat(o.context, parts);
}

bool adds_products(const Value* value) {
  const auto* const parts = llvm::dyn_cast<llvm::ShuffleVectorInst>(value);
  if (parts == nullptr) return false;
  const auto* const first = llvm::dyn_cast<llvm::IntrinsicInst>(parts->getOperand(0));
  return first != nullptr && first->getIntrinsicID() == Intrinsic::x86_avx512_vpdpbusd_512;
}

/// The instruction takes unsigned and signed bytes. Where both are of one kind, 128 is added to those of one
/// side or subtracted from them, and its products with the other side are taken from the sum. They are taken
/// from the sum of a row of such products at the end, so that rows with equal other sides, as those of a
/// matrix, share them.
Value* dot_of_bytes_at_once(Operands& o, bool a_signed, bool b_signed) {
  llvm::IRBuilder<>& b = o.b;
  if (a_signed != b_signed) return add_products(o, o[2], a_signed ? o[1] : o[0], a_signed ? o[0] : o[1]);
  Value* const halfway = bits(o.type, 0x80808080u);
  Value* excess = bits(o.type, 0);
  Value* sum = o[2];
  const auto* const before = llvm::dyn_cast<llvm::BinaryOperator>(sum);
  if (before != nullptr && before->getOpcode() == llvm::Instruction::Sub &&
      adds_products(before->getOperand(0))) {
    sum = before->getOperand(0);
    excess = before->getOperand(1);
  }
  excess = a_signed ? add_products(o, excess, halfway, o[1]) : add_products(o, excess, o[0], halfway);
  Value* const x = a_signed ? b.CreateXor(o[0], halfway) : o[0];
  Value* const y = a_signed ? o[1] : b.CreateXor(o[1], halfway);
  return b.CreateSub(add_products(o, sum, x, y), excess);
}

Value* dot_of_bytes(Operands& o) {
  llvm::IRBuilder<>& b = o.b;
  const bool a_signed = (o.inst.imm & 1) != 0, b_signed = (o.inst.imm & 2) != 0;
  if (!o.is_vector()) {
    const auto byte = [&](Value* word, unsigned at, bool is_signed) {
      Value* const top = b.CreateShl(word, 24 - at);
      return is_signed ? b.CreateAShr(top, 24) : b.CreateLShr(top, 24);
    };
    Value* sum = o[2];
    for (const unsigned at : {0u, 8u, 16u, 24u})
      sum = b.CreateAdd(sum, b.CreateMul(byte(o[0], at, a_signed), byte(o[1], at, b_signed)));
    return sum;
  }
  if (multiplies_bytes(o.isa(), o.context.specialisation().portable))
    return dot_of_bytes_at_once(o, a_signed, b_signed);
  const auto halves = llvm::FixedVectorType::get(b.getInt16Ty(), kWarpSize * 2);
  Value* const x = b.CreateBitCast(o[0], halves);
  Value* const y = b.CreateBitCast(o[1], halves);
  Value* sum = o[2];
  for (const bool upper : {false, true})
    sum = b.CreateAdd(sum, multiply_pairs(o, bytes_of_halves(o, x, upper, a_signed),
                                          bytes_of_halves(o, y, upper, b_signed)));
  return sum;
}

Value* absolute(Operands& o) { return o.b.CreateBinaryIntrinsic(Intrinsic::abs, o[0], o.b.getFalse()); }

struct Sum {
  Value* value;
  Value* carry;  ///< i1
};

Sum sum_with_carry(Operands& o) {
  llvm::IRBuilder<>& b = o.b;
  Value* const first = b.CreateAdd(o[0], o[1]);
  Value* const sum = b.CreateAdd(first, b.CreateZExt(o[2], first->getType()));
  return {sum, b.CreateOr(b.CreateICmpULT(first, o[0]), b.CreateICmpULT(sum, first))};
}

Value* add_carry(Operands& o) { return sum_with_carry(o).value; }
Value* carry_of_add(Operands& o) { return sum_with_carry(o).carry; }

constexpr Row kRows[] = {
    {ir::Op::iadd, binary<llvm::Instruction::Add>},
    {ir::Op::isub, binary<llvm::Instruction::Sub>},
    {ir::Op::imul, binary<llvm::Instruction::Mul>},
    {ir::Op::imulhi_s, multiply_high<true>},
    {ir::Op::imulhi_u, multiply_high<false>},
    {ir::Op::sdiv, quotient<true>},
    {ir::Op::udiv, quotient<false>},
    {ir::Op::srem, remainder<true>},
    {ir::Op::urem, remainder<false>},
    {ir::Op::dot4, dot_of_bytes},
    {ir::Op::smin, intrinsic2<Intrinsic::smin>},
    {ir::Op::smax, intrinsic2<Intrinsic::smax>},
    {ir::Op::umin, intrinsic2<Intrinsic::umin>},
    {ir::Op::umax, intrinsic2<Intrinsic::umax>},
    {ir::Op::iadd_sat, intrinsic2<Intrinsic::sadd_sat>},
    {ir::Op::isub_sat, intrinsic2<Intrinsic::ssub_sat>},
    {ir::Op::iabs, absolute},
    {ir::Op::and_, binary<llvm::Instruction::And>},
    {ir::Op::or_, binary<llvm::Instruction::Or>},
    {ir::Op::xor_, binary<llvm::Instruction::Xor>},
    {ir::Op::add_carry, add_carry},
    {ir::Op::carry_of_add, carry_of_add},
};

}  // namespace

std::span<const Row> integer_rows() { return kRows; }

}  // namespace quern::cpu::emit
