// SPDX-License-Identifier: Apache-2.0
#include "remote/base64.hpp"

#include <algorithm>
#include <cstdint>

namespace quern::remote {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int value_of(char c) {
  const std::size_t at = kAlphabet.find(c);
  return at == std::string_view::npos || c == '\0' ? -1 : static_cast<int>(at);
}

/// The bits of the four characters at `text`, of which the last `padding` are '='; nothing if one is no
/// digit.
std::optional<std::uint32_t> read_group(std::string_view text, std::size_t padding) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const bool pad = i >= 4 - padding;
    const int value = pad ? (text[i] == '=' ? 0 : -1) : value_of(text[i]);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
  }
  return bits;
}

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < count ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i) text += i <= count ? kAlphabet[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const bool last = at + 4 == text.size();
    const std::size_t padding = !last ? 0 : text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    const std::optional<std::uint32_t> bits = read_group(text.substr(at, 4), padding);
    // Bits behind the last byte are zero in the one spelling that is accepted.
    if (!bits || (*bits & ((1u << 8 * padding) - 1)) != 0) return std::nullopt;
    for (std::size_t i = 0; i < 3 - padding; ++i)
      bytes.push_back(static_cast<std::byte>(*bits >> (16 - 8 * i) & 255));
  }
  return bytes;
}

}  // namespace quern::remote
