// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/number.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace tool {
namespace {

using quern::Dtype;

template <class T>
void put(std::byte* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

template <class T>
T get(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

bool is_integer(Dtype dtype) { return dtype <= Dtype::uint64; }
bool is_signed(Dtype dtype) { return dtype >= Dtype::int8 && dtype <= Dtype::int64; }

std::optional<std::string> write_integer(const Number& number, Dtype dtype, std::byte* out) {
  const std::size_t bytes = quern::size_bytes(dtype);
  const std::uint64_t top =
      dtype == Dtype::bool_ ? 1 : ~std::uint64_t{0} >> (64 - 8 * bytes + (is_signed(dtype) ? 1 : 0));
  const std::uint64_t limit = number.negative ? (is_signed(dtype) ? top + 1 : 0) : top;
  if (number.magnitude > limit)
    return fmt::format("{}{} does not fit {}", number.negative ? "-" : "", number.magnitude,
                       quern::name(dtype));
  const std::uint64_t bits = number.negative ? std::uint64_t{0} - number.magnitude : number.magnitude;
  std::memcpy(out, &bits, bytes);
  return std::nullopt;
}

/// One rounding from double to bfloat16: by way of float32 rounded to odd.
std::uint16_t double_to_bfloat16(double value) {
  float near = static_cast<float>(value);
  if (std::isfinite(near) && static_cast<double>(near) != value) {
    auto bits = std::bit_cast<std::uint32_t>(near);
    if (std::fabs(static_cast<double>(near)) > std::fabs(value)) --bits;
    near = std::bit_cast<float>(bits | 1u);
  }
  return to_bfloat16(near);
}

}  // namespace

Number Number::integer(std::int64_t value) {
  const bool negative = value < 0;
  const auto bits = static_cast<std::uint64_t>(value);
  return {Kind::integer, negative, negative ? std::uint64_t{0} - bits : bits, {}};
}

double Number::as_double() const noexcept {
  if (!is_whole()) return value.real();
  return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

std::complex<double> Number::as_complex() const noexcept {
  return kind == Kind::complex ? value : std::complex<double>(as_double(), 0.0);
}

std::optional<std::int64_t> Number::as_int64() const noexcept {
  if (!is_whole()) return std::nullopt;
  const std::uint64_t limit = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (magnitude > limit) return std::nullopt;
  return static_cast<std::int64_t>(negative ? std::uint64_t{0} - magnitude : magnitude);
}

quern::Dtype dtype_of(const Number& number) noexcept {
  switch (number.kind) {
    case Number::Kind::boolean:
      return Dtype::bool_;
    case Number::Kind::integer:
      return number.as_int64() ? Dtype::int64 : Dtype::uint64;
    case Number::Kind::real:
      return Dtype::float64;
    case Number::Kind::complex:
      return Dtype::complex128;
  }
  return Dtype::float64;
}

std::optional<std::string> write_number(const Number& number, Dtype dtype, std::byte* out) {
  if (is_integer(dtype)) {
    if (number.is_whole()) return write_integer(number, dtype, out);
    return fmt::format("{} holds whole numbers only", quern::name(dtype));
  }
  if (number.kind == Number::Kind::complex && dtype != Dtype::complex64 && dtype != Dtype::complex128)
    return fmt::format("{} holds no complex numbers", quern::name(dtype));
  const std::complex<double> value = number.as_complex();
  switch (dtype) {
    case Dtype::float16:
      put(out, static_cast<_Float16>(value.real()));
      break;
    case Dtype::bfloat16:
      put(out, double_to_bfloat16(value.real()));
      break;
    case Dtype::float32:
      put(out, static_cast<float>(value.real()));
      break;
    case Dtype::float64:
      put(out, value.real());
      break;
    case Dtype::complex64:
      put(out, std::complex<float>(value));
      break;
    default:
      put(out, value);
      break;
  }
  return std::nullopt;
}

Number read_number(Dtype dtype, const std::byte* bytes) {
  switch (dtype) {
    case Dtype::bool_:
      return Number::boolean(get<std::uint8_t>(bytes) != 0);
    case Dtype::int8:
      return Number::integer(get<std::int8_t>(bytes));
    case Dtype::int16:
      return Number::integer(get<std::int16_t>(bytes));
    case Dtype::int32:
      return Number::integer(get<std::int32_t>(bytes));
    case Dtype::int64:
      return Number::integer(get<std::int64_t>(bytes));
    case Dtype::uint8:
      return Number::natural(get<std::uint8_t>(bytes));
    case Dtype::uint16:
      return Number::natural(get<std::uint16_t>(bytes));
    case Dtype::uint32:
      return Number::natural(get<std::uint32_t>(bytes));
    case Dtype::uint64:
      return Number::natural(get<std::uint64_t>(bytes));
    case Dtype::float16:
      return Number::real(static_cast<double>(get<_Float16>(bytes)));
    case Dtype::bfloat16:
      return Number::real(static_cast<double>(from_bfloat16(get<std::uint16_t>(bytes))));
    case Dtype::float32:
      return Number::real(static_cast<double>(get<float>(bytes)));
    case Dtype::float64:
      return Number::real(get<double>(bytes));
    case Dtype::complex64:
      return Number::complex(std::complex<double>(get<std::complex<float>>(bytes)));
    case Dtype::complex128:
      return Number::complex(get<std::complex<double>>(bytes));
  }
  return Number::integer(0);
}

std::uint16_t to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float from_bfloat16(std::uint16_t bits) noexcept { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

}  // namespace tool
