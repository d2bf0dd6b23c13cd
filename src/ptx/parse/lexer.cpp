// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/lexer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>

namespace quern::ptx {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool starts_identifier(char c) noexcept { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
bool is_exponent(char c) noexcept { return c == 'e' || c == 'E'; }

// True if all of `text` is a decimal number: digits, with or without a '.' and an exponent.
bool is_decimal_float(std::string_view text) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() && error != std::errc::invalid_argument;
}

std::optional<std::uint64_t> unsigned_value(std::string_view digits, int base) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool has_prefix(std::string_view text, char letter) noexcept {
  return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == letter;
}

}  // namespace

bool is_identifier_part(char c) noexcept { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

Token Lexer::make(TokenKind kind, std::size_t start, std::size_t end) noexcept {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  cursor_ = end;
  return {kind,
          text_.substr(start, end - start),
          {line_, static_cast<std::uint32_t>(std::min(start - line_start_ + 1, kMost))}};
}

bool Lexer::skip_blanks() noexcept {
  const auto newline = [this] {
    ++line_;
    line_start_ = cursor_ + 1;
  };
  for (; cursor_ < text_.size(); ++cursor_) {
    const char c = text_[cursor_];
    if (c == '\n') {
      newline();
    } else if (c == '/' && at(cursor_ + 1) == '/') {
      while (cursor_ + 1 < text_.size() && text_[cursor_ + 1] != '\n') ++cursor_;
    } else if (c == '/' && at(cursor_ + 1) == '*') {
      const std::size_t end = text_.find("*/", cursor_ + 2);
      if (end == std::string_view::npos) return false;
      for (; cursor_ < end + 1; ++cursor_) {
        if (text_[cursor_] == '\n') newline();
      }
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\f' && c != '\v') {
      return true;
    }
  }
  return true;
}

Token Lexer::number(std::size_t start) noexcept {
  const bool based = at(start) == '0' && is_letter(at(start + 1)) && !is_exponent(at(start + 1));
  std::size_t end = start;
  while (is_identifier_part(at(end)) || (!based && at(end) == '.') ||
         (!based && (at(end) == '-' || at(end) == '+') && end > start && is_exponent(at(end - 1)))) {
    ++end;
  }
  const std::string_view text = text_.substr(start, end - start);
  if (has_prefix(text, 'f') || has_prefix(text, 'd')) {
    return make(floating_value(text) ? TokenKind::floating : TokenKind::invalid, start, end);
  }
  if (integer_value(text)) return make(TokenKind::integer, start, end);
  return make(floating_value(text) ? TokenKind::floating : TokenKind::invalid, start, end);
}

// ".5" is a number, ".2d" is a word.
Token Lexer::dotted(std::size_t start) noexcept {
  std::size_t end = start + 1;
  while (is_identifier_part(at(end)) ||
         (at(end) == ':' && at(end + 1) == ':' && is_identifier_part(at(end + 2)))) {
    end += at(end) == ':' ? 2 : 1;
  }
  if (end == start + 1) return make(TokenKind::invalid, start, end);
  if (is_digit(at(start + 1)) && is_decimal_float(text_.substr(start, end - start))) return number(start);
  return make(TokenKind::word, start, end);
}

Token Lexer::quoted(std::size_t start) noexcept {
  std::size_t end = start + 1;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
    end += at(end) == '\\' && at(end + 1) != '\n' && end + 1 < text_.size() ? 2 : 1;
  }
  if (at(end) != '"') return make(TokenKind::invalid, start, std::min(end, text_.size()));
  return make(TokenKind::string, start, end + 1);
}

Token Lexer::next() noexcept {
  if (!skip_blanks()) return make(TokenKind::invalid, cursor_, text_.size());
  if (cursor_ >= text_.size()) return make(TokenKind::end, text_.size(), text_.size());
  const std::size_t start = cursor_;
  const char c = text_[start];
  if (starts_identifier(c) && (c != '%' || is_identifier_part(at(start + 1)))) {
    std::size_t end = start + 1;
    while (is_identifier_part(at(end))) ++end;
    return make(TokenKind::identifier, start, end);
  }
  if (is_digit(c)) return number(start);
  if (c == '.') return dotted(start);
  if (c == '"') return quoted(start);
  static constexpr std::array<std::string_view, 8> kPairs = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
  const std::string_view two = text_.substr(start, 2);
  if (std::find(kPairs.begin(), kPairs.end(), two) != kPairs.end())
    return make(TokenKind::symbol, start, start + 2);
  static constexpr std::string_view kSingles = "{}()[],;:=+-!~|&^*/%<>?@";
  const bool known = kSingles.find(c) != std::string_view::npos;
  return make(known ? TokenKind::symbol : TokenKind::invalid, start, start + 1);
}

std::optional<IntegerOperand> integer_value(std::string_view text) noexcept {
  bool is_unsigned = false;
  if (text.size() > 1 && (text.back() == 'U' || text.back() == 'u')) {
    is_unsigned = true;
    text.remove_suffix(1);
  }
  std::optional<std::uint64_t> value;
  if (has_prefix(text, 'x')) {
    value = unsigned_value(text.substr(2), 16);
  } else if (has_prefix(text, 'b')) {
    value = unsigned_value(text.substr(2), 2);
  } else {
    const bool octal = text.size() > 1 && text[0] == '0';
    value = unsigned_value(octal ? text.substr(1) : text, octal ? 8 : 10);
  }
  if (!value) return std::nullopt;
  return IntegerOperand{*value, is_unsigned || *value > std::uint64_t{0x7fffffffffffffff}};
}

std::optional<FloatOperand> floating_value(std::string_view text) noexcept {
  const bool single = has_prefix(text, 'f');
  if (single || has_prefix(text, 'd')) {
    if (text.size() != (single ? 10u : 18u)) return std::nullopt;
    const std::optional<std::uint64_t> bits = unsigned_value(text.substr(2), 16);
    if (!bits) return std::nullopt;
    return FloatOperand{*bits, single};
  }
  if (text.find_first_of(".eE") == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return FloatOperand{std::bit_cast<std::uint64_t>(value), false};
}

}  // namespace quern::ptx
