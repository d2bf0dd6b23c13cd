// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <algorithm>
#include <cstdint>

namespace quern::base {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
};

/// The character at the text's beginning; a byte that is not of UTF-8 has its own value.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  const std::size_t bytes = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
  if (bytes == 1 || text.size() < bytes) return {lead, 1};
  std::uint32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 1};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  return {code, bytes};
}

/// Unicode 15, classes Cc, Zl, Zp and Bidi_Control.
bool is_obeyed(std::uint32_t code) {
  if (code < 0x20) return code != '\n' && code != '\t';
  return (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    if (is_obeyed(character.code))
      shown += '?';
    else
      shown.append(text.substr(0, character.bytes));
    text.remove_prefix(character.bytes);
  }
  return shown;
}

std::string printable_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

}  // namespace quern::base
