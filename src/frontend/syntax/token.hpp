// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "frontend/syntax/text.hpp"

namespace quern::frontend {

/// Kinds of tokens: first those with variable text, then keywords and punctuation.
enum class Tok : std::uint8_t {
  end,
  newline,
  indent,
  dedent,
  name,
  integer,
  real,
  imaginary,
  string,
  format_string,
  bytes,
  unreadable,
  is_not,  ///< the parser makes it from two words, like the next one
  not_in,
#define QUERN_KEYWORD(id, text) id,
#define QUERN_PUNCTUATION(id, text) id,
#include "frontend/syntax/tokens.def"
};

struct Token {
  Tok kind = Tok::end;
  Place place;
};

/// "for", "**=", "a name", "the end of the line".
std::string_view text_of(Tok kind) noexcept;
bool is_keyword(Tok kind) noexcept;

}  // namespace quern::frontend
