// SPDX-License-Identifier: Apache-2.0
// Whole numbers as Python has them, as far as 128 bits and a sign go: arithmetic on literals and on a file's
// own numbers is Python's before it is the device's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "frontend/token.hpp"

namespace quern::frontend {

class Whole {
 public:
  using Magnitude = unsigned __int128;

  constexpr Whole() = default;
  constexpr Whole(std::int64_t number)
      : magnitude_(number < 0 ? Magnitude{0} - static_cast<Magnitude>(number)
                              : static_cast<Magnitude>(number)),
        negative_(number < 0) {}
  static constexpr Whole of_unsigned(std::uint64_t number) { return {number, false}; }
  /// Reads a literal without underscores: "0xff", "0o17", "123". Nothing if it has more than 128 bits.
  static std::optional<Whole> read(std::string_view text);

  bool negative() const { return negative_; }
  bool is_zero() const { return magnitude_ == 0; }
  /// Without the sign, as Python's int.bit_length().
  unsigned bit_length() const;
  std::optional<std::int64_t> as_int64() const;
  std::optional<std::uint64_t> as_uint64() const;
  double as_real() const;

  /// a op b for + - * // % ** << >> & | ^. Nothing if Python raises an error, if the result needs more than
  /// 128 bits, or if it is not an integer.
  static std::optional<Whole> compute(Tok op, const Whole& a, const Whole& b);
  /// a / b as Python divides whole numbers: rounded once. `b` is not 0.
  static double true_quotient(const Whole& a, const Whole& b);
  Whole negated() const { return {magnitude_, !negative_}; }
  /// -1, 0 or 1.
  static int compare(const Whole& a, const Whole& b);

 private:
  constexpr Whole(Magnitude magnitude, bool negative)
      : magnitude_(magnitude), negative_(negative && magnitude != 0) {}
  static std::optional<Whole> sum(const Whole& a, const Whole& b);
  static std::optional<Whole> product(const Whole& a, const Whole& b);
  static std::optional<Whole> quotient(const Whole& a, const Whole& b);
  static std::optional<Whole> power(Whole base, const Whole& exponent);
  static std::optional<Whole> shifted(Tok op, const Whole& a, const Whole& b);
  static std::optional<Whole> bitwise(Tok op, const Whole& a, const Whole& b);

  Magnitude magnitude_ = 0;
  bool negative_ = false;
};

/// Does CPython's compiler work `a op b` out by itself? It leaves products, powers and shifts beyond 128 bits
/// to the running program, and those wrap on the device.
bool python_folds(Tok op, const Whole& a, const Whole& b);

}  // namespace quern::frontend
