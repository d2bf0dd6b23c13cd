// SPDX-License-Identifier: Apache-2.0
#include "base/columns.hpp"

#include <algorithm>

namespace quern::base {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80u;
}

}  // namespace

std::uint32_t count_characters(std::string_view text) noexcept {
  return static_cast<std::uint32_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

void cover_word(Span& span, std::string_view line, std::string_view also) noexcept {
  if (span.column == 0 || span.column > line.size()) return;
  const std::size_t begin = span.column - 1;
  std::size_t end = begin;
  const auto belongs = [&](char c) { return is_word(c) || also.find(c) != std::string_view::npos; };
  while (end < line.size() && belongs(line[end])) ++end;
  if (end == begin) ++end;
  span.column = 1 + count_characters(line.substr(0, begin));
  span.end_column = span.column + std::max(1u, count_characters(line.substr(begin, end - begin)));
}

}  // namespace quern::base
