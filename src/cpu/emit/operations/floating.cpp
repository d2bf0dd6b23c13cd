// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic according to PTX (ISA: "Floating Point Instructions", "Half Precision Floating
// Point Instructions"): one rounding, no fast-math; selects implement .ftz and .sat. NaNs have the
// processor's bits until an operation reads them (lower/ssa/nan_bits.cpp).
//
// f16 and bf16 are computed in float and then rounded again. For + - * / sqrt the second rounding is
// harmless, because float has more than 2p + 1 bits (p = 11 and 8). For fma it is not harmless, so the first
// rounding is to odd (see narrow_fma).
#include <llvm/IR/Intrinsics.h>

#include "cpu/emit/operations/real.hpp"
#include "cpu/emit/operations/rounded.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

Value* input(Operands& o, unsigned index) {
  Value* const value = o.inst.attr.ftz ? flush_subnormals(o, o[index]) : o[index];
  return is_narrow(o.inst.type) ? widen_to_float(o, value, o.inst.type) : value;
}

/// Applies the instruction's modifiers and rounds to the result's format. (Clamping before the rounding gives
/// the same result, since 0 and 1 are exact.)
Value* output(Operands& o, Value* value) {
  if (o.inst.attr.relu) value = clamp_negative(o, value);
  if (o.inst.attr.sat) value = saturate(o, value);
  if (is_narrow(o.inst.type)) {
    value = narrow_from_float(o, value, o.inst.type, ir::Rounding::rn);
    // PTX ISA: "the result is canonical NaN" for min, max and .relu
    const bool canonical = o.inst.attr.relu || o.inst.op == ir::Op::fmin || o.inst.op == ir::Op::fmax;
    if (canonical && o.inst.type == ir::Type::f16) value = with_canonical_nan(o, value);
  }
  return o.inst.attr.ftz ? flush_subnormals(o, value) : value;
}

Value* nearest(Operands& o, RoundedOp op, Value* x, Value* y) {
  switch (op) {
    case RoundedOp::add:
      return o.b.CreateFAdd(x, y);
    case RoundedOp::sub:
      return o.b.CreateFSub(x, y);
    case RoundedOp::mul:
      return o.b.CreateFMul(x, y);
    case RoundedOp::div:
      return o.b.CreateFDiv(x, y);
    default:
      return o.b.CreateUnaryIntrinsic(Intrinsic::sqrt, x);
  }
}

template <RoundedOp op>
Value* binary(Operands& o) {
  Value* const x = input(o, 0);
  Value* const y = input(o, 1);
  if (o.inst.attr.rounding == ir::Rounding::rn) return output(o, nearest(o, op, x, y));
  return output(o, rounded_arithmetic(o, op, {x, y}, o.inst.attr.rounding));
}

Value* square_root(Operands& o) {
  Value* const x = input(o, 0);
  if (o.inst.attr.rounding == ir::Rounding::rn) return output(o, nearest(o, RoundedOp::sqrt, x, x));
  return output(o, rounded_arithmetic(o, RoundedOp::sqrt, {x}, o.inst.attr.rounding));
}

Value* reciprocal(Operands& o) {
  Value* const x = input(o, 0);
  Value* const one = real(x->getType(), 1.0);
  if (o.inst.attr.rounding == ir::Rounding::rn) return output(o, o.b.CreateFDiv(one, x));
  return output(o, rounded_arithmetic(o, RoundedOp::div, {one, x}, o.inst.attr.rounding));
}

/// p + c; an inexact sum is rounded to odd. Its error e (exact by Knuth's TwoSum) gives the direction: if the
/// sum is farther from zero than p + c, the float before it is what p + c is cut to, otherwise the sum itself
/// is.
Value* odd_sum(Operands& o, Value* p, Value* c) {
  llvm::IRBuilder<>& b = o.b;
  Value* const sum = b.CreateFAdd(p, c);
  Value* const c_part = b.CreateFSub(sum, p);
  Value* const error = b.CreateFAdd(b.CreateFSub(p, b.CreateFSub(sum, c_part)), b.CreateFSub(c, c_part));
  Value* const word = as_bits(o, sum);
  llvm::Type* const type = word->getType();
  Value* const inexact = b.CreateFCmpONE(error, real(sum->getType(), 0.0));
  Value* const signs = b.CreateXor(word, as_bits(o, error));
  Value* const farther = b.CreateAShr(signs, width_of(type) - 1);  // -1: the error has the other sign
  Value* const cut = b.CreateAdd(word, b.CreateAnd(farther, b.CreateSExt(inexact, type)));
  return from_bits(o, b.CreateOr(cut, b.CreateZExt(inexact, type)), sum->getType());
}

/// x * y + z; an inexact result is rounded to odd: one of the two floats around it, which follow each other,
/// has a last bit of 1. An exact result is both, except that an exact zero is -0 downwards and +0 upwards.
Value* odd_fma(Operands& o, llvm::ArrayRef<Value*> args) {
  Value* const up = rounded_arithmetic(o, RoundedOp::fma, args, ir::Rounding::rp);
  Value* const down = rounded_arithmetic(o, RoundedOp::fma, args, ir::Rounding::rm);
  Value* const word = as_bits(o, down);
  Value* const last = o.b.CreateAnd(word, bits(word->getType(), 1));
  return o.b.CreateSelect(o.b.CreateICmpNE(last, bits(word->getType(), 0)), down, up);
}

/// fma of 16-bit formats. A float or double that is rounded to odd rounds to the narrow format as the exact
/// result would. Without embedded rounding: the product is exact in float (f16) or double (bf16, whose
/// exponents are those of float), and the sum is rounded to odd there.
Value* narrow_fma(Operands& o) {
  Value* x[] = {input(o, 0), input(o, 1), input(o, 2)};
  if (has_embedded_rounding(o)) return output(o, odd_fma(o, x));
  if (o.inst.type == ir::Type::f16) return output(o, odd_sum(o, o.b.CreateFMul(x[0], x[1]), x[2]));
  llvm::Type* const wide = with_element(o.type, o.b.getDoubleTy());
  for (Value*& value : x) value = o.b.CreateFPExt(value, wide);
  return output(o, narrow_to_odd_float(o, odd_sum(o, o.b.CreateFMul(x[0], x[1]), x[2])));
}

Value* ffma(Operands& o) {
  if (is_narrow(o.inst.type)) return narrow_fma(o);
  Value* const x = input(o, 0);
  Value* const y = input(o, 1);
  Value* const z = input(o, 2);
  if (o.inst.attr.rounding == ir::Rounding::rn) return output(o, fused_multiply_add(o.context, x, y, z));
  return output(o, rounded_arithmetic(o, RoundedOp::fma, {x, y, z}, o.inst.attr.rounding));
}

/// Returns the number if one operand is NaN; -0 is less than +0. If the operands are equal, they differ at
/// most in their signs: the `or` of the bits is the lesser one, the `and` the greater one.
template <bool is_min>
Value* extremum(Operands& o) {
  llvm::IRBuilder<>& b = o.b;
  Value* const x = input(o, 0);
  Value* const y = input(o, 1);
  Value* const chosen = b.CreateSelect(is_min ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOGT(x, y), x, y);
  Value* const number = b.CreateSelect(b.CreateFCmpUNO(y, y), x, chosen);
  Value* const both =
      is_min ? b.CreateOr(as_bits(o, x), as_bits(o, y)) : b.CreateAnd(as_bits(o, x), as_bits(o, y));
  Value* result = b.CreateSelect(b.CreateFCmpOEQ(x, y), from_bits(o, both, x->getType()), number);
  if (o.inst.attr.nan) {
    const std::uint64_t canonical = width_of(x->getType()) == 64 ? 0x7fffffffffffffffu : 0x7fffffffu;
    Value* const nan = from_bits(o, bits(as_integer(x->getType()), canonical), x->getType());
    result = b.CreateSelect(b.CreateFCmpUNO(x, y), nan, result);
  }
  return output(o, result);
}

/// For f16 and bf16, which are kept as bits: a NaN has a magnitude above that of infinity.
Value* canonical_narrow(Operands& o, Value* word, ir::Type type) {
  llvm::IRBuilder<>& b = o.b;
  const std::uint64_t infinity = type == ir::Type::f16 ? 0x7c00 : 0x7f80;
  Value* const size = b.CreateAnd(word, bits(word->getType(), 0x7fff));
  Value* const nan = b.CreateICmpUGT(size, bits(word->getType(), infinity));
  return b.CreateSelect(nan, bits(word->getType(), 0x7fff), word);
}

Value* canonical_nan(Operands& o) {
  if (is_narrow(o.inst.type)) return canonical_narrow(o, o[0], o.inst.type);
  return canonical_float(o, o[0]);
}

Value* sign_bit(Operands& o) { return bits(as_integer(o.type), std::uint64_t{1} << (width_of(o.type) - 1)); }

/// bf16 arithmetic produces canonical NaNs when it rounds. Operations that only change the sign do so here.
Value* with_sign(Operands& o, Value* word) {
  if (o.inst.type == ir::Type::bf16) word = canonical_narrow(o, word, ir::Type::bf16);
  return from_bits(o, word, o.type);
}

Value* negate(Operands& o) {
  Value* const value = o.inst.attr.ftz ? flush_subnormals(o, o[0]) : o[0];
  return with_sign(o, o.b.CreateXor(as_bits(o, value), sign_bit(o)));
}

Value* magnitude(Operands& o) {
  Value* const value = o.inst.attr.ftz ? flush_subnormals(o, o[0]) : o[0];
  return with_sign(o, o.b.CreateAnd(as_bits(o, value), o.b.CreateNot(sign_bit(o))));
}

Value* copy_sign(Operands& o) {
  Value* const sign = o.b.CreateAnd(as_bits(o, o[0]), sign_bit(o));
  return from_bits(o, o.b.CreateOr(sign, o.b.CreateAnd(as_bits(o, o[1]), o.b.CreateNot(sign_bit(o)))),
                   o.type);
}

Value* test_property(Operands& o) {
  const llvm::fltSemantics& format = o[0]->getType()->getScalarType()->getFltSemantics();
  llvm::Type* const word = as_integer(o[0]->getType());
  Value* const size =
      o.b.CreateAnd(as_bits(o, o[0]), bits(word, ~(std::uint64_t{1} << (width_of(word) - 1))));
  Value* const infinity = bits(word, llvm::APFloat::getInf(format).bitcastToAPInt().getZExtValue());
  Value* const least_normal =
      bits(word, llvm::APFloat::getSmallestNormalized(format).bitcastToAPInt().getZExtValue());
  switch (static_cast<ir::TestProperty>(o.inst.imm)) {
    case ir::TestProperty::finite:
      return o.b.CreateICmpULT(size, infinity);
    case ir::TestProperty::infinite:
      return o.b.CreateICmpEQ(size, infinity);
    case ir::TestProperty::number:
      return o.b.CreateICmpULE(size, infinity);
    case ir::TestProperty::notanumber:
      return o.b.CreateICmpUGT(size, infinity);
    default:
      break;
  }
  // A zero counts as a normal number.
  Value* const zero = o.b.CreateICmpEQ(size, bits(word, 0));
  Value* const small = o.b.CreateICmpULT(size, least_normal);
  if (static_cast<ir::TestProperty>(o.inst.imm) == ir::TestProperty::subnormal)
    return o.b.CreateAnd(small, o.b.CreateNot(zero));
  return o.b.CreateAnd(o.b.CreateICmpULT(size, infinity), o.b.CreateOr(zero, o.b.CreateNot(small)));
}

/// PTX has no directed rounding for 16-bit formats; rna is for conversions only.
bool accepts_rounding(const ir::Inst& inst) {
  return inst.attr.rounding == ir::Rounding::rn ||
         (inst.attr.rounding != ir::Rounding::rna && !is_narrow(inst.type));
}

constexpr Row kRows[] = {
    {ir::Op::fadd, binary<RoundedOp::add>, nullptr, accepts_rounding},
    {ir::Op::fsub, binary<RoundedOp::sub>, nullptr, accepts_rounding},
    {ir::Op::fmul, binary<RoundedOp::mul>, nullptr, accepts_rounding},
    {ir::Op::fdiv, binary<RoundedOp::div>, nullptr, accepts_rounding},
    {ir::Op::fsqrt, square_root, nullptr, accepts_rounding},
    {ir::Op::frcp, reciprocal, nullptr, accepts_rounding},
    {ir::Op::ffma, ffma, nullptr, accepts_rounding},
    {ir::Op::fmin, extremum<true>},
    {ir::Op::fmax, extremum<false>},
    {ir::Op::fneg, negate},
    {ir::Op::fabs, magnitude},
    {ir::Op::canonical_nan, canonical_nan},
    {ir::Op::copysign, copy_sign},
    {ir::Op::testp, test_property},
};

}  // namespace

std::span<const Row> floating_rows() { return kRows; }

}  // namespace quern::cpu::emit
