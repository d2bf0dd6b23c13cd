// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "frontend/syntax/token.hpp"

namespace quern::frontend {

/// The tokens of a file, with a current token and the reporting of syntax errors. After an error the cursor
/// is in panic mode, in which it reports nothing, until the parser has found the next statement.
class TokenCursor {
 protected:
  TokenCursor(const std::vector<Token>& tokens, const SourceText& source, Report& report)
      : tokens_(tokens), source_(source), report_(report) {}

  const Token& token() const { return tokens_[at_]; }
  const Token& next_token() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  bool at(Tok kind) const { return token().kind == kind; }
  bool accept(Tok kind);
  /// Consumes a token of this kind, or reports that it is missing; `what` completes "':' is expected ...".
  bool expect(Tok kind, const char* what);
  void advance();
  void fail(Place place, std::string message, std::string hint = {});
  /// Skips to the next statement. The caller handles a block that follows.
  void skip_line();
  /// Skips to the bracket that closes the innermost open one.
  void skip_to_close(Tok close);
  /// Consumes the bracket that closes the one at `open`. If another line has begun before it, the open
  /// bracket is reported.
  void close(Tok kind, Place open, const char* what);
  /// From the begin of `first` to the end of the last consumed token.
  Place since(Place first) const;

  const std::vector<Token>& tokens_;
  const SourceText& source_;
  Report& report_;
  std::size_t at_ = 0;
  bool panic_ = false;  // an error in this statement was reported
};

}  // namespace quern::frontend
