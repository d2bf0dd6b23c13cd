// SPDX-License-Identifier: Apache-2.0
#include "quern/half.hpp"

#include <bit>
#include <cmath>

namespace quern {

std::uint16_t float16::encode(float value) noexcept {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}
float float16::decode(std::uint16_t bits) noexcept {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

std::uint16_t bfloat16::encode(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // a NaN stays one
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
float bfloat16::decode(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace quern
