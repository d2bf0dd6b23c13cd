// SPDX-License-Identifier: Apache-2.0
// The .approx instructions (PTX ISA: "Floating Point Instructions"). Results have the same bits on every
// processor: they are polynomials in fma arithmetic, or the correctly rounded operation if the processor has
// it. Error bounds of PTX and of this file (tests/unit/cpu/operations):
//
// * div.approx, div.full: 2 ulp; here correctly rounded. div.approx gives 0 for 2^126 < |b|, NaN if a is
//   infinite.
// * rcp, sqrt: 1 ulp and 2^-23; here correctly rounded.
// * rsqrt: 2^-22.9; here 2^-23, from two roundings.
// * ex2: 2 ulp; here 1 ulp.
// * lg2: 2^-22, absolute in (0.5, 2), relative elsewhere; here 2^-23.
// * sin, cos: 2^-20.5, absolute in [-2 pi, 2 pi]; here 2^-22 there, and 2^-20 for any finite argument.
// * tanh: 2^-11 relative; here 2^-20.
// * ex2, tanh of f16, bf16: computed in f32, rounded once more.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include <initializer_list>

#include "cpu/emit/operations/real.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

/// Coefficients from the highest power down.
Value* polynomial(Operands& o, Value* x, std::initializer_list<double> coefficients) {
  Value* sum = nullptr;
  for (const double coefficient : coefficients)
    sum = sum == nullptr ? real(x->getType(), coefficient)
                         : fused_multiply_add(o.context, sum, x, real(x->getType(), coefficient));
  return sum;
}

Value* square_root(Operands& o, Value* x) { return o.b.CreateUnaryIntrinsic(Intrinsic::sqrt, x); }
Value* reciprocal(Operands& o, Value* x) { return o.b.CreateFDiv(real(x->getType(), 1.0), x); }
Value* magnitude(Operands& o, Value* x) { return o.b.CreateUnaryIntrinsic(Intrinsic::fabs, x); }

Value* divide(Operands& o, Value* a, Value* divisor) {
  Value* const zero =
      o.b.CreateFMul(a, o.b.CreateBinaryIntrinsic(Intrinsic::copysign, real(a->getType(), 0.0), divisor));
  Value* const too_large = o.b.CreateFCmpOGT(magnitude(o, divisor), real(a->getType(), 0x1p126));
  return o.b.CreateSelect(too_large, zero, o.b.CreateFDiv(a, divisor));
}

/// 2^k for an integer-valued k in [-126, 127].
Value* power_of_two(Operands& o, Value* k) {
  Value* const exponent = o.b.CreateShl(o.b.CreateAdd(k, bits(k->getType(), 127)), 23);
  return o.b.CreateBitCast(exponent, with_element(k->getType(), o.b.getFloatTy()));
}

/// 1.5 * 2^23: adding it rounds |x| < 2^22 to an integer, which is then in the low bits.
constexpr double kRounder = 0x1.8p23;

/// 2^fraction for a fraction in [-1/2, 1/2].
Value* exp2_of_fraction(Operands& o, Value* fraction) {
  Value* const slope = polynomial(
      o, fraction,
      {0x1.446c82p-13, 0x1.5f0896p-10, 0x1.3b29e4p-7, 0x1.c6af6cp-5, 0x1.ebfbe0p-3, 0x1.62e430p-1});
  return fused_multiply_add(o.context, slope, fraction, real(fraction->getType(), 1.0));
}

/// The same result by instructions of AVX-512 for the parts of a number and for powers of two. They know
/// infinities, NaN and subnormal results.
Value* exp2_by_parts(Operands& o, Value* x) {
  constexpr unsigned kChunk = 16, kNearest = 8, kCurrentRounding = 4;
  llvm::IRBuilder<>& b = o.b;
  const auto call = [&](Intrinsic::ID which, Value* a, Value* second) -> Value* {
    return b.CreateIntrinsic(which, {}, {a, second, a, b.getInt16(0xffff), b.getInt32(kCurrentRounding)});
  };
  llvm::SmallVector<Value*, 2> parts;
  for (unsigned first = 0; first < kWarpSize; first += kChunk) {
    Value* const part = slice(o.context, x, first, kChunk);
    Value* const whole = call(Intrinsic::x86_avx512_mask_rndscale_ps_512, part, b.getInt32(kNearest));
    Value* const fraction = call(Intrinsic::x86_avx512_mask_reduce_ps_512, part, b.getInt32(kNearest));
    parts.push_back(call(Intrinsic::x86_avx512_mask_scalef_ps_512, exp2_of_fraction(o, fraction), whole));
  }
  return concat(o.context, parts);
}

Value* exp2(Operands& o, Value* x) {
  llvm::IRBuilder<>& b = o.b;
  if (o.isa() == Isa::avx512 && x->getType()->isVectorTy()) return exp2_by_parts(o, x);
  llvm::Type* const type = x->getType();
  llvm::Type* const word = as_integer(type);
  // Beyond these bounds, every result is 0 or infinite; NaN is not changed.
  Value* bounded = b.CreateSelect(b.CreateFCmpOLT(x, real(type, -152)), real(type, -152), x);
  bounded = b.CreateSelect(b.CreateFCmpOGT(bounded, real(type, 129)), real(type, 129), bounded);
  Value* const shifted = b.CreateFAdd(bounded, real(type, kRounder));
  Value* const fraction = b.CreateFSub(bounded, b.CreateFSub(shifted, real(type, kRounder)));
  Value* const mantissa = exp2_of_fraction(o, fraction);
  // Multiply by 2^k in two steps, so that only the last one, towards a subnormal, rounds.
  Value* const k = b.CreateSub(b.CreateBitCast(shifted, word), bits(word, 0x4b400000));
  Value* const half = b.CreateAShr(k, 1);
  return b.CreateFMul(b.CreateFMul(mantissa, power_of_two(o, half)), power_of_two(o, b.CreateSub(k, half)));
}

Value* log2(Operands& o, Value* x) {
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const type = x->getType();
  llvm::Type* const word = as_integer(type);
  Value* const subnormal = b.CreateFCmpOLT(x, real(type, 0x1p-126));
  Value* const normal = b.CreateSelect(subnormal, b.CreateFMul(x, real(type, 0x1p23)), x);
  Value* const all = b.CreateBitCast(normal, word);
  // x = 2^exponent * m with m in [sqrt(1/2), sqrt(2))
  Value* const exponent = b.CreateAShr(b.CreateSub(all, bits(word, 0x3f3504f3)), 23);
  Value* const m = b.CreateBitCast(b.CreateSub(all, b.CreateShl(exponent, 23)), type);
  Value* const t = b.CreateFSub(m, real(type, 1.0));
  Value* const slope =
      polynomial(o, t,
                 {-0x1.c25a52p-4, 0x1.7d4942p-3, -0x1.874becp-3, 0x1.a305a8p-3, -0x1.eabc88p-3, 0x1.277e36p-2,
                  -0x1.715a76p-2, 0x1.ec7096p-2, -0x1.715470p-1, 0x1.715476p+0});
  Value* const whole =
      b.CreateFSub(b.CreateSIToFP(exponent, type), b.CreateSelect(subnormal, real(type, 23), real(type, 0)));
  Value* result = fused_multiply_add(o.context, slope, t, whole);
  result =
      b.CreateSelect(b.CreateFCmpOEQ(x, real(type, 0)), llvm::ConstantFP::getInfinity(type, true), result);
  result = b.CreateSelect(b.CreateFCmpULT(x, real(type, 0)), llvm::ConstantFP::getNaN(type), result);
  return b.CreateSelect(b.CreateFCmpOEQ(x, llvm::ConstantFP::getInfinity(type)), x, result);
}

/// True if any lane of the magnitude is at least 2^20, or NaN. The lanes' maximum as integers takes fewer
/// instructions than a comparison of each lane. Lanes that do not run may have any value.
Value* any_large(Operands& o, Value* x) {
  llvm::IRBuilder<>& b = o.b;
  Value* const word = as_bits(o, x);
  Value* largest = b.CreateFreeze(b.CreateAnd(word, bits(word->getType(), 0x7fffffff)));
  constexpr unsigned kLanes = 8;  // of the narrowest vector that is compared
  for (unsigned half = kWarpSize / 2; o.is_vector() && half >= kLanes; half /= 2)
    largest = b.CreateBinaryIntrinsic(Intrinsic::umax, slice(o.context, largest, 0, half),
                                      slice(o.context, largest, half, half));
  Value* const large = b.CreateICmpUGE(largest, bits(largest->getType(), 0x49800000));  // 2^20
  return o.is_vector() ? b.CreateICmpNE(b.CreateBitCast(large, b.getIntNTy(kLanes)), b.getIntN(kLanes, 0))
                       : large;
}

/// Returns x with lanes of at least 2^20 reduced to [-pi, pi]. Such arguments are rare: they cost the others
/// a test and a branch.
Value* reduce_large(Operands& o, Value* x) {
  llvm::IRBuilder<>& b = o.b;
  Context& c = o.context;
  Value* const any = any_large(o, x);
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const some = c.new_block("large");
  Value* const place = spill(c, x);
  call_helper(c, "quern_cpu_reduce_angles", b.getVoidTy(), {b.getInt32(o.is_vector() ? kWarpSize : 1), place},
              Touches::arguments_only);
  Value* const reduced = b.CreateAlignedLoad(x->getType(), place, llvm::Align(64));
  release(c, {place});
  llvm::BasicBlock* const done = c.new_block("reduced");
  llvm::IRBuilder<>(some).CreateBr(done);
  llvm::IRBuilder<>(before).CreateCondBr(any, some, done,
                                         llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights());
  llvm::PHINode* const result = b.CreatePHI(x->getType(), 2);
  result->addIncoming(x, before);
  result->addIncoming(reduced, some);
  return result;
}

/// sin(x + quarters * pi / 2)
Value* sine(Operands& o, Value* x, unsigned quarters) {
  llvm::IRBuilder<>& b = o.b;
  Context& c = o.context;
  llvm::Type* const type = x->getType();
  llvm::Type* const word = as_integer(type);
  x = reduce_large(o, x);
  Value* const shifted = fused_multiply_add(c, x, real(type, 0x1.45f306p-1), real(type, kRounder));
  Value* const k = b.CreateFNeg(b.CreateFSub(shifted, real(type, kRounder)));
  Value* r = fused_multiply_add(c, k, real(type, 0x1.921fb6p+0), x);
  r = fused_multiply_add(c, k, real(type, -0x1.777a5cp-25), r);
  r = fused_multiply_add(c, k, real(type, -0x1.ee59dap-50), r);
  r = b.CreateSelect(b.CreateFCmpOEQ(k, real(type, 0)), x, r);  // preserves the sign of zero
  Value* const z = b.CreateFMul(r, r);
  // The last operation is a product, so that the sign of zero is preserved.
  Value* const sine_of_r =
      b.CreateFMul(r, polynomial(o, z, {-0x1.9aaf18p-13, 0x1.110bf8p-7, -0x1.555552p-3, 1.0}));
  Value* const cosine_of_r = polynomial(o, z, {0x1.9bb1c2p-16, -0x1.6c1274p-10, 0x1.555554p-5, -0.5, 1.0});
  Value* const quadrant = b.CreateAdd(b.CreateBitCast(shifted, word), bits(word, quarters));
  Value* const use_cosine = b.CreateICmpNE(b.CreateAnd(quadrant, bits(word, 1)), bits(word, 0));
  Value* const sign = b.CreateShl(b.CreateAnd(quadrant, bits(word, 2)), 30);
  Value* const chosen = b.CreateSelect(use_cosine, cosine_of_r, sine_of_r);
  return b.CreateBitCast(b.CreateXor(b.CreateBitCast(chosen, word), sign), type);
}

Value* hyperbolic_tangent(Operands& o, Value* x) {
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const type = x->getType();
  Value* const z = b.CreateFMul(x, x);
  Value* const odd = polynomial(o, z, {0x1.1006fep-6, -0x1.b10868p-5, 0x1.10e87ep-3, -0x1.55551ap-2});
  Value* const size = magnitude(o, x);
  Value* const small = fused_multiply_add(o.context, b.CreateFMul(odd, z), size, size);
  Value* const e = exp2(o, b.CreateFMul(size, real(type, 0x1.715476p+1)));
  Value* const ratio = b.CreateFDiv(real(type, 2.0), b.CreateFAdd(e, real(type, 1.0)));
  Value* const large = b.CreateFSub(real(type, 1.0), ratio);
  Value* const result = b.CreateSelect(b.CreateFCmpOLT(size, real(type, 0.6)), small, large);
  return b.CreateBinaryIntrinsic(Intrinsic::copysign, result, x);
}

Value* value_of(Operands& o, ir::Approx which, llvm::ArrayRef<Value*> x) {
  switch (which) {
    case ir::Approx::div:
      return divide(o, x[0], x[1]);
    case ir::Approx::div_full:
      return o.b.CreateFDiv(x[0], x[1]);
    case ir::Approx::sqrt:
      return square_root(o, x[0]);
    case ir::Approx::rsqrt:
      return reciprocal(o, square_root(o, x[0]));
    case ir::Approx::rcp:
      return reciprocal(o, x[0]);
    case ir::Approx::ex2:
      return exp2(o, x[0]);
    case ir::Approx::lg2:
      return log2(o, x[0]);
    case ir::Approx::sin:
      return sine(o, x[0], 0);
    case ir::Approx::cos:
      return sine(o, x[0], 1);
    case ir::Approx::tanh:
      break;
  }
  return hyperbolic_tangent(o, x[0]);
}

/// The .ftz.f64 forms read and write only the upper 32 bits.
Value* upper_word(Operands& o, Value* value) {
  return from_bits(o,
                   o.b.CreateAnd(as_bits(o, value), bits(as_integer(value->getType()), 0xffffffff00000000u)),
                   value->getType());
}

/// 2^x with subnormal results flushed: those of numbers below -126. A subnormal x gives 1 in any case. With
/// few registers, keeping x would cost more than looking at the result.
Value* flushed_exp2(Operands& o, Value* x) {
  if (o.isa() != Isa::avx512) return flush_subnormals(o, exp2(o, x));
  Value* const normal = o.b.CreateFCmpUGE(x, real(x->getType(), -126));
  return o.b.CreateSelect(normal, exp2(o, x), real(x->getType(), 0));
}

Value* approximate(Operands& o) {
  if (o.inst.type == ir::Type::f32 && o.inst.attr.ftz &&
      static_cast<ir::Approx>(o.inst.imm) == ir::Approx::ex2)
    return flushed_exp2(o, o.args[0]);
  const bool gross = o.inst.type == ir::Type::f64 && o.inst.attr.ftz;
  llvm::SmallVector<Value*, 2> x;
  for (Value* arg : o.args) {
    if (gross) arg = upper_word(o, arg);
    if (o.inst.attr.ftz) arg = flush_subnormals(o, arg);
    x.push_back(is_narrow(o.inst.type) ? widen_to_float(o, arg, o.inst.type) : arg);
  }
  Value* result = value_of(o, static_cast<ir::Approx>(o.inst.imm), x);
  if (is_narrow(o.inst.type)) result = narrow_from_float(o, result, o.inst.type, ir::Rounding::rn);
  if (gross) result = upper_word(o, result);
  return o.inst.attr.ftz ? flush_subnormals(o, result) : result;
}

bool accepts_approx(const ir::Inst& inst) {
  const auto which = static_cast<ir::Approx>(inst.imm);
  if (inst.type == ir::Type::f64) return which == ir::Approx::rcp || which == ir::Approx::rsqrt;
  if (is_narrow(inst.type)) return which == ir::Approx::ex2 || which == ir::Approx::tanh;
  return inst.type == ir::Type::f32;
}

constexpr Row kRows[] = {{ir::Op::approx, approximate, nullptr, accepts_approx}};

}  // namespace

std::span<const Row> approx_rows() { return kRows; }

}  // namespace quern::cpu::emit
