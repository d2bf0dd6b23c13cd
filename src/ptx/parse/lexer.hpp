// SPDX-License-Identifier: Apache-2.0
// Splits PTX text into tokens ("Source Format", "Identifiers", "Constants"). Tokens are views into the text;
// the lexer allocates nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ptx/module.hpp"

namespace quern::ptx {

enum class TokenKind : std::uint8_t {
  end,
  identifier,  ///< name, %name, $name, _
  word,        ///< .name, also .2d and .shared::cta; `text` includes the dot
  integer,
  floating,
  string,   ///< `text` includes the quotes
  symbol,   ///< punctuation; one or two characters
  invalid,  ///< `text` is the part that is no token
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  TextPosition position;

  bool is(char c) const noexcept { return kind == TokenKind::symbol && text.size() == 1 && text[0] == c; }
  bool is(std::string_view symbol) const noexcept { return kind == TokenKind::symbol && text == symbol; }
  bool is_word(std::string_view dotted) const noexcept { return kind == TokenKind::word && text == dotted; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) noexcept : text_(text) {}
  Token next() noexcept;

 private:
  bool skip_blanks() noexcept;  ///< false if a comment has no end
  Token number(std::size_t start) noexcept;
  Token dotted(std::size_t start) noexcept;
  Token quoted(std::size_t start) noexcept;
  Token make(TokenKind kind, std::size_t start, std::size_t end) noexcept;
  char at(std::size_t index) const noexcept { return index < text_.size() ? text_[index] : '\0'; }

  std::string_view text_;
  std::size_t cursor_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
};

/// Returns the value of an integer token, or nothing if it has an invalid digit or more than 64 bits.
std::optional<IntegerOperand> integer_value(std::string_view text) noexcept;
/// Returns the value of a floating-point token: 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX or decimal.
std::optional<FloatOperand> floating_value(std::string_view text) noexcept;

bool is_identifier_part(char c) noexcept;

}  // namespace quern::ptx
