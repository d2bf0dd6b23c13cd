// SPDX-License-Identifier: Apache-2.0
// Python's integers, up to 128 bits and a sign. Arithmetic on literals and on a file's own numbers follows
// Python before it follows the device.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "frontend/syntax/token.hpp"

namespace quern::frontend {

class BigInteger {
 public:
  using Magnitude = unsigned __int128;

  constexpr BigInteger() = default;
  constexpr BigInteger(std::int64_t number)
      : magnitude_(number < 0 ? Magnitude{0} - static_cast<Magnitude>(number)
                              : static_cast<Magnitude>(number)),
        negative_(number < 0) {}
  static constexpr BigInteger of_unsigned(std::uint64_t number) { return {number, false}; }
  /// Reads a literal without underscores: "0xff", "0o17", "123". Returns nothing if it has more than 128
  /// bits.
  static std::optional<BigInteger> read(std::string_view text);

  bool negative() const { return negative_; }
  bool is_zero() const { return magnitude_ == 0; }
  /// The number of bits of the magnitude, like Python's int.bit_length().
  unsigned bit_length() const;
  std::optional<std::int64_t> as_int64() const;
  std::optional<std::uint64_t> as_uint64() const;
  double as_real() const;

  /// a op b for + - * // % ** << >> & | ^. Returns nothing if Python raises an error, if the result needs
  /// more than 128 bits, or if it is not an integer.
  static std::optional<BigInteger> compute(Tok op, const BigInteger& a, const BigInteger& b);
  /// a / b as Python divides integers: rounded once. `b` must not be 0.
  static double true_quotient(const BigInteger& a, const BigInteger& b);
  BigInteger negated() const { return {magnitude_, !negative_}; }
  /// Returns -1, 0 or 1.
  static int compare(const BigInteger& a, const BigInteger& b);

 private:
  constexpr BigInteger(Magnitude magnitude, bool negative)
      : magnitude_(magnitude), negative_(negative && magnitude != 0) {}
  static std::optional<BigInteger> sum(const BigInteger& a, const BigInteger& b);
  static std::optional<BigInteger> product(const BigInteger& a, const BigInteger& b);
  static std::optional<BigInteger> quotient(const BigInteger& a, const BigInteger& b);
  static std::optional<BigInteger> power(BigInteger base, const BigInteger& exponent);
  static std::optional<BigInteger> shifted(Tok op, const BigInteger& a, const BigInteger& b);
  static std::optional<BigInteger> bitwise(Tok op, const BigInteger& a, const BigInteger& b);

  Magnitude magnitude_ = 0;
  bool negative_ = false;
};

/// True if CPython's compiler computes `a op b`. Products, powers and shifts beyond 128 bits are computed at
/// run time, and wrap on the device.
bool python_folds(Tok op, const BigInteger& a, const BigInteger& b);

}  // namespace quern::frontend
