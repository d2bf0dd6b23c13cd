// SPDX-License-Identifier: Apache-2.0
// State that the parts of the parser share: the token stream with one token of look-ahead, the report, the
// names, the module.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ptx/module.hpp"
#include "ptx/parse/lexer.hpp"
#include "ptx/parse/report.hpp"
#include "ptx/parse/scopes.hpp"
#include "ptx/ptx.hpp"

namespace quern::ptx {

class TokenStream {
 public:
  explicit TokenStream(std::string_view text) noexcept : lexer_(text), current_(lexer_.next()) {}

  const Token& current() const noexcept { return current_; }
  const Token& peek() noexcept {
    if (!ahead_) ahead_ = lexer_.next();
    return *ahead_;
  }
  Token take() noexcept {
    previous_ = current_;
    current_ = ahead_ ? *ahead_ : lexer_.next();
    ahead_.reset();
    return previous_;
  }
  bool accept(char symbol) noexcept {
    if (!current_.is(symbol)) return false;
    take();
    return true;
  }
  bool accept_word(std::string_view dotted) noexcept {
    if (!current_.is_word(dotted)) return false;
    take();
    return true;
  }
  bool at_end() const noexcept { return current_.kind == TokenKind::end; }
  /// True if the current token is the first one of its line.
  bool on_new_line() const noexcept { return current_.position.line != previous_.position.line; }
  /// Returns an empty token at the position right after the previous one.
  Token behind_previous() const noexcept {
    Token place{TokenKind::symbol, previous_.text.substr(previous_.text.size()), previous_.position};
    place.position.column += static_cast<std::uint32_t>(previous_.text.size());
    return place;
  }

 private:
  Lexer lexer_;
  Token current_;
  std::optional<Token> ahead_;
  Token previous_;
};

struct ParseContext {
  ParseContext(std::string_view source, std::string_view file_name, const Limits& the_limits)
      : text(source), tokens(source), report(source, file_name, the_limits.max_errors), limits(the_limits) {}

  std::string_view text;
  TokenStream tokens;
  Report report;
  Scopes scopes;
  Module module;
  Limits limits;
  std::uint32_t nesting = 0;
  std::uint32_t register_count = 0;

  /// Reports an error at `token`. Returns false, so that callers can write `return fail(...)`.
  bool fail(const Token& token, std::string message, std::string hint = {}, std::string_view code = kSyntax);
  /// Reports that `what` was expected instead of the current token.
  bool fail_expected(std::string_view what);
  bool expect(char symbol);
  std::optional<Token> expect_identifier(std::string_view what);
  /// Reads a plain integer token as a 32-bit number.
  std::optional<std::uint32_t> expect_u32(std::string_view what);

  /// Skips past the next ';', or up to a '}' of this level, over nested braces.
  void skip_statement();
  /// Skips a balanced `open ... close`; the current token is `open`. Returns false at the end of the text.
  bool skip_balanced(char open, char close);
};

/// Counts one level of nesting during its lifetime. `ok()` is false beyond the limit; the constructor then
/// reports that.
class NestingGuard {
 public:
  explicit NestingGuard(ParseContext& context) : context_(context) {
    ok_ = ++context_.nesting <= context_.limits.max_nesting;
    if (!ok_)
      context_.fail(context_.tokens.current(), "this is nested too deeply",
                    "the limit is " + std::to_string(context_.limits.max_nesting) + " levels");
  }
  ~NestingGuard() { --context_.nesting; }
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;
  bool ok() const noexcept { return ok_; }

 private:
  ParseContext& context_;
  bool ok_ = false;
};

/// Returns "'foo'", or "the end of the text".
std::string describe(const Token& token);

}  // namespace quern::ptx
