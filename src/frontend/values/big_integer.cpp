// SPDX-License-Identifier: Apache-2.0
#include "frontend/values/big_integer.hpp"

#include <algorithm>
#include <cmath>

namespace quern::frontend {
namespace {

using Magnitude = BigInteger::Magnitude;
constexpr unsigned kBits = 128;

unsigned length_of(Magnitude magnitude) {
  unsigned bits = 0;
  for (; magnitude != 0; magnitude >>= 1) ++bits;
  return bits;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::optional<BigInteger> BigInteger::read(std::string_view text) {
  const char base = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : ' ';
  const int radix = base == 'x' ? 16 : base == 'b' ? 2 : base == 'o' ? 8 : 10;
  if (radix != 10) text.remove_prefix(2);
  Magnitude magnitude = 0;
  for (const char c : text) {
    if (c == '_') continue;
    const int digit = digit_of(c);
    if (digit < 0 || digit >= radix ||
        magnitude > (~Magnitude{0} - static_cast<Magnitude>(digit)) / static_cast<Magnitude>(radix))
      return std::nullopt;
    magnitude = magnitude * static_cast<Magnitude>(radix) + static_cast<Magnitude>(digit);
  }
  return BigInteger(magnitude, false);
}

unsigned BigInteger::bit_length() const { return length_of(magnitude_); }

std::optional<std::int64_t> BigInteger::as_int64() const {
  const Magnitude most = (Magnitude{1} << 63) - (negative_ ? 0 : 1);
  if (magnitude_ > most) return std::nullopt;
  const auto bits = static_cast<std::uint64_t>(magnitude_);
  return static_cast<std::int64_t>(negative_ ? 0 - bits : bits);
}

std::optional<std::uint64_t> BigInteger::as_uint64() const {
  if (negative_ || magnitude_ > UINT64_MAX) return std::nullopt;
  return static_cast<std::uint64_t>(magnitude_);
}

double BigInteger::as_real() const {
  const auto size = static_cast<double>(magnitude_);
  return negative_ ? -size : size;
}

int BigInteger::compare(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ != b.negative_) return a.negative_ ? -1 : 1;
  if (a.magnitude_ == b.magnitude_) return 0;
  return (a.magnitude_ < b.magnitude_) != a.negative_ ? -1 : 1;
}

double BigInteger::true_quotient(const BigInteger& a, const BigInteger& b) {
  // Computes 64 digits, more than a double has. The last digit is a sticky bit for the remainder.
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 63;
  Magnitude rest = 0;
  std::uint64_t digits = 0;
  int place = static_cast<int>(a.bit_length());
  while (digits < kFirst && (place > 0 || rest != 0)) {
    --place;
    const bool carry = (rest >> (kBits - 1)) != 0;
    rest = rest << 1 | (place >= 0 ? a.magnitude_ >> place & 1 : 0);
    const bool fits = carry || rest >= b.magnitude_;
    if (fits) rest -= b.magnitude_;
    digits = digits << 1 | (fits ? 1 : 0);
  }
  const bool more = rest != 0 || (place > 0 && (a.magnitude_ & ((Magnitude{1} << place) - 1)) != 0);
  const double size = std::ldexp(static_cast<double>(digits | (more ? 1 : 0)), place);
  return a.negative_ != b.negative_ ? -size : size;
}

std::optional<BigInteger> BigInteger::sum(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ == b.negative_) {
    if (a.magnitude_ > ~b.magnitude_) return std::nullopt;
    return BigInteger(a.magnitude_ + b.magnitude_, a.negative_);
  }
  return a.magnitude_ >= b.magnitude_ ? BigInteger(a.magnitude_ - b.magnitude_, a.negative_)
                                      : BigInteger(b.magnitude_ - a.magnitude_, b.negative_);
}

std::optional<BigInteger> BigInteger::product(const BigInteger& a, const BigInteger& b) {
  if (a.magnitude_ != 0 && b.magnitude_ > ~Magnitude{0} / a.magnitude_) return std::nullopt;
  return BigInteger(a.magnitude_ * b.magnitude_, a.negative_ != b.negative_);
}

/// The quotient, rounded down.
std::optional<BigInteger> BigInteger::quotient(const BigInteger& a, const BigInteger& b) {
  if (b.is_zero()) return std::nullopt;
  const Magnitude size = a.magnitude_ / b.magnitude_;
  const bool below = a.negative_ != b.negative_, inexact = a.magnitude_ % b.magnitude_ != 0;
  return BigInteger(size + (below && inexact ? 1 : 0), below);
}

std::optional<BigInteger> BigInteger::power(BigInteger base, const BigInteger& exponent) {
  if (exponent.negative_) return std::nullopt;
  BigInteger result(1);
  for (Magnitude left = exponent.magnitude_; left != 0;) {
    if ((left & 1) != 0) {
      const auto next = product(result, base);
      if (!next) return std::nullopt;
      result = *next;
    }
    left >>= 1;
    if (left == 0) break;
    const auto square = product(base, base);
    if (!square) return std::nullopt;
    base = *square;
  }
  return result;
}

std::optional<BigInteger> BigInteger::shifted(Tok op, const BigInteger& a, const BigInteger& b) {
  if (b.negative_) return std::nullopt;
  const auto by = static_cast<unsigned>(std::min<Magnitude>(b.magnitude_, kBits));
  if (op == Tok::left_shift) {
    if (a.is_zero()) return a;
    if (by + a.bit_length() > kBits) return std::nullopt;
    return BigInteger(a.magnitude_ << by, a.negative_);
  }
  if (by == kBits) return BigInteger(a.negative_ ? -1 : 0);
  const bool lost = a.negative_ && (a.magnitude_ & ((Magnitude{1} << by) - 1)) != 0;
  return BigInteger((a.magnitude_ >> by) + (lost ? 1 : 0), a.negative_);
}

/// Computes as with two's complement numbers of unlimited width. Negative numbers must fit half of the 128
/// bits.
std::optional<BigInteger> BigInteger::bitwise(Tok op, const BigInteger& a, const BigInteger& b) {
  constexpr Magnitude kSign = Magnitude{1} << (kBits - 1);
  const bool is_signed = a.negative_ || b.negative_;
  if (is_signed && (a.magnitude_ >= kSign || b.magnitude_ >= kSign)) return std::nullopt;
  const auto bits = [](const BigInteger& x) {
    return x.negative_ ? Magnitude{0} - x.magnitude_ : x.magnitude_;
  };
  const Magnitude x = bits(a), y = bits(b);
  const Magnitude result = op == Tok::bit_and ? x & y : op == Tok::bit_or ? x | y : x ^ y;
  const bool negative = is_signed && (result & kSign) != 0;
  return BigInteger(negative ? Magnitude{0} - result : result, negative);
}

std::optional<BigInteger> BigInteger::compute(Tok op, const BigInteger& a, const BigInteger& b) {
  switch (op) {
    case Tok::plus:
      return sum(a, b);
    case Tok::minus:
      return sum(a, b.negated());
    case Tok::times:
      return product(a, b);
    case Tok::floor_divide:
      return quotient(a, b);
    case Tok::mod: {
      const auto whole = quotient(a, b);
      const auto taken = whole ? product(*whole, b) : std::nullopt;
      return taken ? sum(a, taken->negated()) : std::nullopt;
    }
    case Tok::power:
      return power(a, b);
    case Tok::left_shift:
    case Tok::right_shift:
      return shifted(op, a, b);
    case Tok::bit_and:
    case Tok::bit_or:
    case Tok::bit_xor:
      return bitwise(op, a, b);
    default:
      return std::nullopt;
  }
}

bool python_folds(Tok op, const BigInteger& a, const BigInteger& b) {
  if (a.is_zero() || b.is_zero()) return true;
  const auto by = b.as_int64();
  switch (op) {
    case Tok::times:
      return a.bit_length() + b.bit_length() <= kBits;
    case Tok::power:
      return b.negative() || (by && a.bit_length() <= kBits / static_cast<std::uint64_t>(*by));
    case Tok::left_shift:
      return by && *by <= kBits && a.bit_length() + static_cast<std::uint64_t>(*by) <= kBits;
    default:
      return true;
  }
}

}  // namespace quern::frontend
