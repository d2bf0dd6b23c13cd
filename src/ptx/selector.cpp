// SPDX-License-Identifier: Apache-2.0
#include "ptx/selector.hpp"

#include <algorithm>

namespace quern::ptx {
namespace {

// The names of the components 0 to 9.
constexpr std::array<std::string_view, 10> kNames = {".x",  ".y",  ".z",  ".w",  ".b0",
                                                     ".b1", ".b2", ".b3", ".h0", ".h1"};
constexpr std::array<std::string_view, 4> kColours = {".r", ".g", ".b", ".a"};

bool are_below(std::string_view digits, char limit) {
  return std::all_of(digits.begin(), digits.end(), [limit](char c) { return c >= '0' && c < limit; });
}

/// Parses two or three different byte numbers, the highest first.
std::optional<std::int16_t> mask_named(std::string_view digits) {
  std::int16_t bits = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i] >= digits[i - 1]) return std::nullopt;
    bits = static_cast<std::int16_t>(bits | 1 << (digits[i] - '0'));
  }
  return static_cast<std::int16_t>(kMasks + bits);
}

std::int16_t digits_in(std::string_view digits, unsigned base) {
  unsigned value = 0;
  for (const char c : digits) value = value * base + static_cast<unsigned>(c - '0');
  return static_cast<std::int16_t>(value);
}

}  // namespace

std::optional<std::int16_t> component_named(std::string_view word) noexcept {
  for (const auto* names : {kNames.begin(), kColours.begin()}) {
    const std::size_t count = names == kNames.begin() ? kNames.size() : kColours.size();
    for (std::size_t i = 0; i < count; ++i)
      if (names[i] == word) return static_cast<std::int16_t>(i);
  }
  if (word.size() < 4) return std::nullopt;
  const std::string_view digits = word.substr(2);
  if (word.starts_with(".h") && digits.size() == 2 && are_below(digits, '4'))
    return static_cast<std::int16_t>(kPairs + digits_in(digits, 4));
  if (!word.starts_with(".b")) return std::nullopt;
  if (digits.size() < 4 && are_below(digits, '4')) return mask_named(digits);
  if (digits.size() == 4 && are_below(digits, '8'))
    return static_cast<std::int16_t>(kQuads + digits_in(digits, 8));
  return std::nullopt;
}

std::string component_text(std::int16_t component) {
  if (component < kPairs) return std::string(kNames[static_cast<std::size_t>(component)]);
  const auto digit = [](int value) { return static_cast<char>('0' + value); };
  if (component < kMasks) return {'.', 'h', digit((component - kPairs) / 4), digit((component - kPairs) % 4)};
  std::string text = ".b";
  if (component < kQuads) {
    for (int byte = 3; byte >= 0; --byte)
      if (((component - kMasks) >> byte & 1) != 0) text += digit(byte);
    return text;
  }
  for (int shift = 9; shift >= 0; shift -= 3) text += digit((component - kQuads) >> shift & 7);
  return text;
}

std::optional<std::uint32_t> lane_mask(std::int16_t component, unsigned lanes) noexcept {
  if (component < 0) return (1u << lanes) - 1;
  const auto value = static_cast<std::uint32_t>(component);
  if (lanes == 2) {
    if (component == kPairs + 4) return 3u;  // .h10
    if (component >= kHalves && component < kHalves + 2) return 1u << (value - kHalves);
    return std::nullopt;
  }
  if (component >= kBytes && component < kHalves) return 1u << (value - kBytes);
  if (component > kMasks && component < kMasks + 16) return value - kMasks;
  if (component == kQuads + 03210) return 15u;
  return std::nullopt;
}

std::optional<std::array<std::uint8_t, 4>> lane_sources(std::int16_t component, unsigned lanes,
                                                        unsigned first) noexcept {
  std::array<std::uint8_t, 4> sources{};
  const bool pair = component >= kPairs && component < kPairs + 16;
  if (component >= 0 && !(lanes == 2 ? pair : component >= kQuads)) return std::nullopt;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    unsigned from = first + lane;
    if (component >= 0)
      from = lanes == 2 ? static_cast<unsigned>(component - kPairs) >> (2 * lane) & 3
                        : static_cast<unsigned>(component - kQuads) >> (3 * lane) & 7;
    sources[lane] = static_cast<std::uint8_t>(from);
  }
  return sources;
}

}  // namespace quern::ptx
