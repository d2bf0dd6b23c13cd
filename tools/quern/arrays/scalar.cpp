// SPDX-License-Identifier: Apache-2.0
#include "arrays/scalar.hpp"

#include <fmt/format.h>
#include <quern/error.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace quern::cli {
namespace {

bool is_complex(Dtype dtype) { return dtype == Dtype::complex64 || dtype == Dtype::complex128; }
bool is_floating(Dtype dtype) {
  return dtype == Dtype::float16 || dtype == Dtype::bfloat16 || dtype == Dtype::float32 ||
         dtype == Dtype::float64;
}

struct Range {
  std::int64_t min;
  std::uint64_t max;
};
Range range_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bool_:
      return {0, 1};
    case Dtype::int8:
      return {INT8_MIN, INT8_MAX};
    case Dtype::int16:
      return {INT16_MIN, INT16_MAX};
    case Dtype::int32:
      return {INT32_MIN, INT32_MAX};
    case Dtype::int64:
      return {INT64_MIN, INT64_MAX};
    case Dtype::uint8:
      return {0, UINT8_MAX};
    case Dtype::uint16:
      return {0, UINT16_MAX};
    case Dtype::uint32:
      return {0, UINT32_MAX};
    default:
      return {0, UINT64_MAX};
  }
}

[[noreturn]] void does_not_fit(const Scalar& scalar, Dtype dtype) {
  throw Error(ErrorCode::usage, fmt::format("{} does not fit {}", to_string(scalar), name(dtype)));
}

template <class T>
void put(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof value);
}

// Rounds to a binary floating-point number with `fraction_bits` bits of fraction and exponents from
// `min_exponent` on. Everything is exact except one rounding, which nearbyint does to nearest even.
double round_to(double value, int fraction_bits, int min_exponent) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int ulp = std::max(exponent - 1, min_exponent) - fraction_bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -ulp)), ulp);
}

double as_double(const Scalar& scalar, Dtype dtype) {
  if (const auto* b = std::get_if<bool>(&scalar.value)) return *b ? 1 : 0;
  if (const auto* i = std::get_if<std::int64_t>(&scalar.value)) return static_cast<double>(*i);
  if (const auto* u = std::get_if<std::uint64_t>(&scalar.value)) return static_cast<double>(*u);
  if (const auto* d = std::get_if<double>(&scalar.value)) return *d;
  does_not_fit(scalar, dtype);
}

void store_whole(const Scalar& scalar, Dtype dtype, std::byte* out) {
  const Range range = range_of(dtype);
  std::int64_t value = 0;
  if (const auto* b = std::get_if<bool>(&scalar.value))
    value = *b ? 1 : 0;
  else if (const auto* i = std::get_if<std::int64_t>(&scalar.value))
    value = *i;
  else if (const auto* u = std::get_if<std::uint64_t>(&scalar.value)) {
    if (dtype != Dtype::uint64) does_not_fit(scalar, dtype);
    return put(*u, out);
  } else {
    const double number = as_double(scalar, dtype);
    if (number != std::floor(number) || std::fabs(number) >= 0x1p63) does_not_fit(scalar, dtype);
    value = static_cast<std::int64_t>(number);
  }
  if (value < range.min || (value > 0 && static_cast<std::uint64_t>(value) > range.max))
    does_not_fit(scalar, dtype);
  store_integer(value, dtype, out);
}

}  // namespace

Dtype Scalar::natural_dtype() const noexcept {
  constexpr Dtype kByIndex[] = {Dtype::bool_, Dtype::int64, Dtype::uint64, Dtype::float64, Dtype::complex128};
  return kByIndex[value.index()];
}

std::uint16_t to_half(double value) noexcept {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00);
  const double magnitude = round_to(std::fabs(value), 10, -14);
  if (magnitude >= 65536.0) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14)
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(magnitude * 0x1p24));
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);
  const int bits = static_cast<int>(fraction * 2048.0) & 1023;
  return static_cast<std::uint16_t>(sign | ((exponent + 14) << 10) | bits);
}

std::uint16_t to_bfloat16(double value) noexcept {
  if (std::isnan(value)) return std::signbit(value) ? 0xffc0 : 0x7fc0;
  const float rounded = static_cast<float>(round_to(value, 7, -126));  // exact, or overflows to infinity
  std::uint32_t bits = 0;
  std::memcpy(&bits, &rounded, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

void store_double(double value, Dtype dtype, std::byte* out) {
  switch (dtype) {
    case Dtype::float16:
      return put(to_half(value), out);
    case Dtype::bfloat16:
      return put(to_bfloat16(value), out);
    case Dtype::float32:
      return put(static_cast<float>(value), out);
    case Dtype::float64:
      return put(value, out);
    case Dtype::complex64:
      return put(std::complex<float>(static_cast<float>(value)), out);
    case Dtype::complex128:
      return put(std::complex<double>(value), out);
    case Dtype::bool_:
      return put(value != 0, out);
    default:
      break;
  }
  if (dtype == Dtype::uint64 && value >= 0x1p63 && value < 0x1p64)
    return put(static_cast<std::uint64_t>(value), out);
  if (!(value >= -0x1p63 && value < 0x1p63)) does_not_fit({value, {}}, dtype);
  store_integer(static_cast<std::int64_t>(value), dtype, out);
}

void store_integer(std::int64_t value, Dtype dtype, std::byte* out) {
  switch (dtype) {
    case Dtype::bool_:
      return put(value != 0, out);
    case Dtype::int8:
    case Dtype::uint8:
      return put(static_cast<std::int8_t>(value), out);
    case Dtype::int16:
    case Dtype::uint16:
      return put(static_cast<std::int16_t>(value), out);
    case Dtype::int32:
    case Dtype::uint32:
      return put(static_cast<std::int32_t>(value), out);
    case Dtype::int64:
    case Dtype::uint64:
      return put(value, out);
    default:
      return store_double(static_cast<double>(value), dtype, out);
  }
}

std::vector<std::byte> to_bytes(const Scalar& scalar, Dtype dtype) {
  std::vector<std::byte> bytes(size_bytes(dtype));
  if (is_complex(dtype)) {
    const auto* z = std::get_if<std::complex<double>>(&scalar.value);
    const std::complex<double> value = z != nullptr ? *z : std::complex<double>(as_double(scalar, dtype));
    if (dtype == Dtype::complex128)
      put(value, bytes.data());
    else
      put(std::complex<float>(value), bytes.data());
  } else if (is_floating(dtype)) {
    store_double(as_double(scalar, dtype), dtype, bytes.data());
  } else {
    store_whole(scalar, dtype, bytes.data());
  }
  return bytes;
}

std::string to_string(const Scalar& scalar) {
  return std::visit(
      [](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::complex<double>>)
          return fmt::format("({}{:+}j)", value.real(), value.imag());
        else
          return fmt::format("{}", value);
      },
      scalar.value);
}

}  // namespace quern::cli
