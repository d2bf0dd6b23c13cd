// SPDX-License-Identifier: Apache-2.0
// Lowers "cvt" for formats of 8, 6 and 4 bits (.e4m3x2, .e2m3x2, .e2m1x2, .ue8m0x2, ...), .tf32, .rs, and
// .satfinite, as sequences of simpler operations.
#include "cpu/lower/instructions/narrow.hpp"

#include <array>

#include "cpu/lower/instructions/floating.hpp"

namespace quern::cpu::lower {

using In = const ptx::Instruction&;
using ir::Icmp;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

namespace {

/// A format with a sign, an exponent and `fraction` bits, as matrix instructions use.
struct Format {
  std::uint32_t bits;
  std::uint32_t fraction;
  std::uint32_t bias;
  std::uint32_t greatest;  ///< largest finite number
  std::uint32_t nan;       ///< NaN; in formats without NaN the largest number, which replaces it
};
constexpr Format kE4m3{8, 3, 7, 0x7e, 0x7f};
constexpr Format kE5m2{8, 2, 15, 0x7b, 0x7f};
constexpr Format kE2m3{6, 3, 1, 0x1f, 0x1f};
constexpr Format kE3m2{6, 2, 3, 0x1f, 0x1f};
constexpr Format kE2m1{4, 1, 1, 0x7, 0x7};
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kMagnitude = 0x7fffffff;

struct FormatRow {
  ptx::Type two;
  ptx::Type four;
  const Format* format;
};
constexpr FormatRow kFormats[] = {{ptx::Type::e4m3x2, ptx::Type::e4m3x4, &kE4m3},
                                  {ptx::Type::e5m2x2, ptx::Type::e5m2x4, &kE5m2},
                                  {ptx::Type::e2m3x2, ptx::Type::e2m3x4, &kE2m3},
                                  {ptx::Type::e3m2x2, ptx::Type::e3m2x4, &kE3m2},
                                  {ptx::Type::e2m1x2, ptx::Type::e2m1x4, &kE2m1}};

const Format* format_of(ptx::Type type) {
  for (const FormatRow& row : kFormats)
    if (row.two == type || row.four == type) return row.format;
  return nullptr;
}
/// The bits that an element takes in a vector; elements of six bits take eight.
std::uint32_t element_bits(const Format& format) { return format.bits == 4 ? 4 : 8; }

/// Short names for 32-bit arithmetic.
struct Words {
  Translator& t;
  Value number(std::uint64_t bits) const { return t.constant(Type::i32, bits); }
  Value apply(Op op, Value a, Value b) const { return t.emit(op, Type::i32, {a, b}); }
  Value shift(Op op, Value a, std::uint32_t by) const { return apply(op, a, number(by)); }
  Value as_float(Value bits) const { return t.as(bits, Type::f32); }
};

/// Drops the low `bits` bits of a magnitude, rounding to nearest, ties to even.
Value round_off(const Words& w, Value magnitude, std::uint32_t bits) {
  const Value odd = w.apply(Op::and_, w.shift(Op::lshr, magnitude, bits), w.number(1));
  const Value half = w.apply(Op::iadd, w.number((1u << (bits - 1)) - 1), odd);
  return w.shift(Op::lshr, w.apply(Op::iadd, magnitude, half), bits);
}

/// `count` random bits for .rs, in the low bits of a word.
struct RandomBits {
  Value word = ir::kNone;
  std::uint32_t count = 0;
};

/// "Stochastic rounding": drops the low `bits` bits of a magnitude. The random bits are added to the upper
/// end of the dropped bits, and the carry of that sum is added to the result.
Value round_at_random(const Words& w, Value magnitude, std::uint32_t bits, const RandomBits& random) {
  const Value added = w.shift(Op::shl, random.word, bits - random.count);
  return w.shift(Op::lshr, w.apply(Op::iadd, magnitude, added), bits);
}

/// Converts the magnitude of a float that is below the format's least normal number, with stochastic
/// rounding. Uses 64 bits, so that no bit is lost that could cause a carry.
Value subnormal_at_random(const Words& w, Value magnitude, const Format& format, const RandomBits& random) {
  constexpr std::uint32_t kMost = 63;
  Translator& t = w.t;
  const Value exponent = w.apply(Op::umax, w.shift(Op::lshr, magnitude, 23), w.number(1));
  const Value is_normal = t.compare(Icmp::uge, magnitude, w.number(0x800000));
  const Value significand = w.apply(Op::or_, w.apply(Op::and_, magnitude, w.number(0x7fffff)),
                                    t.select(is_normal, w.number(0x800000), w.number(0)));
  const std::uint32_t sum = 23 - format.fraction + 127 + 1 - format.bias;
  const Value dropped = w.apply(Op::smin, w.apply(Op::isub, w.number(sum), exponent), w.number(kMost));
  const Value places = w.apply(Op::isub, dropped, w.number(random.count));
  const Value added = t.emit(Op::shl, Type::i64, {t.resize(random.word, Type::i64, false), places});
  const Value total = t.emit(Op::iadd, Type::i64, {t.resize(significand, Type::i64, false), added});
  return t.resize(t.emit(Op::lshr, Type::i64, {total, dropped}), Type::i32, false);
}

/// Converts a float's bits to the format, rounding to nearest even or stochastically, and clamps to the
/// largest number of the format.
Value to_format(const Words& w, Value bits, const Format& format, bool relu, const RandomBits& random) {
  Translator& t = w.t;
  const bool at_random = random.word != ir::kNone;
  const Value magnitude = w.apply(Op::and_, bits, w.number(kMagnitude));
  const Value sign = w.shift(Op::lshr, bits, 31);
  // For normal results, changes the bias of the exponent and truncates the fraction.
  const std::uint32_t rebias = (127 - format.bias) << 23;
  const Value shifted = w.apply(Op::isub, magnitude, w.number(rebias));
  const Value normal = at_random ? round_at_random(w, shifted, 23 - format.fraction, random)
                                 : round_off(w, shifted, 23 - format.fraction);
  // For results below the least normal number, adds the magnitude to a number whose lowest bit is the lowest
  // bit of the format. The addition rounds at that bit.
  Value subnormal = ir::kNone;
  if (at_random) {
    subnormal = subnormal_at_random(w, magnitude, format, random);
  } else {
    const std::uint32_t aligner = (127 + 24 - format.bias - format.fraction) << 23;
    const Value sum = t.emit(Op::fadd, Type::f32, {w.as_float(magnitude), w.as_float(w.number(aligner))});
    subnormal = w.apply(Op::isub, t.as(sum, Type::i32), w.number(aligner));
  }
  const Value least_normal = w.number((127 + 1 - format.bias) << 23);
  Value result = t.select(t.compare(Icmp::ult, magnitude, least_normal), subnormal, normal);
  result = w.apply(Op::umin, result, w.number(format.greatest));
  result = relu ? t.select(t.compare(Icmp::ne, sign, w.number(0)), w.number(0), result)
                : w.apply(Op::or_, result, w.shift(Op::shl, sign, format.bits - 1));
  return t.select(t.compare(Icmp::ugt, magnitude, w.number(kInfinity)), w.number(format.nan), result);
}

/// Converts an element (the low bits of `word`) to f16 exactly; NaN becomes 0x7fff.
Value to_half(const Words& w, Value word, const Format& format, bool relu) {
  Translator& t = w.t;
  const std::uint32_t sign_bit = 1u << (format.bits - 1);
  const Value magnitude = w.apply(Op::and_, word, w.number(sign_bit - 1));
  const Value sign = w.shift(Op::shl, w.apply(Op::and_, word, w.number(sign_bit)), 16 - format.bits);
  Value half = w.shift(Op::shl, magnitude, 8);
  if (&format != &kE5m2) {
    // Interpreted as a float, the number is too small by the difference of the biases.
    const Value small = w.as_float(w.shift(Op::shl, magnitude, 23 - format.fraction));
    const Value scale = w.as_float(w.number((127 + 127 - format.bias) << 23));
    const Value exact = t.emit(Op::fmul, Type::f32, {small, scale});
    half = t.resize(t.emit(Op::f_to_f, Type::f16, {exact}), Type::i32, false);
  }
  half = relu ? t.select(t.compare(Icmp::ne, sign, w.number(0)), w.number(0), half)
              : w.apply(Op::or_, half, sign);
  if (format.bits < 8) return t.resize(half, Type::i16, false);  // these formats have no NaN
  const std::uint32_t infinity =
      &format == &kE4m3 ? 0x7e : 0x7c;  // e4m3 has no infinity: 0x7e is its largest number
  const Value is_nan = t.compare(Icmp::ugt, magnitude, w.number(infinity));
  return t.resize(t.select(is_nan, w.number(0x7fff), half), Type::i16, false);
}

/// Converts a float's bits to the exponent .ue8m0, which has neither a sign nor a fraction. .rp rounds
/// numbers between two powers of two up. 2^-127 is the least result.
Value to_power(const Words& w, Value bits, bool up, bool finite) {
  Translator& t = w.t;
  const Value magnitude = w.apply(Op::and_, bits, w.number(kMagnitude));
  Value power = w.shift(Op::lshr, magnitude, 23);
  if (up) {
    const Value between = t.compare(Icmp::ne, w.apply(Op::and_, magnitude, w.number(0x7fffff)), w.number(0));
    const Value above = t.compare(Icmp::ugt, magnitude, w.number(0x400000));
    const Value next = t.emit(Op::and_, Type::i1, {between, above});
    power = w.apply(Op::iadd, power, t.select(next, w.number(1), w.number(0)));
  }
  power = w.apply(Op::umin, power, w.number(finite ? 0xfe : 0xff));
  return t.select(t.compare(Icmp::ugt, magnitude, w.number(kInfinity)), w.number(0xff), power);
}

/// Returns the two floats of a packed conversion, the upper one first. The source is two .f32 operands, or
/// the halves of one.
std::array<Value, 2> two_floats(Translator& t, In in) {
  if (in.type(1) == ptx::Type::f32) {
    const Value upper = t.read(in, 1, ptx::Type::f32);
    return {upper, t.read(in, 2, ptx::Type::f32)};
  }
  const Value pair = t.read(in, 1, ptx::Type::b32);
  const Type half = ir_type(half_of(in.type(1)));
  const Value upper = t.emit(Op::f_to_f, Type::f32, {half_of_word(t, pair, half, true)});
  return {upper, t.emit(Op::f_to_f, Type::f32, {half_of_word(t, pair, half, false)})};
}

/// cvt.rs.satfinite.e4m3x4.f32 d, {a, b, e, f}, rbits: two elements share 16 random bits.
void four_at_random(Translator& t, In in, const Format& format) {
  const Words w{t};
  const std::vector<ptx::Operand> sources = t.elements(t.operand(in, 1));
  if (sources.size() != 4) return t.refuse("the vector does not have four elements");
  const Value bits = t.read(in, 2, ptx::Type::b32);
  // For formats of four bits, each pair of elements takes one byte from each half.
  const auto random_of = [&](bool upper) {
    if (format.bits != 4)
      return upper ? w.shift(Op::lshr, bits, 16) : w.apply(Op::and_, bits, w.number(0xffff));
    const Value low = w.shift(Op::lshr, bits, upper ? 8 : 0);
    const Value high = w.apply(Op::and_, w.shift(Op::lshr, bits, upper ? 16 : 8), w.number(0xff00));
    return w.apply(Op::or_, high, w.apply(Op::and_, low, w.number(0xff)));
  };
  const RandomBits random[2] = {{random_of(true), 16}, {random_of(false), 16}};
  Value result = w.number(0);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Value number = t.as(t.read(sources[i], ptx::Type::f32), Type::i32);
    const Value element = to_format(w, number, format, in.has(M::relu), random[i / 2]);
    result = w.apply(Op::or_, w.shift(Op::shl, result, element_bits(format)), element);
  }
  t.write(in, t.resize(result, format.bits == 4 ? Type::i16 : Type::i32, false));
}

}  // namespace

bool is_narrow_vector(ptx::Type type) { return format_of(type) != nullptr; }

void floats_to_narrow(Translator& t, In in) {
  const Words w{t};
  const Format& format = *format_of(in.type(0));
  if (in.has(M::rs)) return four_at_random(t, in, format);
  const auto convert = [&](Value number) {
    return to_format(w, t.as(number, Type::i32), format, in.has(M::relu), {});
  };
  Value upper = ir::kNone;
  Value lower = ir::kNone;
  if (in.type(1) == ptx::Type::f32) {
    upper = convert(t.read(in, 1, ptx::Type::f32));
    lower = convert(t.read(in, 2, ptx::Type::f32));
  } else {
    const Value pair = t.read(in, 1, ptx::Type::b32);
    const auto widen = [&](bool high) {
      return t.emit(Op::f_to_f, Type::f32, {half_of_word(t, pair, Type::f16, high)});
    };
    upper = convert(widen(true));
    lower = convert(widen(false));
  }
  const Value word = w.apply(Op::or_, w.shift(Op::shl, upper, element_bits(format)), lower);
  t.write(in, t.resize(word, format.bits == 4 ? Type::i8 : Type::i16, false));
}

void narrow_to_halves(Translator& t, In in) {
  const Words w{t};
  const Format& format = *format_of(in.type(1));
  const ptx::Type whole = format.bits == 4 ? ptx::Type::b8 : ptx::Type::b16;
  const Value pair = t.resize(t.read(in, 1, whole), Type::i32, false);
  const Value low = to_half(w, pair, format, in.has(M::relu));
  const Value high = to_half(w, w.shift(Op::lshr, pair, element_bits(format)), format, in.has(M::relu));
  t.write(in, word_of_halves(t, low, high));
}

void floats_to_powers(Translator& t, In in) {
  const Words w{t};
  const std::array<Value, 2> numbers = two_floats(t, in);
  Value powers[2];
  for (std::size_t i = 0; i < 2; ++i)
    powers[i] = to_power(w, t.as(numbers[i], Type::i32), in.has(M::rp), in.has(M::satfinite));
  t.write(in, t.resize(w.apply(Op::or_, w.shift(Op::shl, powers[0], 8), powers[1]), Type::i16, false));
}

void powers_to_halves(Translator& t, In in) {
  const Words w{t};
  const Value pair = t.resize(t.read(in, 1, ptx::Type::b16), Type::i32, false);
  const auto widen = [&](Value power) {
    // 2^-127 is half of the least normal number of bf16.
    const Value number = w.apply(Op::umax, w.shift(Op::shl, power, 7), w.number(0x40));
    const Value is_nan = t.compare(Icmp::eq, power, w.number(0xff));
    return t.resize(t.select(is_nan, w.number(0x7fff), number), Type::i16, false);
  };
  const Value low = widen(w.apply(Op::and_, pair, w.number(0xff)));
  t.write(in, word_of_halves(t, low, widen(w.shift(Op::lshr, pair, 8))));
}

// cvt.rs.f16x2.f32 d, a, b, rbits: f16 drops 13 bits and adds 13 random bits, bf16 16.
void floats_to_pair_at_random(Translator& t, In in, ptx::Type half) {
  const Words w{t};
  const bool bf16 = half == ptx::Type::bf16;
  const std::uint32_t infinity = bf16 ? 0x7f80 : 0x7c00;
  const Format format{16, bf16 ? 7u : 10u, bf16 ? 127u : 15u, in.has(M::satfinite) ? infinity - 1 : infinity,
                      0x7fff};
  const std::uint32_t count = 23 - format.fraction;
  const Value bits = t.read(in, 3, ptx::Type::b32);
  const auto convert = [&](std::size_t operand, Value random) {
    const Value number = t.as(t.read(in, operand, ptx::Type::f32), Type::i32);
    const RandomBits some{w.apply(Op::and_, random, w.number((1u << count) - 1)), count};
    return t.resize(to_format(w, number, format, in.has(M::relu), some), Type::i16, false);
  };
  const Value high = convert(1, w.shift(Op::lshr, bits, 16));
  t.write(in, word_of_halves(t, convert(2, bits), high));
}

// cvt.rna.tf32.f32: the result has eleven significant bits; the low 13 bits of the register are zero. .rna
// rounds ties away from zero.
void float_to_tf32(Translator& t, In in) {
  const Words w{t};
  const Value bits = t.as(t.read(in, 1, ptx::Type::f32), Type::i32);
  const Value magnitude = w.apply(Op::and_, bits, w.number(kMagnitude));
  const Value sign = w.apply(Op::and_, bits, w.number(0x80000000));
  Value result = magnitude;
  if (in.has(M::rna)) result = w.apply(Op::iadd, magnitude, w.number(0x1000));
  if (in.has(M::rn)) result = w.shift(Op::shl, round_off(w, magnitude, 13), 13);
  result = w.apply(Op::and_, result, w.number(0xffffe000));
  // An infinity does not change. A number may be rounded to infinity.
  const std::uint32_t limit = in.has(M::satfinite) ? 0x7f7fe000 : kInfinity;
  result = w.apply(Op::umin, result, w.number(limit));
  result = in.has(M::relu) ? t.select(t.compare(Icmp::ne, sign, w.number(0)), w.number(0), result)
                           : w.apply(Op::or_, result, sign);
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
