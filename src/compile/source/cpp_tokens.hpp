// SPDX-License-Identifier: Apache-2.0
// A lexer for C++ source: tokens with their lines, nothing expanded. Shared by the scanners for kernels and
// for includes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace quern::compile {

struct CppToken {
  enum class Kind : std::uint8_t {
    word,  ///< identifier or keyword
    number,
    string,  ///< with quotes and prefix; also raw strings
    character,
    directive,    ///< a whole preprocessor line from '#', continuation lines included
    punctuation,  ///< one character, or "::", "->"
  };
  Kind kind = Kind::punctuation;
  std::string_view text;  ///< a view into the source
  std::uint32_t line = 1;
};

/// Comments are skipped; an unterminated string or comment ends with the source. Never fails.
std::vector<CppToken> cpp_tokens(std::string_view source);

std::string_view trim_left(std::string_view text);

/// A view into the directive's text.
struct HeaderName {
  std::string_view text;
  bool quoted = false;
};
/// `<x>` or `"x"` at the start of `text`, spaces aside.
std::optional<HeaderName> header_name(std::string_view text);

}  // namespace quern::compile
