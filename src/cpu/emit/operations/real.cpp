// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/real.hpp"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

constexpr std::uint64_t kFloatSign = 0x80000000u;
constexpr std::uint64_t kFloatInfinity = 0x7f800000u;

llvm::Type* float_like(llvm::Type* type) {
  return with_element(type, llvm::Type::getFloatTy(type->getContext()));
}
llvm::Type* half_like(llvm::Type* type) {
  return with_element(type, llvm::Type::getHalfTy(type->getContext()));
}
llvm::Type* word_like(llvm::Type* type) {
  return with_element(type, llvm::Type::getInt32Ty(type->getContext()));
}
llvm::Type* short_like(llvm::Type* type) {
  return with_element(type, llvm::Type::getInt16Ty(type->getContext()));
}

/// Converts half to float without F16C: a multiplication changes the exponent and also normalises subnormals.
Value* widen_half_bits(Operands& o, Value* half) {
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const word = word_like(half->getType());
  Value* const wide = b.CreateZExt(half, word);
  Value* const magnitude = b.CreateShl(b.CreateAnd(wide, bits(word, 0x7fff)), 13);
  Value* const scaled =
      b.CreateFMul(b.CreateBitCast(magnitude, float_like(word)), real(float_like(word), 0x1p112));
  Value* const special = b.CreateICmpUGE(magnitude, bits(word, 0x0f800000));
  Value* const finite = b.CreateBitCast(scaled, word);
  Value* const chosen = b.CreateSelect(special, b.CreateOr(magnitude, bits(word, kFloatInfinity)), finite);
  Value* const sign = b.CreateShl(b.CreateAnd(wide, bits(word, 0x8000)), 16);
  return b.CreateBitCast(b.CreateOr(chosen, sign), float_like(word));
}

/// Converts float to half, to nearest even, without F16C. For subnormal results, adding 0.5 aligns the bits
/// and rounds them.
Value* narrow_half_bits(Operands& o, Value* value) {
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const word = word_like(value->getType());
  Value* const all = b.CreateBitCast(value, word);
  Value* const magnitude = b.CreateAnd(all, bits(word, 0x7fffffff));
  Value* const odd = b.CreateAnd(b.CreateLShr(magnitude, 13), bits(word, 1));
  Value* const rebased = b.CreateSub(magnitude, bits(word, std::uint64_t{112} << 23));
  Value* const normal = b.CreateLShr(b.CreateAdd(b.CreateAdd(rebased, bits(word, 0xfff)), odd), 13);
  Value* const shifted =
      b.CreateFAdd(b.CreateBitCast(magnitude, value->getType()), real(value->getType(), 0.5));
  Value* const subnormal = b.CreateSub(b.CreateBitCast(shifted, word), bits(word, 0x3f000000));
  Value* result = b.CreateSelect(b.CreateICmpULT(magnitude, bits(word, 0x38800000)), subnormal, normal);
  result = b.CreateSelect(b.CreateICmpUGE(magnitude, bits(word, 0x477ff000)), bits(word, 0x7c00), result);
  result = b.CreateSelect(b.CreateICmpUGT(magnitude, bits(word, kFloatInfinity)), bits(word, 0x7fff), result);
  result = b.CreateOr(result, b.CreateLShr(b.CreateAnd(all, bits(word, kFloatSign)), 16));
  return b.CreateTrunc(result, short_like(word));
}

Value* narrow_bfloat_bits(Operands& o, Value* value) {
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const word = word_like(value->getType());
  Value* const all = b.CreateBitCast(value, word);
  Value* const odd = b.CreateAnd(b.CreateLShr(all, 16), bits(word, 1));
  Value* const rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(all, bits(word, 0x7fff)), odd), 16);
  Value* const nan = b.CreateFCmpUNO(value, value);
  return b.CreateTrunc(b.CreateSelect(nan, bits(word, 0x7fff), rounded), short_like(word));
}

Value* narrow_to_nearest(Operands& o, Value* value, ir::Type to) {
  if (to == ir::Type::bf16) return narrow_bfloat_bits(o, value);
  if (o.isa() == Isa::baseline) return narrow_half_bits(o, value);
  return as_bits(o, o.b.CreateFPTrunc(value, half_like(value->getType())));
}

/// Rounds without SSE4.1, where LLVM would call a library function for each lane.
Value* integral_by_hand(Operands& o, Value* value, ir::Rounding rounding) {
  const bool is_float = value->getType()->getScalarType()->isFloatTy();
  // |x| + 2^(p - 1) has no fraction bits, so the addition rounds, to nearest even.
  Value* const magnitude = o.b.CreateUnaryIntrinsic(Intrinsic::fabs, value);
  Value* const large = real(value->getType(), is_float ? 0x1p23 : 0x1p52);
  Value* const sum = o.b.CreateFSub(o.b.CreateFAdd(magnitude, large), large);
  Value* const nearest = o.b.CreateSelect(o.b.CreateFCmpOLT(magnitude, large), sum, magnitude);
  Value* const result = o.b.CreateBinaryIntrinsic(Intrinsic::copysign, nearest, value);
  if (rounding == ir::Rounding::rn) return result;
  Value* const one = real(value->getType(), 1.0);
  Value* const zero = real(value->getType(), 0.0);
  Value* const above = o.b.CreateFCmpOGT(result, value);
  Value* const below = o.b.CreateFCmpOLT(result, value);
  Value* const negative = o.b.CreateFCmpOLT(value, zero);
  Value* const down = rounding == ir::Rounding::rm ? above : o.b.CreateAnd(above, o.b.CreateNot(negative));
  Value* const up = rounding == ir::Rounding::rp ? below : o.b.CreateAnd(below, negative);
  Value* stepped = result;
  if (rounding != ir::Rounding::rp) stepped = o.b.CreateFSub(stepped, o.b.CreateSelect(down, one, zero));
  if (rounding != ir::Rounding::rm) stepped = o.b.CreateFAdd(stepped, o.b.CreateSelect(up, one, zero));
  return o.b.CreateBinaryIntrinsic(Intrinsic::copysign, stepped, value);
}

}  // namespace

llvm::Constant* real(llvm::Type* type, double value) { return llvm::ConstantFP::get(type, value); }

Value* as_bits(Operands& o, Value* value) { return o.b.CreateBitCast(value, as_integer(value->getType())); }
Value* from_bits(Operands& o, Value* value, llvm::Type* like) { return o.b.CreateBitCast(value, like); }

Value* widen_to_float(Operands& o, Value* value, ir::Type from) {
  llvm::Type* const type = value->getType();
  if (from == ir::Type::bf16)
    return o.b.CreateBitCast(o.b.CreateShl(o.b.CreateZExt(value, word_like(type)), 16), float_like(type));
  if (o.isa() == Isa::baseline) return widen_half_bits(o, value);
  return o.b.CreateFPExt(o.b.CreateBitCast(value, half_like(type)), float_like(type));
}

Value* narrow_from_float(Operands& o, Value* value, ir::Type to, ir::Rounding rounding) {
  Value* const nearest = narrow_to_nearest(o, value, to);
  if (rounding == ir::Rounding::rn) return nearest;
  Value* const back = widen_to_float(o, nearest, to);
  return redirect(o, nearest, rounding, o.b.CreateFCmpOGT(back, value), o.b.CreateFCmpOLT(back, value));
}

/// Makes NaNs canonical by one instruction without a mask register. Its table has four bits for each class of
/// numbers. It selects the first operand for quiet and signalling NaNs, and the number itself for all other
/// classes.
Value* canonical_by_fixup(Operands& o, Value* value) {
  constexpr unsigned kChunk = 16, kCurrentRounding = 4;
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const words = llvm::FixedVectorType::get(b.getInt32Ty(), kChunk);
  Value* const nan =
      b.CreateBitCast(bits(words, 0x7fffffff), llvm::FixedVectorType::get(b.getFloatTy(), kChunk));
  llvm::SmallVector<Value*, 2> parts;
  for (unsigned first = 0; first < kWarpSize; first += kChunk)
    parts.push_back(b.CreateIntrinsic(Intrinsic::x86_avx512_mask_fixupimm_ps_512, {},
                                      {nan, slice(o.context, value, first, kChunk), bits(words, 0x11111100),
                                       b.getInt32(0), b.getInt16(0xffff), b.getInt32(kCurrentRounding)}));
  return concat(o.context, parts);
}

Value* with_canonical_nan(Operands& o, Value* narrow) {
  // On 16 bits: half the instructions of a comparison of what was rounded.
  Value* const word = as_bits(o, narrow);
  Value* const magnitude = o.b.CreateAnd(word, bits(word->getType(), 0x7fff));
  Value* const nan = o.b.CreateICmpUGT(magnitude, bits(word->getType(), 0x7c00));
  return from_bits(o, o.b.CreateSelect(nan, bits(word->getType(), 0x7fff), word), narrow->getType());
}

Value* canonical_float(Operands& o, Value* value) {
  if (o.isa() == Isa::avx512 && value->getType()->isVectorTy() &&
      value->getType()->getScalarType()->isFloatTy())
    return canonical_by_fixup(o, value);
  Value* const nan = from_bits(o, bits(as_integer(value->getType()), 0x7fffffff), value->getType());
  return o.b.CreateSelect(o.b.CreateFCmpUNO(value, value), nan, value);
}

Value* narrow_to_odd_float(Operands& o, Value* value) {
  llvm::IRBuilder<>& b = o.b;
  Value* const nearest = b.CreateFPTrunc(value, float_like(value->getType()));
  Value* const back = b.CreateFPExt(nearest, value->getType());
  Value* const word = as_bits(o, nearest);
  Value* const even = b.CreateICmpEQ(b.CreateAnd(word, bits(word->getType(), 1)), bits(word->getType(), 0));
  Value* const inexact = b.CreateFCmpONE(back, value);
  Value* const farther = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, back),
                                         b.CreateUnaryIntrinsic(Intrinsic::fabs, value));
  Value* const step = b.CreateSelect(farther, bits(word->getType(), ~0ull), bits(word->getType(), 1));
  Value* const odd = b.CreateSelect(b.CreateAnd(even, inexact), b.CreateAdd(word, step), word);
  return from_bits(o, odd, nearest->getType());
}

Value* redirect(Operands& o, Value* rounded, ir::Rounding rounding, Value* above, Value* below) {
  llvm::IRBuilder<>& b = o.b;
  Value* const word = as_bits(o, rounded);
  Value* const one = bits(word->getType(), 1);
  // A step away from zero adds 1 to the bits, a step towards zero subtracts 1, for both signs.
  Value* const negative = b.CreateICmpSLT(word, bits(word->getType(), 0));
  Value* result = word;
  if (rounding == ir::Rounding::rz) {
    Value* const farther = b.CreateSelect(negative, below, above);
    result = b.CreateSelect(farther, b.CreateSub(word, one), word);
  } else if (rounding == ir::Rounding::rm) {
    result =
        b.CreateSelect(above, b.CreateSelect(negative, b.CreateAdd(word, one), b.CreateSub(word, one)), word);
  } else if (rounding == ir::Rounding::rp) {
    result =
        b.CreateSelect(below, b.CreateSelect(negative, b.CreateSub(word, one), b.CreateAdd(word, one)), word);
  }
  return from_bits(o, result, rounded->getType());
}

Value* flush_subnormals(Operands& o, Value* value) {
  llvm::Type* const word = as_integer(value->getType());
  const unsigned width = width_of(word);
  // f16 is the only 16-bit format that can be flushed.
  const llvm::Type* const element = value->getType()->getScalarType();
  const llvm::fltSemantics& format =
      element->isIntegerTy() ? llvm::APFloat::IEEEhalf() : element->getFltSemantics();
  const std::uint64_t exponent = llvm::APFloat::getInf(format).bitcastToAPInt().getZExtValue();
  Value* const all = as_bits(o, value);
  Value* const small = o.b.CreateICmpEQ(o.b.CreateAnd(all, bits(word, exponent)), bits(word, 0));
  Value* const zero = o.b.CreateAnd(all, bits(word, std::uint64_t{1} << (width - 1)));
  return from_bits(o, o.b.CreateSelect(small, zero, all), value->getType());
}

Value* saturate(Operands& o, Value* value) {
  Value* const zero = real(value->getType(), 0.0);
  Value* const one = real(value->getType(), 1.0);
  Value* const positive = o.b.CreateSelect(o.b.CreateFCmpOGT(value, zero), value, zero);
  return o.b.CreateSelect(o.b.CreateFCmpOLT(positive, one), positive, one);
}

Value* clamp_negative(Operands& o, Value* value) {
  Value* const zero = real(value->getType(), 0.0);
  return o.b.CreateSelect(o.b.CreateFCmpOLE(value, zero), zero, value);
}

Value* round_to_integral(Operands& o, Value* value, ir::Rounding rounding) {
  if (o.isa() == Isa::baseline) return integral_by_hand(o, value, rounding);
  constexpr Intrinsic::ID kModes[] = {Intrinsic::roundeven, Intrinsic::trunc, Intrinsic::floor,
                                      Intrinsic::ceil};
  return o.b.CreateUnaryIntrinsic(kModes[static_cast<std::size_t>(rounding)], value);
}

}  // namespace quern::cpu::emit
