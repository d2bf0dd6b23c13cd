// SPDX-License-Identifier: Apache-2.0
// "Half Precision Floating-Point Instructions", their comparisons, and every conversion to or from a 16-bit,
// an 8-bit or the .tf32 format. Values are exact in quadruple precision, and are rounded once by counting the
// numbers of the format.
#include <algorithm>

#include "handlers.hpp"

namespace quern::oracle {
namespace {

__extension__ using Quad = __float128;

/// A binary format with a sign, an exponent and `fraction` bits. `limited`: it has no infinities, and the
/// largest exponent is used for numbers. In a format without NaN, the largest number replaces it.
struct Format {
  std::string_view name;
  unsigned bits;
  int fraction;
  int bias;
  std::uint64_t nan;       ///< the canonical one
  std::uint64_t greatest;  ///< largest finite number
  bool limited = false;
  bool has_nan = true;
  /// The place of one number among several.
  unsigned place() const { return bits == 6 ? 8 : bits; }
};
constexpr Format kFormats[] = {
    {"f16", 16, 10, 15, 0x7fff, 0x7bff},        {"bf16", 16, 7, 127, 0x7fff, 0x7f7f},
    {"e4m3", 8, 3, 7, 0x7f, 0x7e, true},        {"e5m2", 8, 2, 15, 0x7f, 0x7b},
    {"tf32", 19, 10, 127, 0x3ffff, 0x3fbff},    {"e2m3", 6, 3, 1, 0x1f, 0x1f, true, false},
    {"e3m2", 6, 2, 3, 0x1f, 0x1f, true, false}, {"e2m1", 4, 1, 1, 0x7, 0x7, true, false},
};

const Format* format_named(std::string_view name) {
  for (const Format& format : kFormats)
    if (format.name == name) return &format;
  return nullptr;
}

/// A type word of an instruction on these formats.
struct Word {
  const Format* format = nullptr;  ///< null: a type that the oracle handles elsewhere
  Type type{};
  bool pair = false;
  bool four = false;
};

std::vector<Word> types_of(const Instruction& i) {
  std::vector<Word> result;
  for (const std::string& word : i.words) {
    const bool pair = word.ends_with("x2"), four = word.ends_with("x4");
    const std::string_view single = std::string_view(word).substr(0, word.size() - (pair || four ? 2 : 0));
    if (const Format* format = format_named(single)) {
      result.push_back({format, {}, pair, four});
    } else if (word.size() > 1 && std::string_view("usbf").find(word[0]) != std::string_view::npos &&
               std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      result.push_back({nullptr, {word[0], static_cast<unsigned>(std::stoul(word.substr(1)))}, false, false});
    }
  }
  return result;
}

/// An extended real number, exact except for `beyond`: the sign of a remainder that only matters for ties.
struct Number {
  Quad value = 0;
  bool negative = false;  ///< also of a zero
  bool nan = false;
  bool infinite = false;
  int beyond = 0;
};

Quad power_of_two(int exponent) {
  Quad result = 1;
  for (int k = 0; k < std::abs(exponent); ++k) result *= exponent < 0 ? Quad{0.5} : Quad{2};
  return result;
}

Number from_double(double value) {
  return {Quad{value}, std::signbit(value), std::isnan(value), std::isinf(value)};
}

Number decode(const Format& format, std::uint64_t bits) {
  const std::uint64_t magnitude = bits & mask_of(format.bits - 1);
  const auto exponent = static_cast<int>(magnitude >> format.fraction);
  const std::uint64_t fraction = magnitude & mask_of(static_cast<unsigned>(format.fraction));
  Number result;
  result.negative = (bits >> (format.bits - 1) & 1) != 0;
  const int top = (1 << (format.bits - 1 - static_cast<unsigned>(format.fraction))) - 1;
  if (format.limited) {
    result.nan = format.has_nan && magnitude == format.nan;
  } else if (exponent == top) {
    result.nan = fraction != 0;
    result.infinite = fraction == 0;
  }
  const std::uint64_t significand = exponent == 0 ? fraction : fraction | std::uint64_t{1} << format.fraction;
  result.value =
      static_cast<Quad>(significand) * power_of_two(std::max(exponent, 1) - format.bias - format.fraction);
  if (result.negative) result.value = -result.value;
  return result;
}

enum class Mode { nearest, zero, down, up, away, random };

Mode mode_of(const Instruction& i) {
  if (i.has("rz") || i.has("rzi")) return Mode::zero;
  if (i.has("rm") || i.has("rmi")) return Mode::down;
  if (i.has("rp") || i.has("rpi")) return Mode::up;
  return i.has("rna") ? Mode::away : Mode::nearest;
}

/// True if the magnitude `whole` + `rest` (+ beyond) is rounded to whole + 1. With "stochastic rounding",
/// this is so if the sum of the dropped bits and the random bits, a number below 1, has a carry.
bool rounds_up(Mode mode, bool negative, std::uint64_t whole, Quad rest, int beyond, Quad random) {
  switch (mode) {
    case Mode::random:
      return rest + random >= 1;
    case Mode::zero:
      return false;
    case Mode::down:
      return negative && (rest != 0 || beyond > 0);
    case Mode::up:
      return !negative && (rest != 0 || beyond > 0);
    case Mode::away:
      return rest > Quad{0.5} || (rest == Quad{0.5} && beyond >= 0);
    case Mode::nearest:
      break;
  }
  return rest > Quad{0.5} || (rest == Quad{0.5} && (beyond > 0 || (beyond == 0 && (whole & 1) != 0)));
}

std::uint64_t encode(const Format& format, const Number& number, Mode mode, Quad random = 0) {
  const std::uint64_t sign = number.negative ? std::uint64_t{1} << (format.bits - 1) : 0;
  const std::uint64_t beyond_greatest = format.limited ? format.nan : format.greatest + 1;
  if (number.nan) return format.nan;
  if (number.infinite) return sign | beyond_greatest;
  const Quad size = number.value < 0 ? -number.value : number.value;
  int beyond = number.negative ? -number.beyond : number.beyond;
  if (size == 0) return sign;
  int exponent = 1 - format.bias;
  Quad unit = power_of_two(exponent);
  while (size >= unit * 2) unit *= 2, ++exponent;
  // An exact power of two, just missed from above, is in the binade below.
  if (size == unit && beyond < 0 && exponent > 1 - format.bias) unit /= 2, --exponent;
  Quad scaled = size / unit * power_of_two(format.fraction);
  auto whole = static_cast<std::uint64_t>(scaled);
  Quad rest = scaled - static_cast<Quad>(whole);
  if (rest == 0 && beyond < 0) {
    // A little less than a number of the format.
    --whole;
    rest = Quad{0.75};
    beyond = 0;
  }
  if (rest == 0 && beyond > 0) rest = Quad{0.25};
  const std::uint64_t start = static_cast<std::uint64_t>(exponent - (1 - format.bias)) << format.fraction;
  std::uint64_t magnitude =
      start + whole + (rounds_up(mode, number.negative, whole, rest, beyond, random) ? 1 : 0);
  if (magnitude > format.greatest) {
    const bool stays = mode == Mode::zero || (mode == Mode::down && !number.negative) ||
                       (mode == Mode::up && number.negative);
    magnitude = stays ? format.greatest : beyond_greatest;
  }
  return sign | magnitude;
}

bool is_subnormal(const Format& format, std::uint64_t bits) {
  const std::uint64_t magnitude = bits & mask_of(format.bits - 1);
  return magnitude != 0 && magnitude >> format.fraction == 0;
}

std::uint64_t flush_bits(const Format& format, std::uint64_t bits) {
  return is_subnormal(format, bits) ? bits & ~mask_of(format.bits - 1) & mask_of(format.bits) : bits;
}

/// Applies .sat and .relu to a result in the format.
std::uint64_t limit(const Instruction& i, const Format& format, std::uint64_t bits) {
  const Number number = decode(format, bits);
  const std::uint64_t one = static_cast<std::uint64_t>(format.bias) << format.fraction;
  if (i.has("sat")) {
    if (number.nan || number.negative) return 0;
    if (number.infinite || number.value > 1) return one;
  }
  if (i.has("relu")) {
    if (number.nan) return format.nan;
    if (number.negative) return 0;
  }
  return bits;
}

/// Also applies .ftz, which in conversions affects only the f32 side.
std::uint64_t finish(const Instruction& i, const Format& format, std::uint64_t bits) {
  bits = limit(i, format, bits);
  return i.has("ftz") ? flush_bits(format, bits) : bits;
}

/// a * b + c, rounded once.
Number fused(const Number& a, const Number& b, const Number& c) {
  const auto plain = [](const Number& n) {
    return n.nan        ? NAN
           : n.infinite ? (n.negative ? -INFINITY : INFINITY)
                        : std::copysign(static_cast<double>(n.value), n.negative ? -1.0 : 1.0);
  };
  // Doubles settle NaN, infinity and the sign of zero.
  const double rough = std::fma(plain(a), plain(b), plain(c));
  if (std::isnan(rough) || a.infinite || b.infinite || c.infinite) return from_double(rough);
  const Quad product = a.value * b.value;
  const Quad sum = product + c.value;
  // The rounding error of the addition (D. Knuth, TwoSum).
  const Quad part = sum - product;
  const Quad lost = (product - (sum - part)) + (c.value - part);
  Number result{sum, sum < 0, false, false, lost > 0 ? 1 : lost < 0 ? -1 : 0};
  if (sum == 0) result.negative = std::signbit(rough);
  return result;
}

int order(const Number& a, const Number& b) {
  const auto compare = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  const auto weight = [](const Number& n) { return n.infinite ? (n.negative ? -1 : 1) : 0; };
  if (weight(a) != 0 || weight(b) != 0) return compare(weight(a), weight(b));
  return compare(a.value, b.value);
}

std::uint64_t lesser_or_greater(const Instruction& i, const Format& format, std::uint64_t x,
                                std::uint64_t y) {
  const std::uint64_t sign_bit = std::uint64_t{1} << (format.bits - 1);
  const std::uint64_t sign = (x ^ y) & sign_bit;
  if (i.has("xorsign")) x &= ~sign_bit, y &= ~sign_bit;
  const Number a = decode(format, x), b = decode(format, y);
  std::uint64_t result = 0;
  if (a.nan || b.nan) {
    result = (a.nan && b.nan) || i.has("NaN") ? format.nan : a.nan ? y : x;
  } else {
    const int by_value = order(a, b);
    const bool first = by_value != 0 ? by_value < 0 : a.negative;  // -0 is below +0
    result = first == (i.opcode == "min") ? x : y;
  }
  return i.has("xorsign") ? (result & ~sign_bit) | sign : result;
}

std::uint64_t compute(const Instruction& i, const Format& format, const std::vector<std::uint64_t>& in) {
  std::vector<std::uint64_t> bits = in;
  if (i.has("ftz"))
    for (std::uint64_t& operand : bits) operand = flush_bits(format, operand);
  const std::uint64_t sign_bit = std::uint64_t{1} << (format.bits - 1);
  if (i.opcode == "neg" || i.opcode == "abs") {
    if (decode(format, bits[0]).nan) return format.nan;
    return i.opcode == "neg" ? bits[0] ^ sign_bit : bits[0] & ~sign_bit;
  }
  if (i.opcode == "min" || i.opcode == "max") return lesser_or_greater(i, format, bits[0], bits[1]);
  const Number a = decode(format, bits[0]);
  Number b = decode(format, bits[1]);
  const Number one = from_double(1);
  Number result;
  if (i.opcode == "fma") {
    result = fused(a, b, decode(format, bits[2]));
  } else if (i.opcode == "mul") {
    // Adds a zero that preserves the sign of the product.
    result = fused(a, b, from_double(a.negative != b.negative ? -0.0 : 0.0));
  } else {
    if (i.opcode == "sub") b.negative = !b.negative, b.value = -b.value;
    result = fused(a, one, b);
  }
  return finish(i, format, encode(format, result, mode_of(i)));
}

void arithmetic(Thread& t, const Instruction& i) {
  const Word word = types_of(i).at(0);
  const unsigned width = word.pair ? 32 : 16;
  std::uint64_t result = 0;
  for (unsigned shift = 0; shift < width; shift += 16) {
    std::vector<std::uint64_t> operands;
    for (std::size_t k = 1; k < i.operands.size(); ++k)
      operands.push_back(t.get(i.operands[k], {'b', width}) >> shift & 0xffff);
    result |= compute(i, *word.format, operands) << shift;
  }
  t.set(i.operands[0], result);
}

// ---- comparison

bool holds(const Instruction& i, const Number& a, const Number& b) {
  std::string_view op;
  for (const std::string& word : i.words)
    for (const char* known :
         {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"})
      if (op.empty() && word == known) op = known;
  const bool nan = a.nan || b.nan;
  if (op == "num") return !nan;
  if (op == "nan") return nan;
  if (nan) return op.size() == 3;
  const int sign = order(a, b);
  op = op.substr(0, 2);
  if (op == "eq") return sign == 0;
  if (op == "ne") return sign != 0;
  if (op == "lt") return sign < 0;
  if (op == "le") return sign <= 0;
  if (op == "gt") return sign > 0;
  return sign >= 0;
}

bool combined(Thread& t, const Instruction& i, bool value) {
  if (i.operands.size() < 4) return value;
  const bool c = t.get_pred(i.operands[3]);
  return i.has("and") ? value && c : i.has("or") ? value || c : value != c;
}

bool compare_halves(Thread& t, const Instruction& i, const Word& word, unsigned shift) {
  const auto number = [&](std::size_t k) {
    std::uint64_t bits = t.get(i.operands[k], {'b', word.pair ? 32u : 16u}) >> shift & 0xffff;
    if (i.has("ftz")) bits = flush_bits(*word.format, bits);
    return decode(*word.format, bits);
  };
  return holds(i, number(1), number(2));
}

void set_predicates(Thread& t, const Instruction& i) {
  const Word word = types_of(i).at(0);
  const Operand& target = i.operands[0];
  const bool pair = target.kind == Operand::Kind::vector;
  const bool low = compare_halves(t, i, word, 0);
  // For packed types, each half has a predicate. Otherwise the second predicate is the opposite.
  const bool second = word.pair ? compare_halves(t, i, word, 16) : !low;
  const bool first_result = combined(t, i, low), second_result = combined(t, i, second);
  t.set(pair ? target.parts[0] : target, first_result ? 1 : 0);
  if (pair) t.set(target.parts[1], second_result ? 1 : 0);
}

void set_values(Thread& t, const Instruction& i) {
  const std::vector<Word> words = types_of(i);
  const Word& to = words.at(0);
  const Word& from = words.at(1);
  const auto one = [&]() -> std::uint64_t {
    if (to.format != nullptr) return static_cast<std::uint64_t>(to.format->bias) << to.format->fraction;
    if (from.pair) return 0xffff;
    return to.type.is('f', 32) ? 0x3f800000 : mask_of(to.type.bits);
  }();
  std::uint64_t result = 0;
  for (unsigned shift = 0; shift < (from.pair ? 32u : 16u); shift += 16)
    if (combined(t, i, compare_halves(t, i, from, shift))) result |= one << shift;
  t.set(i.operands[0], result);
}

// ---- cvt

Number read_number(Thread& t, const Instruction& i, const Operand& operand, const Word& from,
                   unsigned shift) {
  if (from.format != nullptr) {
    const unsigned width = from.format->place() * (from.pair ? 2 : 1);
    return decode(*from.format, t.get(operand, {'b', width}) >> shift & mask_of(from.format->bits));
  }
  if (from.type.is('f', 64)) return from_double(t.get_f64(operand));
  if (from.type.is('f', 32)) {
    const float value = t.get_f32(operand);
    return from_double(static_cast<double>(i.has("ftz") ? flush(value) : value));
  }
  const std::uint64_t bits = t.get(operand, from.type);
  const std::int64_t number = sign_extend(bits, from.type.bits);
  if (from.type.is_signed()) return {static_cast<Quad>(number), number < 0};
  return {static_cast<Quad>(bits)};
}

bool to_integral(const Instruction& i) {
  return i.has("rni") || i.has("rzi") || i.has("rmi") || i.has("rpi");
}

/// Rounds to an integer.
Number whole(const Number& number, Mode mode) {
  if (number.nan || number.infinite) return number;
  const Quad size = number.value < 0 ? -number.value : number.value;
  if (size >= power_of_two(60)) return number;
  const auto below = static_cast<std::uint64_t>(size);
  const bool up = rounds_up(mode, number.negative, below, size - static_cast<Quad>(below), 0, 0);
  const Quad value = static_cast<Quad>(below + (up ? 1 : 0));
  return {number.negative ? -value : value, number.negative};
}

std::uint64_t to_integer(const Number& number, Type to) {
  if (number.nan) return to.bits == 64 ? std::uint64_t{1} << 63 : 0;
  const std::uint64_t high = mask_of(to.is_signed() ? to.bits - 1 : to.bits);
  const std::uint64_t low = to.is_signed() ? ~high & mask_of(to.bits) : 0;
  if (number.infinite) return number.negative ? low : high;
  if (number.value > static_cast<Quad>(high)) return high;
  const Quad least = to.is_signed() ? -static_cast<Quad>(high) - 1 : Quad{0};
  if (number.value < least) return low;
  const std::uint64_t size = static_cast<std::uint64_t>(number.value < 0 ? -number.value : number.value);
  return (number.value < 0 ? 0 - size : size) & mask_of(to.bits);
}

std::uint64_t narrow(const Instruction& i, const Format& format, const Number& number, Quad random = 0) {
  std::uint64_t bits = encode(format, number, i.has("rs") ? Mode::random : mode_of(i), random);
  const std::uint64_t sign = bits & ~mask_of(format.bits - 1);
  const bool beyond = (bits & mask_of(format.bits - 1)) > format.greatest;
  if (i.has("satfinite") && !number.nan && beyond) bits = sign | format.greatest;
  return limit(i, format, bits);
}

void store_real(Thread& t, const Instruction& i, Type to, const Number& number) {
  const double exact = number.nan ? NAN
                       : number.infinite
                           ? (number.negative ? -INFINITY : INFINITY)
                           : std::copysign(static_cast<double>(number.value), number.negative ? -1.0 : 1.0);
  double value = exact;
  if (i.has("sat")) value = exact > 1 ? 1.0 : exact > 0 ? exact : 0.0;
  // The canonical NaN of f32, widened.
  if (to.bits == 64)
    return t.set(i.operands[0], std::isnan(value) ? 0x7fffffffe0000000u : bits_as<std::uint64_t>(value));
  auto single = static_cast<float>(value);  // exact: it came from a narrower format
  if (i.has("ftz")) single = flush(single);
  t.set(i.operands[0], std::isnan(single) ? 0x7fffffffu : bits_as<std::uint32_t>(single));
}

/// The low `count` bits as a fraction below 1.
Quad fraction_of(std::uint64_t bits, unsigned count) {
  return static_cast<Quad>(bits & mask_of(count)) / power_of_two(static_cast<int>(count));
}

// Converts four numbers, the first one to the top. The first two share 16 random bits, and the last two share
// the others: the halves of the word, or for .e2m1x4 the upper and the lower bytes of both halves.
void convert_four(Thread& t, const Instruction& i) {
  const std::vector<Word> words = types_of(i);
  const Format& format = *words.at(0).format;
  const std::uint64_t bits = t.get(i.operands[2], {'b', 32});
  const bool bytes = format.bits == 4;
  const std::uint64_t upper = bytes ? (bits >> 16 & 0xff00) | (bits >> 8 & 0xff) : bits >> 16;
  const std::uint64_t lower = bytes ? (bits >> 8 & 0xff00) | (bits & 0xff) : bits & 0xffff;
  std::uint64_t result = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    const Number number = read_number(t, i, i.operands[1].parts.at(k), words.at(1), 0);
    result = result << format.place() | narrow(i, format, number, fraction_of(k < 2 ? upper : lower, 16));
  }
  t.set(i.operands[0], result);
}

// .ue8m0: the exponents of powers of two from 2^-127 to 2^127, and 255 for NaN. The sign is ignored. .rz: the
// next power below (or the least one); .rp: above.
void convert_to_powers(Thread& t, const Instruction& i) {
  const std::vector<Word> words = types_of(i);
  const Word& from = words.at(0);
  std::uint64_t result = 0;
  for (const bool upper : {true, false}) {
    const Number number = from.pair ? read_number(t, i, i.operands[1], from, upper ? 16 : 0)
                                    : read_number(t, i, i.operands[upper ? 1 : 2], from, 0);
    std::uint64_t power = 0;
    if (number.nan) {
      power = 255;
    } else if (number.infinite) {
      power = i.has("satfinite") ? 254 : 255;
    } else {
      const Quad size = number.value < 0 ? -number.value : number.value;
      Quad unit = power_of_two(-127);
      while (power < 254 && unit * 2 <= size) unit *= 2, ++power;
      if (i.has("rp") && size > unit) power = power == 254 && i.has("satfinite") ? 254 : power + 1;
    }
    result = result << 8 | power;
  }
  t.set(i.operands[0], result);
}

void convert_from_powers(Thread& t, const Instruction& i) {
  const Format& format = *format_named("bf16");
  const std::uint64_t pair = t.get(i.operands[1], {'b', 16});
  std::uint64_t result = 0;
  for (const unsigned shift : {8u, 0u}) {
    const auto power = static_cast<int>(pair >> shift & 0xff);
    const Number number{power_of_two(power - 127), false, power == 255};
    result = result << 16 | encode(format, number, Mode::nearest);
  }
  t.set(i.operands[0], result);
}

// Converts two numbers to a pair (the first operand is the upper one), a pair to a pair, or one number to
// one.
void convert(Thread& t, const Instruction& i) {
  const std::vector<Word> words = types_of(i);
  const Word& to = words.at(0);
  const Word& from = words.at(1);
  if (to.pair) {
    const unsigned bits = to.format->place();
    const unsigned step = from.pair ? from.format->place() : 0;
    const Number upper = read_number(t, i, i.operands[1], from, step);
    const Number lower = read_number(t, i, i.operands[from.pair ? 1 : 2], from, 0);
    // The random bits for the 13 bits of a float that f16 drops, or the 16 that bf16 drops, for the upper and
    // the lower half.
    const std::uint64_t random = i.has("rs") ? t.get(i.operands[3], {'b', 32}) : 0;
    const unsigned count = 23 - static_cast<unsigned>(to.format->fraction);
    return t.set(i.operands[0], narrow(i, *to.format, upper, fraction_of(random >> 16, count)) << bits |
                                    narrow(i, *to.format, lower, fraction_of(random, count)));
  }
  Number number = read_number(t, i, i.operands[1], from, 0);
  if (to_integral(i)) number = whole(number, mode_of(i));
  if (to.format != nullptr) {
    const std::uint64_t bits = narrow(i, *to.format, number);
    // .tf32 is in the upper bits of its register. Its NaN also sets the lower bits.
    if (to.format->bits == 19) return t.set(i.operands[0], number.nan ? 0x7fffffff : bits << 13);
    return t.set(i.operands[0], bits);
  }
  if (to.type.is_float()) return store_real(t, i, to.type, number);
  std::uint64_t result = to_integer(number, to.type);
  if (to.type.is_signed()) result = static_cast<std::uint64_t>(sign_extend(result, to.type.bits));
  t.set(i.operands[0], result);
}

}  // namespace

std::uint64_t sum_of_f16(std::uint64_t a, std::uint64_t b) {
  const Format& format = *format_named("f16");
  return encode(format, fused(decode(format, a), from_double(1), decode(format, b)), Mode::nearest);
}

namespace {

/// "add", "sub", "fma" with mixed precision: computes in f32; all operands except the last are widened to it.
void arithmetic_on_widened(Thread& t, const Instruction& i) {
  const Word narrow_type = types_of(i).at(1);
  const RoundingScope rounding(i);
  const auto widened = [&](std::size_t k) {
    const Number number = read_number(t, i, i.operands[k], narrow_type, 0);
    return number.nan ? NAN
           : number.infinite
               ? (number.negative ? -INFINITY : INFINITY)
               : std::copysign(static_cast<float>(number.value), number.negative ? -1.0f : 1.0f);
  };
  const volatile float a = widened(1);
  const volatile float b = i.opcode == "fma" ? widened(2) : t.get_f32(i.operands[2]);
  const volatile float c = i.opcode == "fma" ? t.get_f32(i.operands[3]) : 0.0f;
  const volatile float sum = i.opcode == "fma"   ? std::fma(float(a), float(b), float(c))
                             : i.opcode == "add" ? a + b
                                                 : a - b;
  float result = sum;
  if (i.has("sat")) result = result > 1 ? 1.0f : result > 0 ? result : 0.0f;
  t.set(i.operands[0], std::isnan(result) ? 0x7fffffffu : bits_as<std::uint32_t>(result));
}

}  // namespace

Handler find_half_handler(const Instruction& i) {
  if (i.opcode == "cvt" && i.has("ue8m0x2"))
    return i.has("bf16x2") && i.has("rn") ? convert_from_powers : convert_to_powers;
  const std::vector<Word> words = types_of(i);
  const auto narrow_word = [](const Word& word) { return word.format != nullptr; };
  if (std::none_of(words.begin(), words.end(), narrow_word)) return nullptr;
  if (i.has("approx") || i.has("oob")) return nullptr;
  if (words[0].format == nullptr && words[0].type.is('f', 32) && i.opcode != "cvt" &&
      !i.opcode.starts_with("set"))
    return arithmetic_on_widened;
  if (words[0].four) return convert_four;
  if (i.opcode == "setp") return set_predicates;
  // Comparisons of other types with an f16 result are implemented with the comparisons of those types.
  if (i.opcode == "set") return words.at(1).format == nullptr ? nullptr : set_values;
  if (i.opcode == "cvt") return convert;
  for (const char* op : {"add", "sub", "mul", "fma", "neg", "abs", "min", "max"})
    if (i.opcode == op) return arithmetic;
  return nullptr;
}

}  // namespace quern::oracle
