// SPDX-License-Identifier: Apache-2.0
#include "abi/convert.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

using namespace quern;

namespace {

template <class T, class U>
std::optional<T> converted(Dtype from, U value, Dtype target, bool any_sign = false) {
  std::byte out[16] = {};
  if (abi::convert_scalar(from, &value, target, any_sign, out)) return std::nullopt;
  T result;
  std::memcpy(&result, out, sizeof result);
  return result;
}

}  // namespace

TEST_CASE("whole numbers convert where they fit and never wrap") {
  CHECK(converted<std::uint8_t>(Dtype::int32, std::int32_t{255}, Dtype::uint8) == 255);
  CHECK_FALSE(converted<std::uint8_t>(Dtype::int32, std::int32_t{256}, Dtype::uint8));
  CHECK_FALSE(converted<std::uint64_t>(Dtype::int32, std::int32_t{-1}, Dtype::uint64));
  CHECK(converted<std::int64_t>(Dtype::int8, std::int8_t{-5}, Dtype::int64) == -5);
  CHECK_FALSE(converted<std::int64_t>(Dtype::uint64, std::uint64_t{1} << 63, Dtype::int64));
  CHECK(converted<std::int64_t>(Dtype::int64, std::numeric_limits<std::int64_t>::min(), Dtype::int64) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(converted<std::uint8_t>(Dtype::int32, std::int32_t{1}, Dtype::bool_) == 1);
  CHECK_FALSE(converted<std::uint8_t>(Dtype::int32, std::int32_t{2}, Dtype::bool_));
}

TEST_CASE("a PTX word of unknown sign takes both ranges") {
  CHECK(converted<std::uint32_t>(Dtype::int64, std::int64_t{-1}, Dtype::uint32, true) == 0xffffffffu);
  CHECK(converted<std::uint32_t>(Dtype::int64, std::int64_t{0xffffffff}, Dtype::uint32, true) == 0xffffffffu);
  CHECK_FALSE(converted<std::uint32_t>(Dtype::int64, std::int64_t{0x100000000}, Dtype::uint32, true));
  CHECK(converted<std::uint64_t>(Dtype::int32, std::int32_t{-2}, Dtype::uint64, true) == 0xfffffffffffffffeu);
}

TEST_CASE("a fraction never becomes a whole number") {
  CHECK_FALSE(converted<std::int32_t>(Dtype::float64, 2.0, Dtype::int32));
}

TEST_CASE("whole numbers become floating ones only exactly") {
  CHECK(converted<float>(Dtype::int32, std::int32_t{1 << 24}, Dtype::float32) == 16777216.0f);
  CHECK_FALSE(converted<float>(Dtype::int32, std::int32_t{(1 << 24) + 1}, Dtype::float32));
  CHECK(converted<double>(Dtype::int32, std::int32_t{(1 << 24) + 1}, Dtype::float64) == 16777217.0);
}

TEST_CASE("floating numbers round once and do not overflow") {
  CHECK(converted<float>(Dtype::float64, 0.1, Dtype::float32) == 0.1f);
  CHECK_FALSE(converted<float>(Dtype::float64, 1e300, Dtype::float32));
  CHECK(std::isinf(*converted<float>(Dtype::float64, HUGE_VAL, Dtype::float32)));
  CHECK(std::isnan(*converted<float>(Dtype::float64, std::nan(""), Dtype::float32)));
  CHECK(converted<std::uint16_t>(Dtype::float64, 1.5, Dtype::float16) == 0x3e00);
  CHECK(converted<std::uint16_t>(Dtype::float64, 65504.0, Dtype::float16) == 0x7bff);
  CHECK_FALSE(converted<std::uint16_t>(Dtype::float64, 1e6, Dtype::float16));
  CHECK(converted<std::uint16_t>(Dtype::float32, 1.0f, Dtype::bfloat16) == 0x3f80);
  // Slightly above the tie between 1 and 1 + 2^-7, but exactly a tie after rounding to float32. A single
  // rounding gives the upper neighbour.
  CHECK(converted<std::uint16_t>(Dtype::float64, 1.0 + 0x1p-8 + 0x1p-40, Dtype::bfloat16) == 0x3f81);
  CHECK(converted<std::uint16_t>(Dtype::float64, 1.0 + 0x1p-8, Dtype::bfloat16) == 0x3f80);
}

TEST_CASE("real numbers become complex ones, and never the other way") {
  CHECK(converted<std::complex<float>>(Dtype::float64, 1.5, Dtype::complex64) ==
        std::complex<float>(1.5f, 0.0f));
  CHECK_FALSE(converted<double>(Dtype::complex128, std::complex<double>(1, 0), Dtype::float64));
}

TEST_CASE("scalars are named with type and value") {
  const std::int32_t minus = -3;
  CHECK(abi::scalar_text(Dtype::int32, &minus) == "int32 -3");
  const float half = 0.5f;
  CHECK(abi::scalar_text(Dtype::float32, &half) == "float32 0.5");
}
