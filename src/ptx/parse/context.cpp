// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/context.hpp"

#include <fmt/format.h>

#include <limits>

namespace quern::ptx {
namespace {
constexpr std::size_t kLongestQuote = 60;
}

std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  const std::string_view text = token.text.substr(0, token.text.find('\n'));
  if (text.size() <= kLongestQuote) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", text.substr(0, kLongestQuote));
}

bool ParseContext::fail(const Token& token, std::string message, std::string hint, std::string_view code) {
  report.error(code, token, std::move(message), std::move(hint));
  return false;
}

bool ParseContext::fail_expected(std::string_view what) {
  const Token& token = tokens.current();
  if (token.kind == TokenKind::invalid) {
    if (token.text.starts_with("/*")) return fail(token, "this comment has no end");
    if (token.text.starts_with("\"")) return fail(token, "this string has no end");
    const bool number = token.text[0] >= '0' && token.text[0] <= '9';
    return fail(token, fmt::format("{} is not {}", describe(token),
                                   number ? "a number PTX can hold" : "part of PTX"));
  }
  return fail(token, fmt::format("expected {} before {}", what, describe(token)));
}

bool ParseContext::expect(char symbol) {
  if (tokens.accept(symbol)) return true;
  return fail_expected(fmt::format("'{}'", symbol));
}

std::optional<Token> ParseContext::expect_identifier(std::string_view what) {
  if (tokens.current().kind == TokenKind::identifier) return tokens.take();
  fail_expected(what);
  return std::nullopt;
}

std::optional<std::uint32_t> ParseContext::expect_u32(std::string_view what) {
  if (tokens.current().kind == TokenKind::integer) {
    const std::optional<IntegerOperand> value = integer_value(tokens.current().text);
    if (value && value->bits <= std::numeric_limits<std::uint32_t>::max()) {
      tokens.take();
      return static_cast<std::uint32_t>(value->bits);
    }
    fail(tokens.current(), fmt::format("{} is too large for {}", describe(tokens.current()), what));
    return std::nullopt;
  }
  fail_expected(what);
  return std::nullopt;
}

bool ParseContext::skip_balanced(char open, char close) {
  std::uint64_t depth = 0;
  do {
    if (tokens.at_end()) return false;
    if (tokens.current().is(open)) ++depth;
    if (tokens.current().is(close)) --depth;
    tokens.take();
  } while (depth != 0);
  return true;
}

void ParseContext::skip_statement() {
  while (!tokens.at_end()) {
    if (tokens.accept(';')) return;
    // If more of the statement follows a '}', it closes a vector and not a block.
    const bool closes_vector = tokens.current().is('}') && (tokens.peek().is(',') || tokens.peek().is(';') ||
                                                            tokens.peek().is(')') || tokens.peek().is(']'));
    if (tokens.current().is('}') && !closes_vector) return;
    if (tokens.current().is('{')) {
      skip_balanced('{', '}');
    } else {
      tokens.take();
    }
  }
}

}  // namespace quern::ptx
