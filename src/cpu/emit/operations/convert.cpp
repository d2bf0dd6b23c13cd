// SPDX-License-Identifier: Apache-2.0
// Conversions (PTX ISA: "Data Movement and Conversion Instructions: cvt").
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <vector>

#include "cpu/emit/operations/real.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

Value* truncate(Operands& o) { return o.b.CreateTrunc(o[0], o.type); }
Value* zero_extend(Operands& o) { return o.b.CreateZExt(o[0], o.type); }
Value* sign_extend(Operands& o) { return o.b.CreateSExt(o[0], o.type); }
Value* bit_cast(Operands& o) { return o.b.CreateBitCast(o[0], o.type); }

/// Returns the source in a format with arithmetic: float or double.
Value* real_source(Operands& o) {
  const ir::Type from = o.type_of_arg(0);
  if (is_narrow(from)) {
    Value* const value = widen_to_float(o, o[0], from);
    // The bits of its NaN would be visible in a double.
    return o.inst.type == ir::Type::f64 && from == ir::Type::f16 ? canonical_float(o, value) : value;
  }
  return o.inst.attr.ftz && from == ir::Type::f32 ? flush_subnormals(o, o[0]) : o[0];
}

// --- floating point to integer

struct Range {
  double least;
  double beyond;  ///< the smallest value that is too large: a power of two, exact in any format
  std::uint64_t least_bits;
  std::uint64_t greatest_bits;
};

Range range_of(unsigned width, bool is_signed) {
  const double half = width == 64 ? 0x1p63 : static_cast<double>(std::uint64_t{1} << (width - 1));
  const std::uint64_t top = std::uint64_t{1} << (width - 1);
  if (is_signed) return {-half, half, top, top - 1};
  return {0.0, 2 * half, 0, top - 1 + top};
}

/// PTX: NaN gives 0, or only the sign bit if source or result has 64 bits.
std::uint64_t nan_result(Operands& o, unsigned width) {
  const bool wide = o.type_of_arg(0) == ir::Type::f64 || width == 64;
  return wide ? std::uint64_t{1} << (width - 1) : 0;
}

/// Clamps before the conversion; the limits are exact in the source's format.
Value* clamped_to_integer(Operands& o, Value* value, const Range& range, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  const bool small = width_of(o.type) < 32;
  llvm::Type* const word = small ? with_element(o.type, b.getInt32Ty()) : o.type;
  Value* const most = real(value->getType(), range.beyond - 1);
  Value* const least = real(value->getType(), range.least);
  Value* clamped = b.CreateSelect(b.CreateFCmpOLT(value, most), value, most);
  clamped = b.CreateSelect(b.CreateFCmpOGT(clamped, least), clamped, least);
  Value* const integer = is_signed || small ? b.CreateFPToSI(clamped, word) : b.CreateFPToUI(clamped, word);
  return b.CreateTrunc(integer, o.type);
}

/// The conversion is undefined for values out of range, so their results are replaced after it.
Value* replaced_to_integer(Operands& o, Value* value, const Range& range, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  Value* const converted =
      b.CreateFreeze(is_signed ? b.CreateFPToSI(value, o.type) : b.CreateFPToUI(value, o.type));
  Value* const high = b.CreateFCmpOGE(value, real(value->getType(), range.beyond));
  Value* const low = b.CreateFCmpOLT(value, real(value->getType(), range.least));
  return b.CreateSelect(high, bits(o.type, range.greatest_bits),
                        b.CreateSelect(low, bits(o.type, range.least_bits), converted));
}

Value* helper_to_integer(Operands& o, Value* value, bool is_signed) {
  Value* const wide = o.b.CreateFPExt(value, with_element(value->getType(), o.b.getDoubleTy()));
  Value* const in = spill(o.context, wide);
  Value* const out = scratch(o.context, o.type);
  call_helper(o.context, is_signed ? "quern_cpu_f64_to_s64" : "quern_cpu_f64_to_u64", o.b.getVoidTy(),
              {out, in}, Touches::arguments_only);
  Value* const result = o.b.CreateAlignedLoad(o.type, out, llvm::Align(64));
  release(o.context, {in, out});
  return result;
}

/// Converts a number; the caller handles NaN.
Value* number_to_integer(Operands& o, Value* value, bool is_signed) {
  const unsigned width = width_of(o.type);
  if (o.is_vector() && width == 64 && o.isa() != Isa::avx512) return helper_to_integer(o, value, is_signed);
  const Range range = range_of(width, is_signed);
  const bool exact_limits = width < 32 || (width == 32 && value->getType()->getScalarType()->isDoubleTy());
  return exact_limits ? clamped_to_integer(o, value, range, is_signed)
                      : replaced_to_integer(o, value, range, is_signed);
}

/// The processor's own conversion of vectors of floats to words. Unlike LLVM's it is defined for all numbers:
/// those out of range and NaN give 2^31 if the words are signed, 2^32 - 1 otherwise.
Value* convert_words(Operands& o, Value* value, bool is_signed) {
  constexpr std::uint64_t kCurrentRounding = 4;  // truncates in any case
  const bool wide = o.isa() == Isa::avx512;
  const unsigned lanes = wide ? 16 : 8;
  llvm::Type* const words = llvm::FixedVectorType::get(o.b.getInt32Ty(), lanes);
  const auto which =
      is_signed ? Intrinsic::x86_avx512_mask_cvttps2dq_512 : Intrinsic::x86_avx512_mask_cvttps2udq_512;
  std::vector<Value*> parts;
  for (unsigned first = 0; first < kWarpSize; first += lanes) {
    Value* const part = slice(o.context, value, first, lanes);
    llvm::CallInst* const call =
        wide ? o.b.CreateIntrinsic(which, {},
                                   {part, llvm::Constant::getNullValue(words), o.b.getInt16(0xffff),
                                    o.b.getInt32(kCurrentRounding)})
             : o.b.CreateIntrinsic(Intrinsic::x86_avx_cvtt_ps2dq_256, {}, {part});
    call->getCalledFunction()->addFnAttr(llvm::Attribute::Speculatable);  // leaves loops over the warps
    parts.push_back(call);
  }
  return concat(o.context, parts);
}

/// Float to a word: NaN gives 0, as negative numbers do if the word is unsigned.
Value* float_to_word(Operands& o, Value* value, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  const Range range = range_of(width_of(o.type), is_signed);
  const auto limit = [&](double number) { return real(value->getType(), number); };
  const bool native = o.is_vector() && (is_signed ? o.isa() != Isa::baseline : o.isa() == Isa::avx512);
  if (!is_signed)  // one instruction
    value = b.CreateSelect(b.CreateFCmpOGT(value, limit(0.0)), value, limit(0.0));
  Value* result = native      ? convert_words(o, value, is_signed)
                  : is_signed ? b.CreateFreeze(b.CreateFPToSI(value, o.type))
                              : b.CreateFreeze(b.CreateFPToUI(value, o.type));
  const auto replace = [&](Value* condition, std::uint64_t number) {
    result = b.CreateSelect(condition, bits(o.type, number), result);
  };
  if (is_signed && !native) replace(b.CreateFCmpOLT(value, limit(range.least)), range.least_bits);
  if (is_signed) replace(b.CreateFCmpUNO(value, value), 0);
  if (is_signed || !native) replace(b.CreateFCmpOGE(value, limit(range.beyond)), range.greatest_bits);
  return result;
}

template <bool is_signed>
Value* to_integer(Operands& o) {
  Value* value = real_source(o);
  if (o.inst.attr.rounding != ir::Rounding::rz) value = round_to_integral(o, value, o.inst.attr.rounding);
  if (width_of(o.type) == 32 && value->getType()->getScalarType()->isFloatTy())
    return float_to_word(o, value, is_signed);
  Value* const result = number_to_integer(o, value, is_signed);
  return o.b.CreateSelect(o.b.CreateFCmpUNO(value, value), bits(o.type, nan_result(o, width_of(o.type))),
                          result);
}

// --- integer to floating point

Value* helper_from_integer(Operands& o, llvm::Type* to, bool is_signed, ir::Rounding rounding) {
  llvm::Type* const wide = with_element(o[0]->getType(), o.b.getInt64Ty());
  Value* const in = spill(o.context, is_signed ? o.b.CreateSExt(o[0], wide) : o.b.CreateZExt(o[0], wide));
  Value* const out = scratch(o.context, to);
  const bool is_float = to->getScalarType()->isFloatTy();
  call_helper(o.context, is_float ? "quern_cpu_int_to_f32" : "quern_cpu_int_to_f64", o.b.getVoidTy(),
              {o.b.getInt32(is_signed), o.b.getInt32(static_cast<std::uint32_t>(rounding)),
               o.b.getInt32(o.is_vector() ? kWarpSize : 1), out, in},
              Touches::arguments_only);
  Value* const result = o.b.CreateAlignedLoad(to, out, llvm::Align(64));
  release(o.context, {in, out});
  return result;
}

Value* widened_to_words(Operands& o, bool is_signed) {
  llvm::Type* const words = with_element(o[0]->getType(), o.b.getInt32Ty());
  return is_signed ? o.b.CreateSExt(o[0], words) : o.b.CreateZExt(o[0], words);
}

template <bool is_signed>
Value* from_integer(Operands& o) {
  const ir::Type to = o.inst.type;
  const unsigned width = width_of(o[0]->getType());
  llvm::Type* const target = is_narrow(to) ? with_element(o.type, o.b.getFloatTy()) : o.type;
  const bool exact = width <= (target->getScalarType()->isFloatTy() ? 16u : 32u);
  const bool inline_wide = width < 64 || !o.is_vector() || o.isa() == Isa::avx512;
  const bool plain = inline_wide && (exact || o.inst.attr.rounding == ir::Rounding::rn);
  Value* value = nullptr;
  if (!plain)
    value = helper_from_integer(o, target, is_signed, o.inst.attr.rounding);
  else if (o.is_vector() && width < 32)  // as LLVM does later, when it sees less of where they come from
    value = o.b.CreateSIToFP(widened_to_words(o, is_signed), target);
  else
    value = is_signed ? o.b.CreateSIToFP(o[0], target) : o.b.CreateUIToFP(o[0], target);
  // Float represents every integer below 2^24, and f16 ends at 2^16, so no double rounding occurs.
  return is_narrow(to) ? narrow_from_float(o, value, to, o.inst.attr.rounding) : value;
}

// --- floating point to floating point

Value* clamp(Operands& o, Value* value) {
  if (o.inst.attr.relu) value = clamp_negative(o, value);
  return o.inst.attr.sat ? saturate(o, value) : value;
}

Value* double_to_float(Operands& o, Value* value, ir::Rounding rounding) {
  Value* const nearest = o.b.CreateFPTrunc(value, with_element(o.type, o.b.getFloatTy()));
  if (rounding == ir::Rounding::rn) return nearest;
  Value* const back = o.b.CreateFPExt(nearest, value->getType());
  return redirect(o, nearest, rounding, o.b.CreateFCmpOGT(back, value), o.b.CreateFCmpOLT(back, value));
}

/// Converts float or double to the result's format.
Value* to_format(Operands& o, Value* value, ir::Rounding rounding) {
  const bool is_double = value->getType()->getScalarType()->isDoubleTy();
  if (o.inst.type == ir::Type::f64) return is_double ? value : o.b.CreateFPExt(value, o.type);
  if (o.inst.type == ir::Type::f32) return is_double ? double_to_float(o, value, rounding) : value;
  Value* const single = is_double ? narrow_to_odd_float(o, value) : value;
  Value* const narrow = narrow_from_float(o, single, o.inst.type, rounding);
  return o.inst.type == ir::Type::f16 ? with_canonical_nan(o, narrow) : narrow;
}

Value* convert_real(Operands& o) {
  const bool integral = (o.inst.imm & 1) != 0;
  Value* value = real_source(o);
  if (integral) value = round_to_integral(o, value, o.inst.attr.rounding);
  // Clamping before or after the rounding gives the same result, since 0 and 1 are exact.
  value = to_format(o, clamp(o, value), integral ? ir::Rounding::rn : o.inst.attr.rounding);
  return o.inst.attr.ftz && o.inst.type == ir::Type::f32 ? flush_subnormals(o, value) : value;
}

// --- integer narrowing with clamp

template <bool from_signed>
Value* saturate_integer(Operands& o) {
  llvm::IRBuilder<>& b = o.b;
  const unsigned to = width_of(o.type);
  const unsigned from = width_of(o[0]->getType());
  const auto extend = from_signed ? llvm::Instruction::SExt : llvm::Instruction::ZExt;
  Value* value = from < to ? b.CreateCast(extend, o[0], o.type) : o[0];
  llvm::Type* const type = value->getType();
  const bool to_signed = o.inst.attr.is_signed;
  const std::uint64_t top = std::uint64_t{1} << (to - 1);
  // The greatest and least results, as numbers of the source's width. A bound that the source cannot exceed
  // is omitted.
  const std::uint64_t greatest = to_signed ? top - 1 : top - 1 + top;
  const bool can_exceed = from > to || (from == to && !from_signed && to_signed);
  if (from_signed && !to_signed) value = b.CreateBinaryIntrinsic(Intrinsic::smax, value, bits(type, 0));
  if (from_signed && to_signed && from > to)
    value = b.CreateBinaryIntrinsic(Intrinsic::smax, value,
                                    llvm::ConstantInt::getSigned(type, -static_cast<std::int64_t>(top)));
  if (can_exceed)
    value =
        b.CreateBinaryIntrinsic(from_signed ? Intrinsic::smin : Intrinsic::umin, value, bits(type, greatest));
  return b.CreateTrunc(value, o.type);
}

bool accepts_real(const ir::Inst& inst) { return inst.attr.rounding != ir::Rounding::rna; }
/// bf16 from integers exists from sm_90 on.
bool accepts_from_integer(const ir::Inst& inst) { return accepts_real(inst) && inst.type != ir::Type::bf16; }

constexpr Row kRows[] = {
    {ir::Op::trunc, truncate},
    {ir::Op::zext, zero_extend},
    {ir::Op::sext, sign_extend},
    {ir::Op::bitcast, bit_cast},
    {ir::Op::f_to_s, to_integer<true>, nullptr, accepts_real},
    {ir::Op::f_to_u, to_integer<false>, nullptr, accepts_real},
    {ir::Op::s_to_f, from_integer<true>, nullptr, accepts_from_integer},
    {ir::Op::u_to_f, from_integer<false>, nullptr, accepts_from_integer},
    {ir::Op::f_to_f, convert_real, nullptr, accepts_real},
    {ir::Op::saturate_s, saturate_integer<true>},
    {ir::Op::saturate_u, saturate_integer<false>},
};

}  // namespace

std::span<const Row> convert_rows() { return kRows; }

}  // namespace quern::cpu::emit
