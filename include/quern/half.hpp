// SPDX-License-Identifier: Apache-2.0
// component: abi
#pragma once

#include <cstdint>

#include "quern/dtype.hpp"
#include "quern/export.hpp"

namespace quern {

/// IEEE 754 binary16 in host memory, with the bits of __half. Conversions round to nearest even.
class float16 {
 public:
  float16() = default;
  explicit float16(float value) noexcept : bits_(encode(value)) {}
  explicit operator float() const noexcept { return decode(bits_); }
  std::uint16_t bits() const noexcept { return bits_; }
  friend bool operator==(float16, float16) = default;

 private:
  QUERN_API static std::uint16_t encode(float value) noexcept;
  QUERN_API static float decode(std::uint16_t bits) noexcept;
  std::uint16_t bits_;
};

/// The upper half of a binary32 in host memory, with the bits of __nv_bfloat16. Conversions round to nearest
/// even.
class bfloat16 {
 public:
  bfloat16() = default;
  explicit bfloat16(float value) noexcept : bits_(encode(value)) {}
  explicit operator float() const noexcept { return decode(bits_); }
  std::uint16_t bits() const noexcept { return bits_; }
  friend bool operator==(bfloat16, bfloat16) = default;

 private:
  QUERN_API static std::uint16_t encode(float value) noexcept;
  QUERN_API static float decode(std::uint16_t bits) noexcept;
  std::uint16_t bits_;
};

template <>
struct DtypeOf<float16> {
  static constexpr Dtype value = Dtype::float16;
};
template <>
struct DtypeOf<bfloat16> {
  static constexpr Dtype value = Dtype::bfloat16;
};

}  // namespace quern
