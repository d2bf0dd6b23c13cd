// SPDX-License-Identifier: Apache-2.0
#include "frontend/syntax/token_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quern::frontend {

bool TokenCursor::accept(Tok kind) {
  if (!at(kind)) return false;
  advance();
  return true;
}

void TokenCursor::advance() {
  if (at_ + 1 < tokens_.size()) ++at_;
}

bool TokenCursor::expect(Tok kind, const char* what) {
  if (panic_) return false;
  if (accept(kind)) return true;
  const Token found = token();
  if (found.kind == Tok::unreadable) {
    panic_ = true;
    return false;
  }
  const std::string text = found.kind <= Tok::unreadable && found.kind != Tok::name
                               ? std::string(text_of(found.kind))
                               : fmt::format("'{}'", source_.at(found.place));
  const std::string wanted =
      kind <= Tok::unreadable ? std::string(text_of(kind)) : fmt::format("'{}'", text_of(kind));
  fail(found.place, fmt::format("{} is expected {}, not {}", wanted, what, text));
  return false;
}

void TokenCursor::fail(Place place, std::string message, std::string hint) {
  if (!panic_) report_.error(place, "syntax", std::move(message), std::move(hint));
  panic_ = true;
}

void TokenCursor::skip_line() {
  while (!at(Tok::newline) && !at(Tok::end) && !at(Tok::indent) && !at(Tok::dedent)) advance();
  accept(Tok::newline);
}

void TokenCursor::skip_to_close(Tok close) {
  std::size_t open = 0;
  for (; !at(Tok::end); advance()) {
    if (at(Tok::open_round) || at(Tok::open_square) || at(Tok::open_curly)) ++open;
    if (!at(Tok::close_round) && !at(Tok::close_square) && !at(Tok::close_curly)) continue;
    if (open == 0) break;
    --open;
  }
  if (!at(close) && !at(Tok::end)) expect(close, "here");
}

void TokenCursor::close(Tok kind, Place open, const char* what) {
  if (panic_ || accept(kind)) return;
  const bool later = source_.line_of(token().place.begin) > source_.line_of(open.begin);
  if (at(Tok::end) || (later && !at(Tok::unreadable)))
    fail(open, fmt::format("this '{}' is never closed", source_.at(open)),
         fmt::format("add the '{}' that is missing", text_of(kind)));
  else
    expect(kind, what);
}

Place TokenCursor::since(Place first) const {
  const std::uint32_t end = at_ > 0 ? tokens_[at_ - 1].place.end : first.end;
  return {first.begin, std::max(end, first.begin)};
}

}  // namespace quern::frontend
