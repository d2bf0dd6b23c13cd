// SPDX-License-Identifier: Apache-2.0
#include "abi/convert.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "base/floating_point.hpp"

namespace quern::abi {
namespace {

__extension__ typedef __int128 Wide;  // holds every int64 and every uint64

template <class T>
T read(const void* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

template <class T>
void write(std::byte* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

float bfloat16_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// Round to nearest, ties to even; a NaN stays one.
std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// A scalar by value: a whole number, or a complex one (real: imaginary part 0).
struct Value {
  bool whole = false;
  Wide integer = 0;
  std::complex<double> number;
  bool complex = false;
};

Value whole(Wide integer) { return Value{true, integer, {}, false}; }
Value real(double number) { return Value{false, 0, {number, 0.0}, false}; }

Value read_value(Dtype dtype, const void* source) {
  switch (dtype) {
    case Dtype::bool_:
      return whole(read<std::uint8_t>(source) != 0 ? 1 : 0);
    case Dtype::int8:
      return whole(read<std::int8_t>(source));
    case Dtype::int16:
      return whole(read<std::int16_t>(source));
    case Dtype::int32:
      return whole(read<std::int32_t>(source));
    case Dtype::int64:
      return whole(read<std::int64_t>(source));
    case Dtype::uint8:
      return whole(read<std::uint8_t>(source));
    case Dtype::uint16:
      return whole(read<std::uint16_t>(source));
    case Dtype::uint32:
      return whole(read<std::uint32_t>(source));
    case Dtype::uint64:
      return whole(read<std::uint64_t>(source));
    case Dtype::float16:
      return real(static_cast<double>(read<_Float16>(source)));
    case Dtype::bfloat16:
      return real(static_cast<double>(bfloat16_to_float(read<std::uint16_t>(source))));
    case Dtype::float32:
      return real(static_cast<double>(read<float>(source)));
    case Dtype::float64:
      return real(read<double>(source));
    case Dtype::complex64: {
      const auto number = read<std::complex<float>>(source);
      return Value{false, 0, {static_cast<double>(number.real()), static_cast<double>(number.imag())}, true};
    }
    case Dtype::complex128:
      return Value{false, 0, read<std::complex<double>>(source), true};
  }
  return {};
}

std::optional<std::string> write_whole(Wide value, Dtype target, bool any_sign, std::byte* out) {
  const std::size_t bytes = size_bytes(target);
  const auto bits = static_cast<unsigned>(8 * bytes);
  const bool is_signed = target >= Dtype::int8 && target <= Dtype::int64;
  const Wide lowest = is_signed || any_sign ? -(Wide{1} << (bits - 1)) : Wide{0};
  const Wide beyond = target == Dtype::bool_ ? Wide{2} : (Wide{1} << (is_signed ? bits - 1 : bits));
  if (value < lowest || value >= beyond) return fmt::format("the value does not fit {}", name(target));
  const auto low = static_cast<std::uint64_t>(value);
  std::memcpy(out, &low, bytes);  // little-endian, as every device here
  return std::nullopt;
}

/// Writes `value` rounded to the floating-point type `target`; returns the rounded value.
double write_real(double value, Dtype target, std::byte* out) {
  switch (target) {
    case Dtype::float16: {
      const auto half = static_cast<_Float16>(value);
      write(out, half);
      return static_cast<double>(half);
    }
    case Dtype::bfloat16: {
      // Two roundings, through float32, could differ from one; rounding to odd in float32 first prevents
      // that.
      float near = static_cast<float>(value);
      if (static_cast<double>(near) != value && std::isfinite(near)) {
        auto bits = std::bit_cast<std::uint32_t>(near);
        if (std::fabs(static_cast<double>(near)) > std::fabs(value)) --bits;
        near = std::bit_cast<float>(bits | 1u);
      }
      const std::uint16_t brain = float_to_bfloat16(near);
      write(out, brain);
      return static_cast<double>(bfloat16_to_float(brain));
    }
    case Dtype::float32:
    case Dtype::complex64: {
      const auto single = static_cast<float>(value);
      write(out, single);
      return static_cast<double>(single);
    }
    default:
      write(out, value);
      return value;
  }
}

std::optional<std::string> write_number(const Value& value, Dtype target, std::byte* out) {
  const double number = value.whole ? static_cast<double>(value.integer) : value.number.real();
  const double there = write_real(number, target, out);
  if (value.whole && (!std::isfinite(there) || static_cast<Wide>(there) != value.integer))
    return fmt::format("{} cannot hold that whole number exactly", name(target));
  if (!value.whole && std::isfinite(number) && !std::isfinite(there))
    return fmt::format("the value is beyond the range of {}", name(target));
  return std::nullopt;
}

}  // namespace

bool is_integer(Dtype dtype) noexcept { return dtype <= Dtype::uint64; }

std::optional<std::string> convert_scalar(Dtype from, const void* source, Dtype target, bool any_sign,
                                          std::byte* out) {
  const base::FloatingPointScope floating_point;
  const Value value = read_value(from, source);
  if (is_integer(target)) {
    if (!value.whole) return fmt::format("a {} is not cut to a whole number", name(from));
    return write_whole(value.integer, target, any_sign, out);
  }
  const bool to_complex = target == Dtype::complex64 || target == Dtype::complex128;
  if (value.complex && !to_complex) return std::string("a complex number is not cut to a real one");
  if (auto problem = write_number(value, target, out)) return problem;
  if (to_complex) return write_number(real(value.number.imag()), target, out + size_bytes(target) / 2);
  return std::nullopt;
}

std::string scalar_text(Dtype dtype, const void* source) {
  const Value value = read_value(dtype, source);
  if (dtype == Dtype::bool_) return value.integer != 0 ? "bool true" : "bool false";
  if (value.whole && dtype == Dtype::uint64)
    return fmt::format("uint64 {}", static_cast<std::uint64_t>(value.integer));
  if (value.whole) return fmt::format("{} {}", name(dtype), static_cast<std::int64_t>(value.integer));
  if (value.complex) return fmt::format("{} ({}, {})", name(dtype), value.number.real(), value.number.imag());
  return fmt::format("{} {}", name(dtype), value.number.real());
}

}  // namespace quern::abi
