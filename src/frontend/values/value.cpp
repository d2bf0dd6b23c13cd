// SPDX-License-Identifier: Apache-2.0
#include "frontend/values/value.hpp"

#include <cmath>
#include <complex>

namespace quern::frontend {
namespace {

using Kind = Value::Kind;

/// Python's x ** y: for a negative x and a fractional y, the result is complex.
Value real_power(double x, double y) {
  if (x == 0 && y < 0) return {};
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y)) {
    const std::complex<double> power = std::pow(std::complex<double>(x, 0), y);
    return Value::complex(power.real(), power.imag());
  }
  const double power = std::pow(x, y);
  return std::isinf(power) && std::isfinite(x) && std::isfinite(y) ? Value{} : Value::of(power);
}

Value fold_wholes(Tok op, const BigInteger& a, const BigInteger& b) {
  if (op == Tok::divide) return b.is_zero() ? Value{} : Value::of(BigInteger::true_quotient(a, b));
  if (op == Tok::power && b.negative()) return real_power(a.as_real(), b.as_real());
  const auto result = BigInteger::compute(op, a, b);
  return result ? Value::of(*result) : Value{};
}

/// a // b and a % b of floats, as CPython computes them.
Value real_quotient(Tok op, double a, double b) {
  if (b == 0) return {};
  double rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(0.0, b);
  } else if ((b < 0) != (rest < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (op == Tok::mod) return Value::of(rest);
  if (quotient == 0) return Value::of(std::copysign(0.0, a / b));
  const double down = std::floor(quotient);
  return Value::of(quotient - down > 0.5 ? down + 1 : down);
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
    case Tok::mod:
      return real_quotient(op, a, b);
    case Tok::power:
      return real_power(a, b);
    default:
      return {};
  }
}

/// Powers and quotients are not folded: the results of Python and of the device differ in the last digit.
Value fold_complex(Tok op, const Value& a, const Value& b) {
  const std::complex<double> x(a.as_real(), a.imag), y(b.as_real(), b.imag);
  const auto of = [](std::complex<double> z) { return Value::complex(z.real(), z.imag()); };
  switch (op) {
    case Tok::plus:
      return of(x + y);
    case Tok::minus:
      return of(x - y);
    case Tok::times:
      return Value::complex(x.real() * y.real() - x.imag() * y.imag(),
                            x.real() * y.imag() + x.imag() * y.real());
    case Tok::equal:
      return Value::boolean(x == y);
    case Tok::not_equal:
      return Value::boolean(x != y);
    default:
      return {};
  }
}

/// True if the result has Python's type. Numbers without an explicit type are Python's: int64 and float64.
/// Integers with an explicit type also give int64, unless both are unsigned, or one is too wide.
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

bool Value::is_mutable() const {
  if (kind == Kind::array || kind == Kind::host || kind == Kind::unknown) return true;
  if (kind != Kind::tuple) return false;
  if (list) return true;
  for (const Value& item : items)
    if (item.is_mutable()) return true;
  return false;
}

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
Value Value::of(const BigInteger& number) {
  if (const auto narrow = number.as_int64()) return of(*narrow);
  Value value;
  value.kind = Kind::big;
  value.big = number;
  return value;
}
Value Value::complex(double real, double imag) {
  Value value;
  value.kind = Kind::complex;
  value.real = real;
  value.imag = imag;
  return value;
}
double Value::as_real() const {
  if (kind == Kind::real || kind == Kind::complex) return real;
  return kind == Kind::big ? big.as_real() : static_cast<double>(integer);
}
bool Value::is_zero() const { return as_real() == 0 && imag == 0; }

Value Value::boolean(bool truth) {
  Value value;
  value.kind = Kind::boolean;
  value.integer = truth ? 1 : 0;
  return value;
}
Value Value::host(std::string what, HostKind host_kind) {
  Value value;
  value.kind = Kind::host;
  value.host_kind = host_kind;
  value.text = std::move(what);
  return value;
}
Value Value::imported(std::string path) { return host(std::move(path), HostKind::imported); }
Value Value::computed(std::string what) { return host(std::move(what), HostKind::computed); }

Value fold(Tok op, const Value& a, const Value& b) {
  if (!a.is_any_number() || !b.is_any_number() || !gives_pythons_type(a, b)) return {};
  if (a.kind == Kind::complex || b.kind == Kind::complex) return fold_complex(op, a, b);
  const bool real = a.kind == Kind::real || b.kind == Kind::real;
  const std::optional<bool> truth = real ? compare(op, a.as_real(), b.as_real())
                                         : compare(op, BigInteger::compare(a.as_whole(), b.as_whole()), 0);
  if (truth) return Value::boolean(*truth);
  const bool bits = op == Tok::bit_and || op == Tok::bit_or || op == Tok::bit_xor;
  Value result =
      real ? fold_reals(op, a.as_real(), b.as_real()) : fold_wholes(op, a.as_whole(), b.as_whole());
  if (bits && a.kind == Kind::boolean && b.kind == Kind::boolean) result.kind = Kind::boolean;
  return result;
}

Value fold_unary(Tok op, const Value& a) {
  if (!a.is_any_number() || a.type != nullptr) return {};
  switch (op) {
    case Tok::plus:
      return a.kind == Kind::boolean ? Value::of(a.integer) : a;
    case Tok::minus:
      if (a.kind == Kind::real) return Value::of(-a.real);
      if (a.kind == Kind::complex) return Value::complex(-a.real, -a.imag);
      return Value::of(a.as_whole().negated());
    case Tok::invert:
      return a.is_whole() && a.kind != Kind::boolean ? fold_wholes(Tok::minus, BigInteger(-1), a.as_whole())
                                                     : Value{};
    case Tok::k_not:
      return Value::boolean(a.is_zero());
    default:
      return {};
  }
}

Value whole_part(double number) {
  constexpr double kMost = 9.2e18;
  return std::abs(number) < kMost ? Value::of(static_cast<std::int64_t>(number)) : Value{};
}

bool is_of(const Value& value, Type type) {
  switch (value.kind) {
    case Kind::integer:
      return is_integer(type);
    case Kind::boolean:
      return type->kind == TypeKind::boolean;
    case Kind::real:
      return is_floating(type);
    default:
      return false;
  }
}

}  // namespace quern::frontend
