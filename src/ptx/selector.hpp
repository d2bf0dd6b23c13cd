// SPDX-License-Identifier: Apache-2.0
// The suffixes of registers: components of vectors, and the parts that a video instruction selects of its
// operands ("Video Instructions": .bsel, .hsel; "SIMD Video Instructions": .mask, .asel, .bsel).
// RegisterOperand::component numbers them:
//   0 to 3        .x .y .z .w
//   4 to 9        .b0 .b1 .b2 .b3 .h0 .h1: one byte or half of a word
//   kPairs + n    .hxy: for each half of the result one of the four halves of a and b; n = 4 x + y
//   kMasks + n    .b10 to .b321: two or three bytes of the destination, the highest first; n has a bit for
// each
//   kQuads + n    .bxyzw: for each byte of the result one of the eight bytes of a and b; n = xyzw as octal
// digits
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern::ptx {

inline constexpr std::int16_t kBytes = 4, kHalves = 8;
inline constexpr std::int16_t kPairs = 16, kMasks = 32, kQuads = 4096;

std::optional<std::int16_t> component_named(std::string_view word) noexcept;
std::string component_text(std::int16_t component);

/// The lanes (2 or 4) that `component` selects of the destination of a SIMD video instruction; all of them if
/// it is -1. Empty if it is no mask, or a mask for another number of lanes.
std::optional<std::uint32_t> lane_mask(std::int16_t component, unsigned lanes) noexcept;
/// For each lane of the result, lowest first, the index of its source among the 2 * lanes parts of {b, a}. If
/// `component` is -1, the sources are the parts from `first` on, in order. Empty if `component` is no such
/// selector.
std::optional<std::array<std::uint8_t, 4>> lane_sources(std::int16_t component, unsigned lanes,
                                                        unsigned first) noexcept;

}  // namespace quern::ptx
