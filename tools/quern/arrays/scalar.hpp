// SPDX-License-Identifier: Apache-2.0
// Numbers of the command line, and their conversion to elements of an array or bytes of a kernel parameter.
#pragma once

#include <quern/dtype.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace quern::cli {

/// A number as written. An integer that needs 64 unsigned bits keeps them.
struct Scalar {
  std::variant<bool, std::int64_t, std::uint64_t, double, std::complex<double>> value;
  std::optional<Dtype> dtype;  ///< if the text names it: float32(2)

  /// The default Dtype: bool, int64 (uint64 for larger integers), float64, complex128.
  Dtype natural_dtype() const noexcept;
};

/// The bytes of `scalar` as a `dtype`. Throws quern::Error (usage) if the value does not fit: 300 as uint8,
/// 1.5 as int32, a complex number as float. Rounding to a floating type is to nearest even.
std::vector<std::byte> to_bytes(const Scalar& scalar, Dtype dtype);

/// Writes `value` as an element to `out`. The caller ensures that it fits (fills of arange, linspace,
/// random).
void store_double(double value, Dtype dtype, std::byte* out);
void store_integer(std::int64_t value, Dtype dtype, std::byte* out);

/// Converts a double to IEEE 754 binary16 or bfloat16, rounding once to nearest even.
std::uint16_t to_half(double value) noexcept;
std::uint16_t to_bfloat16(double value) noexcept;

std::string to_string(const Scalar& scalar);

}  // namespace quern::cli
