// SPDX-License-Identifier: Apache-2.0
// Numbers as arguments and cases write them, and their way into and out of an element's bytes.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <quern/dtype.hpp>

namespace tool {

/// A Python number: bool, int (of 64 bits, signed or not), float or complex.
struct Number {
  enum class Kind : std::uint8_t { boolean, integer, real, complex };
  Kind kind = Kind::integer;
  bool negative = false;        ///< of an integer
  std::uint64_t magnitude = 0;  ///< of an integer; 0 or 1 of a bool
  std::complex<double> value;   ///< of the rest

  static Number boolean(bool value) { return {Kind::boolean, false, value ? 1u : 0u, {}}; }
  static Number integer(std::int64_t value);
  static Number natural(std::uint64_t value) { return {Kind::integer, false, value, {}}; }
  static Number real(double value) { return {Kind::real, false, 0, {value, 0.0}}; }
  static Number complex(std::complex<double> value) { return {Kind::complex, false, 0, value}; }

  bool is_whole() const noexcept { return kind == Kind::boolean || kind == Kind::integer; }
  /// Of bool, integer and real.
  double as_double() const noexcept;
  std::complex<double> as_complex() const noexcept;
  /// Nothing for what is not whole or does not fit.
  std::optional<std::int64_t> as_int64() const noexcept;
};

/// The dtype that NumPy gives it: bool, int64 (uint64 beyond it), float64, complex128.
quern::Dtype dtype_of(const Number& number) noexcept;

/// Writes `number` as a `dtype`, rounded as NumPy rounds. Returns why that cannot be; nothing: done. A whole
/// number must fit; a fraction is no whole number.
std::optional<std::string> write_number(const Number& number, quern::Dtype dtype, std::byte* out);

Number read_number(quern::Dtype dtype, const std::byte* bytes);

/// float32 to bfloat16 and back; to nearest, ties to even.
std::uint16_t to_bfloat16(float value) noexcept;
float from_bfloat16(std::uint16_t bits) noexcept;

}  // namespace tool
