// SPDX-License-Identifier: Apache-2.0
#include "frontend/value.hpp"

#include <cmath>

namespace quern::frontend {
namespace {

using Kind = Value::Kind;

Value fitted(bool overflow, std::int64_t number) { return overflow ? Value{} : Value::of(number); }

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return {};
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return {};
    if (result == 0 || result == 1) break;
    if (exponent > 64 && base == -1) exponent = exponent % 2 + 2;
  }
  return Value::of(result);
}

Value fold_integers(Tok op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Tok::plus:
      overflow = __builtin_add_overflow(a, b, &result);
      return fitted(overflow, result);
    case Tok::minus:
      overflow = __builtin_sub_overflow(a, b, &result);
      return fitted(overflow, result);
    case Tok::times:
      overflow = __builtin_mul_overflow(a, b, &result);
      return fitted(overflow, result);
    case Tok::divide:
      return b == 0 ? Value{} : Value::of(static_cast<double>(a) / static_cast<double>(b));
    case Tok::floor_divide:
      return b == 0 || (b == -1 && a == INT64_MIN) ? Value{} : Value::of(floor_divide(a, b));
    case Tok::mod:
      return b == 0 || b == -1 ? (b == 0 ? Value{} : Value::of(std::int64_t{0}))
                               : Value::of(a - floor_divide(a, b) * b);
    case Tok::power:
      return integer_power(a, b);
    case Tok::left_shift:
      return b < 0 || b > 62 || std::abs(a) > (INT64_MAX >> b) ? Value{} : Value::of(a << b);
    case Tok::right_shift:
      return b < 0 || b > 63 ? Value{} : Value::of(a >> b);
    case Tok::bit_and:
      return Value::of(a & b);
    case Tok::bit_or:
      return Value::of(a | b);
    case Tok::bit_xor:
      return Value::of(a ^ b);
    default:
      return {};
  }
}

Value fold_reals(Tok op, double a, double b) {
  switch (op) {
    case Tok::plus:
      return Value::of(a + b);
    case Tok::minus:
      return Value::of(a - b);
    case Tok::times:
      return Value::of(a * b);
    case Tok::divide:
      return b == 0 ? Value{} : Value::of(a / b);
    case Tok::floor_divide:
      return b == 0 ? Value{} : Value::of(std::floor(a / b));
    case Tok::power:
      return Value::of(std::pow(a, b));
    default:
      return {};
  }
}

/// Numbers without a type of their own are Python's: int64 and float64. Integers with one compute to int64 as
/// well, unless both are unsigned, or one is too wide for it.
bool gives_pythons_type(const Value& a, const Value& b) {
  const auto fits = [](const Value& value) {
    return value.type == nullptr ||
           (is_integer(value.type) && (value.type->is_signed || value.type->bits < 64));
  };
  const auto is_unsigned = [](const Value& value) { return value.type != nullptr && !value.type->is_signed; };
  return fits(a) && fits(b) && !(is_unsigned(a) && is_unsigned(b));
}

template <class T>
std::optional<bool> compare(Tok op, T a, T b) {
  switch (op) {
    case Tok::less:
      return a < b;
    case Tok::less_equal:
      return a <= b;
    case Tok::greater:
      return a > b;
    case Tok::greater_equal:
      return a >= b;
    case Tok::equal:
      return a == b;
    case Tok::not_equal:
      return a != b;
    default:
      return std::nullopt;
  }
}

}  // namespace

Value Value::of(std::int64_t number) {
  Value value;
  value.kind = Kind::integer;
  value.integer = number;
  return value;
}
Value Value::of(double number) {
  Value value;
  value.kind = Kind::real;
  value.real = number;
  return value;
}
Value Value::boolean(bool truth) {
  Value value;
  value.kind = Kind::boolean;
  value.integer = truth ? 1 : 0;
  return value;
}
Value Value::host(std::string what) {
  Value value;
  value.kind = Kind::host;
  value.text = std::move(what);
  return value;
}

Value fold(Tok op, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number() || !gives_pythons_type(a, b)) return {};
  const bool real = a.kind == Kind::real || b.kind == Kind::real;
  const std::optional<bool> truth =
      real ? compare(op, a.as_real(), b.as_real()) : compare(op, a.integer, b.integer);
  if (truth) return Value::boolean(*truth);
  return real ? fold_reals(op, a.as_real(), b.as_real()) : fold_integers(op, a.integer, b.integer);
}

Value fold_unary(Tok op, const Value& a) {
  if (!a.is_number() || a.type != nullptr) return {};
  switch (op) {
    case Tok::plus:
      return a.kind == Kind::boolean ? Value::of(a.integer) : a;
    case Tok::minus:
      if (a.kind == Kind::real) return Value::of(-a.real);
      return a.integer == INT64_MIN ? Value{} : Value::of(-a.integer);
    case Tok::invert:
      return a.kind == Kind::integer ? Value::of(~a.integer) : Value{};
    case Tok::k_not:
      return Value::boolean(a.as_real() == 0);
    default:
      return {};
  }
}

}  // namespace quern::frontend
