// SPDX-License-Identifier: Apache-2.0
// "Floating Point Instructions" and "Data Movement and Conversion Instructions: cvt". Built with
// -frounding-math: while an instruction runs, the host has its rounding mode.
#include <algorithm>

#include "handlers.hpp"

namespace quern::oracle {
namespace {

template <class T>
T load(Thread& t, const Instruction& i, const Operand& operand) {
  if constexpr (sizeof(T) == 4) {
    const float value = t.get_f32(operand);
    return i.has("ftz") ? flush(value) : value;
  } else {
    static_cast<void>(i);
    return t.get_f64(operand);
  }
}

// f32 results are "the canonical NaN". f64 keeps payloads, but PTX does not say which one. So comparisons of
// f64 with another implementation treat all NaNs as equal.
template <class T>
void finish(Thread& t, const Instruction& i, T value) {
  if (i.has("sat")) value = value > T(1) ? T(1) : value > T(0) ? value : T(0);  // NaN and -0 give +0
  if constexpr (sizeof(T) == 4) {
    if (i.has("ftz")) value = flush(value);
    t.set(i.operands[0], std::isnan(value) ? 0x7fffffffu : bits_as<std::uint32_t>(value));
  } else {
    t.set(i.operands[0], std::isnan(value) ? 0x7fffffffffffffffu : bits_as<std::uint64_t>(value));
  }
}

template <class T>
T minimum(T a, T b, bool smaller, bool nan) {
  if (std::isnan(a) || std::isnan(b)) {
    if (nan || (std::isnan(a) && std::isnan(b))) return std::numeric_limits<T>::quiet_NaN();
    return std::isnan(a) ? b : a;
  }
  if (a == b) return std::signbit(a) == smaller ? a : b;  // -0 is below +0
  return (a < b) == smaller ? a : b;
}

template <class T>
void arithmetic(Thread& t, const Instruction& i) {
  const RoundingScope rounding(i);
  const volatile T a = load<T>(t, i, i.operands[1]);
  const volatile T b = i.operands.size() > 2 ? load<T>(t, i, i.operands[2]) : T(0);
  const volatile T c = i.operands.size() > 3 ? load<T>(t, i, i.operands[3]) : T(0);
  volatile T result = 0;
  const std::string& op = i.opcode;
  if (op == "add")
    result = a + b;
  else if (op == "sub")
    result = a - b;
  else if (op == "mul")
    result = a * b;
  else if (op == "fma" || op == "mad")
    result = std::fma(T(a), T(b), T(c));
  else if (op == "div")
    result = a / b;
  else if (op == "rcp")
    result = T(1) / a;
  else if (op == "sqrt")
    result = std::sqrt(T(a));
  else if (i.has("xorsign"))
    result = std::copysign(std::fabs(minimum<T>(std::fabs(T(a)), std::fabs(T(b)), op == "min", i.has("NaN"))),
                           std::signbit(T(a)) != std::signbit(T(b)) ? T(-1) : T(1));
  else if (op == "min" || op == "max")
    result = minimum<T>(a, b, op == "min", i.has("NaN"));
  finish<T>(t, i, result);
}

// min, max of three f32; with .abs, of their magnitudes.
void least_of_three(Thread& t, const Instruction& i) {
  const auto number = [&](std::size_t k) {
    const float value = load<float>(t, i, i.operands[k]);
    return i.has("abs") ? std::fabs(value) : value;
  };
  const bool smaller = i.opcode == "min", nan = i.has("NaN");
  finish<float>(t, i, minimum(minimum(number(1), number(2), smaller, nan), number(3), smaller, nan));
}

// .f32x2: two numbers in 64 bits.
void arithmetic_on_pairs(Thread& t, const Instruction& i) {
  const RoundingScope rounding(i);
  std::uint64_t result = 0;
  for (const unsigned shift : {0u, 32u}) {
    const auto number = [&](std::size_t k) {
      const auto value = bits_as<float>(static_cast<std::uint32_t>(t.get(i.operands[k], {'b', 64}) >> shift));
      return i.has("ftz") ? flush(value) : value;
    };
    const volatile float a = number(1), b = number(2);
    volatile float value = 0;
    if (i.opcode == "fma")
      value = std::fma(float(a), float(b), number(3));
    else
      value = i.opcode == "add" ? a + b : i.opcode == "sub" ? a - b : a * b;
    const float finished = i.has("ftz") ? flush(value) : float(value);
    const std::uint64_t bits = std::isnan(finished) ? 0x7fffffffu : bits_as<std::uint32_t>(finished);
    result |= bits << shift;
  }
  t.set(i.operands[0], result);
}

// .ftz flushes. (neg.f32 and abs.f32 return the canonical NaN: docs/decisions/0013-nan-bits.md.)
template <class T>
void sign_operation(Thread& t, const Instruction& i) {
  const T a = load<T>(t, i, i.operands[1]);
  finish<T>(t, i, i.opcode == "neg" ? -a : std::fabs(a));
}

// Copies bits: the sign of the first operand and the rest of the second.
void copy_sign(Thread& t, const Instruction& i) {
  const Type type = i.types[0];
  const std::uint64_t rest = mask_of(type.bits - 1);
  t.set(i.operands[0],
        (t.get(i.operands[1], type) & ~rest & mask_of(type.bits)) | (t.get(i.operands[2], type) & rest));
}

template <class T>
void test_property(Thread& t, const Instruction& i) {
  const int kind = std::fpclassify(load<T>(t, i, i.operands[1]));
  bool result = false;  // "positive and negative zero are considered normal numbers"
  if (i.has("finite"))
    result = kind != FP_NAN && kind != FP_INFINITE;
  else if (i.has("infinite"))
    result = kind == FP_INFINITE;
  else if (i.has("number"))
    result = kind != FP_NAN;
  else if (i.has("notanumber"))
    result = kind == FP_NAN;
  else if (i.has("normal"))
    result = kind == FP_NORMAL || kind == FP_ZERO;
  else
    result = kind == FP_SUBNORMAL;
  t.set(i.operands[0], result ? 1 : 0);
}

// ---- cvt

// Converts to an integer: rounds to an integral value and saturates to the target's range. NaN gives 0, or
// only the top bit if the source is f64 or the target has 64 bits ("cvt", Integer Notes).
std::uint64_t to_integer(double value, Type to, Type from, const Instruction& i) {
  const RoundingScope rounding(i);
  if (std::isnan(value)) return from.bits == 64 || to.bits == 64 ? std::uint64_t{1} << (to.bits - 1) : 0;
  const volatile double source = value;
  const double whole = std::nearbyint(source);
  const double high = std::ldexp(1.0, static_cast<int>(to.is_signed() ? to.bits - 1 : to.bits));
  const double low = to.is_signed() ? -high : 0;
  if (whole >= high) return to.is_signed() ? mask_of(to.bits - 1) : mask_of(to.bits);
  if (whole < low) return static_cast<std::uint64_t>(to.is_signed() ? static_cast<std::int64_t>(low) : 0);
  return to.is_signed() ? static_cast<std::uint64_t>(static_cast<std::int64_t>(whole))
                        : static_cast<std::uint64_t>(whole);
}

template <class T>
void store_float(Thread& t, const Instruction& i, T value) {
  finish<T>(t, i, value);
}

void integer_to_float(Thread& t, const Instruction& i, Type to, Type from) {
  const std::uint64_t bits = t.get(i.operands[1], from);
  const RoundingScope rounding(i);
  const volatile std::int64_t s = from.is_signed() ? sign_extend(bits, from.bits) : 0;
  const volatile std::uint64_t u = bits;
  if (to.bits == 32) {
    const volatile float value = from.is_signed() ? static_cast<float>(s) : static_cast<float>(u);
    store_float<float>(t, i, value);
  } else {
    const volatile double value = from.is_signed() ? static_cast<double>(s) : static_cast<double>(u);
    store_float<double>(t, i, value);
  }
}

void integer_to_integer(Thread& t, const Instruction& i, Type to, Type from) {
  const std::uint64_t bits = t.get(i.operands[1], from);
  __extension__ using Wide = __int128;
  Wide value = from.is_signed() ? static_cast<Wide>(sign_extend(bits, from.bits)) : static_cast<Wide>(bits);
  if (i.has("sat")) {
    const Wide high = (static_cast<Wide>(1) << (to.is_signed() ? to.bits - 1 : to.bits)) - 1;
    value = std::min(std::max(value, to.is_signed() ? -high - 1 : 0), high);
  }
  // The destination register may be wider than the type. The value is then extended by the rule of its type.
  std::uint64_t result = static_cast<std::uint64_t>(value) & mask_of(to.bits);
  if (to.is_signed()) result = static_cast<std::uint64_t>(sign_extend(result, to.bits));
  t.set(i.operands[0], result);
}

// Between f32 and f64, a NaN keeps its sign and the upper bits of its payload and becomes quiet.
std::uint64_t convert_nan(std::uint64_t bits, Type to, Type from) {
  if (to.bits == 32 && from.bits == 32) return 0x7fffffffu;
  if (to.bits == 32) return (bits >> 32 & 0x80000000u) | 0x7fc00000u | (bits >> 29 & 0x3fffffu);
  if (from.bits == 64) return bits | std::uint64_t{1} << 51;
  return (bits & 0x80000000u) << 32 | 0x7ff8000000000000u | (bits & 0x3fffffu) << 29;
}

void float_to_float(Thread& t, const Instruction& i, Type to, Type from) {
  double value = from.bits == 64 ? t.get_f64(i.operands[1]) : load<float>(t, i, i.operands[1]);
  if (std::isnan(value) && !i.has("sat"))
    return t.set(i.operands[0], convert_nan(t.get(i.operands[1], from), to, from));
  const RoundingScope rounding(i);
  const volatile double source = value;
  if (i.has("rni") || i.has("rzi") || i.has("rmi") || i.has("rpi")) value = std::nearbyint(source);
  if (to.bits == 64) return store_float<double>(t, i, value);
  const volatile double wide = value;
  const volatile float narrow = static_cast<float>(wide);
  store_float<float>(t, i, narrow);
}

void convert(Thread& t, const Instruction& i) {
  const Type to = i.types.at(0), from = i.types.at(1);
  if (to.is_float() && from.is_float()) return float_to_float(t, i, to, from);
  if (to.is_float()) return integer_to_float(t, i, to, from);
  if (!from.is_float()) return integer_to_integer(t, i, to, from);
  const double value =
      from.bits == 64 ? t.get_f64(i.operands[1]) : static_cast<double>(load<float>(t, i, i.operands[1]));
  std::uint64_t result = to_integer(value, to, from, i) & mask_of(to.bits);
  if (to.is_signed()) result = static_cast<std::uint64_t>(sign_extend(result, to.bits));
  t.set(i.operands[0], result);
}

bool sixteen_bits(const Instruction& i) {
  return std::any_of(i.types.begin(), i.types.end(), [](Type type) { return type.is('f', 16); }) ||
         i.has("bf16") || i.has("f16x2") || i.has("bf16x2") || i.has("e4m3x2") || i.has("e5m2x2") ||
         i.has("tf32");
}

}  // namespace

Handler find_float_handler(const Instruction& i) {
  if (i.has("f32x2")) return arithmetic_on_pairs;
  if ((i.opcode == "min" || i.opcode == "max") && i.operands.size() == 4 && i.has("f32"))
    return least_of_three;
  if (i.types.empty() || sixteen_bits(i)) return nullptr;
  if (i.opcode == "cvt") return i.types.size() == 2 && !i.has("rna") && !i.has("relu") ? convert : nullptr;
  const Type type = i.types[0];
  if (!type.is_float() || i.has("approx") || i.has("full") || i.has("relu") ||
      (i.has("abs") && !i.has("xorsign")))
    return nullptr;
  const bool wide = type.bits == 64;
  for (const char* op : {"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "min", "max"})
    if (i.opcode == op)
      return i.operands.size() > 3 && (i.opcode == "min" || i.opcode == "max") ? nullptr
             : wide                                                            ? arithmetic<double>
                                                                               : arithmetic<float>;
  if (i.opcode == "copysign") return copy_sign;
  for (const char* op : {"neg", "abs"})
    if (i.opcode == op) return wide ? sign_operation<double> : sign_operation<float>;
  if (i.opcode == "testp") return wide ? test_property<double> : test_property<float>;
  return nullptr;
}

}  // namespace quern::oracle
