// SPDX-License-Identifier: Apache-2.0
// "cvt": 8-bit formats (.e4m3x2, .e5m2x2), .tf32, and .satfinite, put together from simpler operations.
#include "cpu/lower/instructions/narrow.hpp"

#include "cpu/lower/instructions/floating.hpp"

namespace quern::cpu::lower {

using In = const ptx::Instruction&;
using ir::Icmp;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

namespace {

/// An 8-bit format: sign, exponent, `fraction` bits. Both are saturated to `greatest`; NaN is 0x7f.
struct Format {
  std::uint32_t fraction;
  std::uint32_t bias;
  std::uint32_t greatest;
};
constexpr Format kE4m3{3, 7, 0x7e};
constexpr Format kE5m2{2, 15, 0x7b};
constexpr std::uint32_t kNan8 = 0x7f;
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kMagnitude = 0x7fffffff;

const Format* format_of(ptx::Type type) {
  return type == ptx::Type::e4m3x2 ? &kE4m3 : type == ptx::Type::e5m2x2 ? &kE5m2 : nullptr;
}

/// 32-bit words in short.
struct Words {
  Translator& t;
  Value number(std::uint64_t bits) const { return t.constant(Type::i32, bits); }
  Value apply(Op op, Value a, Value b) const { return t.emit(op, Type::i32, {a, b}); }
  Value shift(Op op, Value a, std::uint32_t by) const { return apply(op, a, number(by)); }
  Value as_float(Value bits) const { return t.as(bits, Type::f32); }
};

/// Drops the low `bits` bits of a magnitude, to nearest, ties to even.
Value round_off(const Words& w, Value magnitude, std::uint32_t bits) {
  const Value odd = w.apply(Op::and_, w.shift(Op::lshr, magnitude, bits), w.number(1));
  const Value half = w.apply(Op::iadd, w.number((1u << (bits - 1)) - 1), odd);
  return w.shift(Op::lshr, w.apply(Op::iadd, magnitude, half), bits);
}

/// A float's bits -> eight bits, to nearest even, limited to the format's greatest number.
Value to_eight_bits(const Words& w, Value bits, const Format& format, bool relu) {
  Translator& t = w.t;
  const Value magnitude = w.apply(Op::and_, bits, w.number(kMagnitude));
  const Value sign = w.shift(Op::lshr, bits, 31);
  // Normal results: the exponent's bias changes, the fraction is cut.
  const std::uint32_t rebias = (127 - format.bias) << 23;
  const Value normal = round_off(w, w.apply(Op::isub, magnitude, w.number(rebias)), 23 - format.fraction);
  // Below the least normal number: the magnitude is added to a number whose last bit is that of the format,
  // so the sum is rounded at that bit.
  const std::uint32_t aligner = (127 + 24 - format.bias - format.fraction) << 23;
  const Value sum = t.emit(Op::fadd, Type::f32, {w.as_float(magnitude), w.as_float(w.number(aligner))});
  const Value subnormal = w.apply(Op::isub, t.as(sum, Type::i32), w.number(aligner));
  const Value least_normal = w.number((127 + 1 - format.bias) << 23);
  Value result = t.select(t.compare(Icmp::ult, magnitude, least_normal), subnormal, normal);
  result = w.apply(Op::umin, result, w.number(format.greatest));
  result = relu ? t.select(t.compare(Icmp::ne, sign, w.number(0)), w.number(0), result)
                : w.apply(Op::or_, result, w.shift(Op::shl, sign, 7));
  return t.select(t.compare(Icmp::ugt, magnitude, w.number(kInfinity)), w.number(kNan8), result);
}

/// Eight bits (the low ones of `word`) -> f16, exactly; NaN becomes 0x7fff.
Value to_half(const Words& w, Value word, const Format& format, bool relu) {
  Translator& t = w.t;
  const Value magnitude = w.apply(Op::and_, word, w.number(0x7f));
  const Value sign = w.shift(Op::shl, w.apply(Op::and_, word, w.number(0x80)), 8);
  Value half = w.shift(Op::shl, magnitude, 8);
  if (&format == &kE4m3) {
    // As a float the number is too small by the difference of the biases.
    const Value small = w.as_float(w.shift(Op::shl, magnitude, 23 - format.fraction));
    const Value scale = w.as_float(w.number((127 + 127 - format.bias) << 23));
    const Value exact = t.emit(Op::fmul, Type::f32, {small, scale});
    half = t.resize(t.emit(Op::f_to_f, Type::f16, {exact}), Type::i32, false);
  }
  half = relu ? t.select(t.compare(Icmp::ne, sign, w.number(0)), w.number(0), half)
              : w.apply(Op::or_, half, sign);
  const std::uint32_t infinity =
      &format == &kE4m3 ? 0x7e : 0x7c;  // e4m3 has none: 0x7e is its greatest number
  const Value is_nan = t.compare(Icmp::ugt, magnitude, w.number(infinity));
  return t.resize(t.select(is_nan, w.number(0x7fff), half), Type::i16, false);
}

}  // namespace

bool is_eight_bit_pair(ptx::Type type) { return format_of(type) != nullptr; }

void floats_to_eight_bits(Translator& t, In in) {
  const Words w{t};
  const Format& format = *format_of(in.type(0));
  const auto convert = [&](Value number) {
    return to_eight_bits(w, t.as(number, Type::i32), format, in.has(M::relu));
  };
  Value upper = ir::kNone;
  Value lower = ir::kNone;
  if (in.type(1) == ptx::Type::f32) {
    upper = convert(t.read(in, 1, ptx::Type::f32));
    lower = convert(t.read(in, 2, ptx::Type::f32));
  } else if (in.type(1) == ptx::Type::f16x2) {
    const Value pair = t.read(in, 1, ptx::Type::b32);
    const auto widen = [&](bool high) {
      return t.emit(Op::f_to_f, Type::f32, {half_of_word(t, pair, Type::f16, high)});
    };
    upper = convert(widen(true));
    lower = convert(widen(false));
  } else {
    return t.refuse("only .f32 and .f16x2 become 8-bit numbers on targets up to sm_89");
  }
  const Value word = w.apply(Op::or_, w.shift(Op::shl, upper, 8), lower);
  t.write(in, t.resize(word, Type::i16, false));
}

void eight_bits_to_halves(Translator& t, In in) {
  const Words w{t};
  const Format& format = *format_of(in.type(1));
  const Value pair = t.resize(t.read(in, 1, ptx::Type::b16), Type::i32, false);
  const Value low = to_half(w, pair, format, in.has(M::relu));
  const Value high = to_half(w, w.shift(Op::lshr, pair, 8), format, in.has(M::relu));
  t.write(in, word_of_halves(t, low, high));
}

// cvt.rna.tf32.f32: eleven significant bits, ties away from zero; the low 13 bits of the register are zero.
void float_to_tf32(Translator& t, In in) {
  if (!in.has(M::rna)) return t.refuse("this rounding to .tf32 needs a target above sm_89");
  const Words w{t};
  const Value bits = t.as(t.read(in, 1, ptx::Type::f32), Type::i32);
  const Value magnitude = w.apply(Op::and_, bits, w.number(kMagnitude));
  const Value sign = w.apply(Op::and_, bits, w.number(0x80000000));
  const Value away = w.apply(Op::iadd, magnitude, w.number(0x1000));
  Value result = w.apply(Op::and_, away, w.number(0xffffe000));
  // An infinity stays; a number that rounds to one may.
  const std::uint32_t limit = in.has(M::satfinite) ? 0x7f7fe000 : kInfinity;
  result = w.apply(Op::or_, w.apply(Op::umin, result, w.number(limit)), sign);
  const Value is_nan = t.compare(Icmp::ugt, magnitude, w.number(kInfinity));
  t.write(in, t.select(is_nan, w.number(kMagnitude), result));
}

Value keep_finite(Translator& t, Value number) {
  const Type type = t.type_of(number);
  const std::uint64_t infinity = type == Type::f16 ? 0x7c00 : 0x7f80;
  const Value bits = t.as(number, Type::i16);
  const Value magnitude = t.emit(Op::and_, Type::i16, {bits, t.constant(Type::i16, 0x7fff)});
  const Value greatest = t.emit(Op::isub, Type::i16, {bits, t.constant(Type::i16, 1)});
  const Value infinite = t.compare(Icmp::eq, magnitude, t.constant(Type::i16, infinity));
  return t.as(t.select(infinite, greatest, bits), type);
}

}  // namespace quern::cpu::lower
