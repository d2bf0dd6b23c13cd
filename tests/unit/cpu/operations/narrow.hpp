// SPDX-License-Identifier: Apache-2.0
// 16-bit floating-point formats for references: values as doubles, and results rounded from exact values.
#pragma once

#include <cmath>
#include <cstdint>

#include "cpu/ir/ir.hpp"

namespace quern::cpu::emit::testing {

struct NarrowFormat {
  int fraction_bits;
  int bias;
};
inline NarrowFormat format_of(ir::Type type) {
  return type == ir::Type::f16 ? NarrowFormat{10, 15} : NarrowFormat{7, 127};
}

inline double narrow_value(ir::Type type, std::uint64_t bits) {
  const auto [fraction_bits, bias] = format_of(type);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << fraction_bits) - 1);
  const int exponent = static_cast<int>((bits & 0x7fff) >> fraction_bits);
  const int top = 0x7fff >> fraction_bits;
  double value = 0;
  if (exponent == top) {
    value = fraction != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(fraction), 1 - bias - fraction_bits);
  } else {
    value = std::ldexp(static_cast<double>(fraction + (std::uint64_t{1} << fraction_bits)),
                       exponent - bias - fraction_bits);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

/// Rounds `value` plus a remainder that only matters for ties (by its sign) to the nearest even number of the
/// format.
inline std::uint64_t round_narrow(ir::Type type, double value, int beyond = 0) {
  const auto [fraction_bits, bias] = format_of(type);
  const std::uint64_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7fff;
  const double size = std::fabs(value);
  const int away = std::signbit(value) ? -beyond : beyond;
  const std::uint64_t infinity = static_cast<std::uint64_t>(0x7fff >> fraction_bits) << fraction_bits;
  if (std::isinf(size)) return sign | infinity;
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), 1 - bias);
  const double scaled = std::ldexp(size, fraction_bits - exponent);  // an integer is a number of the format
  const double below = std::floor(scaled);
  const double rest = scaled - below;
  const auto whole = static_cast<std::uint64_t>(below);
  const bool up = rest > 0.5 || (rest == 0.5 && (away > 0 || (away == 0 && (whole & 1) != 0)));
  // Counts the numbers of the format: the steps of exponent and fraction form one sequence.
  const std::uint64_t start = static_cast<std::uint64_t>(exponent - (1 - bias)) << fraction_bits;
  const std::uint64_t magnitude = start + whole + (up ? 1 : 0);
  return sign | (magnitude > infinity ? infinity : magnitude);
}

/// x op y (+ z), exact, and then rounded once. Products and sums of 16-bit numbers are exact in double,
/// except for an error that TwoSum computes.
inline std::uint64_t narrow_exact(ir::Type type, ir::Op op, double x, double y, double z) {
  volatile double a = op == ir::Op::fadd || op == ir::Op::fsub ? x : x * y;
  volatile double b = op == ir::Op::fadd ? y : op == ir::Op::fsub ? -y : z;
  if (op == ir::Op::fmul) return round_narrow(type, a);
  volatile double sum = a + b;
  volatile double b_part = sum - a;
  volatile double error = (a - (sum - b_part)) + (b - b_part);
  const int beyond = std::isfinite(sum) && error != 0 ? (error > 0 ? 1 : -1) : 0;
  return round_narrow(type, sum, beyond);
}

}  // namespace quern::cpu::emit::testing
