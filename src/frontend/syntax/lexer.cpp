// SPDX-License-Identifier: Apache-2.0
#include "frontend/syntax/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quern::frontend {
namespace {

struct Word {
  Tok kind;
  std::string_view text;
};
constexpr Word kKeywords[] = {
#define QUERN_KEYWORD(id, text) {Tok::id, text},
#include "frontend/syntax/tokens.def"
};
constexpr Word kPunctuation[] = {
#define QUERN_PUNCTUATION(id, text) {Tok::id, text},
#include "frontend/syntax/tokens.def"
};
constexpr Word kNatures[] = {
    {Tok::end, "the end of the file"},
    {Tok::newline, "the end of the line"},
    {Tok::indent, "an indented line"},
    {Tok::dedent, "the end of the block"},
    {Tok::name, "a name"},
    {Tok::integer, "a number"},
    {Tok::real, "a number"},
    {Tok::imaginary, "a number"},
    {Tok::string, "a string"},
    {Tok::format_string, "an f-string"},
    {Tok::bytes, "a bytes literal"},
    {Tok::unreadable, "unreadable text"},
    {Tok::is_not, "is not"},
    {Tok::not_in, "not in"},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

constexpr std::size_t kTabWidth = 8;
constexpr int kDeepestFormat = 64;  // nested f-strings
constexpr std::size_t kDeepestIndent = 100;

class Lexer {
 public:
  Lexer(const SourceText& source, Report& report) : text_(source.text()), report_(report) {
    tokens_.reserve(text_.size() / 3 + 16);
  }

  std::vector<Token> run() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    begin_line();
    while (at_ < text_.size()) step();
    if (!tokens_.empty() && tokens_.back().kind != Tok::newline && tokens_.back().kind != Tok::dedent)
      add(Tok::newline, at_);
    for (; indents_.size() > 1; indents_.pop_back()) add(Tok::dedent, at_);
    add(Tok::end, at_);
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  Place from(std::size_t begin) const {
    return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
  }
  void add(Tok kind, std::size_t begin) { tokens_.push_back({kind, from(begin)}); }
  void fail(std::size_t begin, std::string message, std::string hint) {
    report_.error(from(begin), "syntax", std::move(message), std::move(hint));
  }

  void step() {
    const char c = peek();
    if (c == '\n') return end_line();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
    } else if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
    } else if (c == '\\') {
      join_lines();
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else if (is_name_start(c)) {
      word();
    } else if (c == '"' || c == '\'') {
      string(at_, "");
    } else {
      punctuation();
    }
  }

  void end_line() {
    const std::size_t begin = at_++;
    if (depth_ == 0) {
      tokens_.push_back(
          {Tok::newline, {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin)}});
      begin_line();
    }
  }

  // Skips blank lines and comments, then compares the indentation with the block's.
  void begin_line() {
    for (;;) {
      std::size_t column = 0, narrow = 0;  // the column with tabs of width 8, and with tabs of width 1
      const std::size_t begin = at_;
      for (;; ++at_) {
        if (peek() == ' ')
          ++column, ++narrow;
        else if (peek() == '\t')
          column += kTabWidth - column % kTabWidth, ++narrow;
        else if (peek() == '\f')
          column = narrow = 0;
        else
          break;
      }
      if (peek() == '#')
        while (at_ < text_.size() && peek() != '\n') ++at_;
      if (peek() == '\r') ++at_;
      if (at_ >= text_.size()) return;
      if (peek() == '\n') {
        ++at_;
        continue;
      }
      return indent_to(column, narrow, begin);
    }
  }

  void indent_to(std::size_t column, std::size_t narrow, std::size_t begin) {
    // As in CPython, the blocks must be the same for any tab width.
    std::size_t block = indents_.size() - 1;
    while (block > 0 && column < indents_[block]) --block;
    if (column > indents_[block] ? narrow <= narrow_[block]
                                 : column == indents_[block] && narrow != narrow_[block])
      fail(begin, "tabs and spaces of the indentation do not agree with the lines before (Python's TabError)",
           "indent with spaces alone");
    narrow_.resize(block + 1);
    if (column > indents_[block]) narrow_.push_back(narrow);
    if (column > indents_.back()) {
      if (indents_.size() > kDeepestIndent) {
        at_ = text_.size();  // otherwise the rest would be reported repeatedly
        return fail(begin, fmt::format("blocks are nested more than {} deep", kDeepestIndent),
                    "move inner blocks into device functions");
      }
      indents_.push_back(column);
      return add(Tok::indent, begin);
    }
    while (column < indents_.back()) {
      indents_.pop_back();
      tokens_.push_back({Tok::dedent, {static_cast<std::uint32_t>(at_), static_cast<std::uint32_t>(at_)}});
    }
    if (column != indents_.back()) {
      fail(begin, "this line's indentation fits no block around it",
           "indent it like the lines of the block that it belongs to");
      if (indents_.size() > 1) indents_.back() = column;
    }
  }

  void join_lines() {
    const std::size_t begin = at_++;
    if (peek() == '\r') ++at_;
    if (peek() == '\n') {
      ++at_;
      return;
    }
    fail(begin, "a backslash must be the last character of its line", "remove it, or what follows it");
    add(Tok::unreadable, begin);
  }

  void digits(bool hex) {
    while ((hex ? is_hex(peek()) : is_digit(peek())) ||
           (peek() == '_' && (hex ? is_hex(peek(1)) : is_digit(peek(1)))))
      ++at_;
  }

  void number() {
    const std::size_t begin = at_;
    Tok kind = Tok::integer;
    const char base = static_cast<char>(peek(1) | 0x20);
    if (peek() == '0' && (base == 'x' || base == 'b' || base == 'o')) {
      at_ += 2;
      digits(true);
    } else {
      digits(false);
      if (peek() == '.') ++at_, kind = Tok::real, digits(false);
      const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if ((peek() | 0x20) == 'e' && is_digit(peek(1 + sign)))
        at_ += 1 + sign, kind = Tok::real, digits(false);
      if ((peek() | 0x20) == 'j') ++at_, kind = Tok::imaginary;
    }
    if (is_name_part(peek())) {
      while (is_name_part(peek())) ++at_;
      fail(begin, fmt::format("'{}' is no number", text_.substr(begin, at_ - begin)),
           "a name does not begin with a digit");
      kind = Tok::unreadable;
    }
    add(kind, begin);
  }

  void word() {
    const std::size_t begin = at_;
    while (is_name_part(peek())) ++at_;
    const std::string_view text = text_.substr(begin, at_ - begin);
    if ((peek() == '"' || peek() == '\'') && text.size() <= 2 &&
        text.find_first_not_of("rRbBuUfF") == std::string_view::npos)
      return string(begin, text);
    for (const Word& keyword : kKeywords)
      if (keyword.text[0] == text[0] && keyword.text == text) return add(keyword.kind, begin);
    add(Tok::name, begin);
  }

  void string(std::size_t begin, std::string_view prefix) {
    const bool format = prefix.find_first_of("fF") != std::string_view::npos;
    const bool bytes = prefix.find_first_of("bB") != std::string_view::npos;
    if (!skip_string(format, 0)) {
      fail(begin, "this string does not end", "close it with the quote that opens it");
      add(Tok::unreadable, begin);
      return;
    }
    add(format ? Tok::format_string : bytes ? Tok::bytes : Tok::string, begin);
  }

  // Called at a quote: moves after the end of the string. Returns false if the string is unterminated; then
  // the position is the end of the line.
  bool skip_string(bool format, int depth) {
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '\\') {
        at_ += 2;
      } else if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
        at_ += triple ? 3 : 1;
        return true;
      } else if (c == '\n' && !triple) {
        return false;
      } else if (format && c == '{' && peek(1) != '{') {
        if (!skip_replacement(depth + 1, triple)) return false;
      } else {
        at_ += format && c == '{' ? 2 : 1;
      }
    }
    at_ = std::min(at_, text_.size());
    return false;
  }

  // Called at the '{' of an f-string: moves after its '}'. Strings in it may use any quote, as in Python
  // 3.12.
  bool skip_replacement(int depth, bool many_lines) {
    if (depth > kDeepestFormat) return false;
    std::size_t open = 0;
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '\n' && !many_lines) return false;
      if (c == '"' || c == '\'') {
        const char before = at_ > 0 ? static_cast<char>(text_[at_ - 1] | 0x20) : ' ';
        if (!skip_string(before == 'f', depth)) return false;
        continue;
      }
      ++at_;
      if (c == '{' || c == '(' || c == '[') ++open;
      if (c == '}' || c == ')' || c == ']')
        if (--open == 0) return true;
    }
    return false;
  }

  void punctuation() {
    const std::string_view rest = text_.substr(at_);
    for (const Word& mark : kPunctuation) {
      if (mark.text[0] != rest[0] || !rest.starts_with(mark.text)) continue;
      const std::size_t begin = at_;
      at_ += mark.text.size();
      nest(mark.kind);
      return add(mark.kind, begin);
    }
    const std::size_t begin = at_++;
    fail(begin, fmt::format("'{}' has no meaning here", text_[begin] > ' ' ? text_.substr(begin, 1) : "?"),
         "remove this character");
    add(Tok::unreadable, begin);
  }

  void nest(Tok kind) {
    if (kind == Tok::open_round || kind == Tok::open_square || kind == Tok::open_curly) ++depth_;
    if ((kind == Tok::close_round || kind == Tok::close_square || kind == Tok::close_curly) && depth_ > 0)
      --depth_;
  }

  std::string_view text_;
  Report& report_;
  std::vector<Token> tokens_;
  std::vector<std::size_t> indents_ = {0};
  std::vector<std::size_t> narrow_ = {0};  // the same with tabs of one column
  std::size_t at_ = 0;
  std::size_t depth_ = 0;  // nesting depth of brackets; inside them lines do not end
};

}  // namespace

std::string_view text_of(Tok kind) noexcept {
  for (const Word& word : kNatures)
    if (word.kind == kind) return word.text;
  for (const Word& word : kKeywords)
    if (word.kind == kind) return word.text;
  for (const Word& word : kPunctuation)
    if (word.kind == kind) return word.text;
  return {};
}

bool is_keyword(Tok kind) noexcept { return kind >= Tok::k_false && kind <= Tok::k_yield; }

std::vector<Token> read_tokens(const SourceText& source, Report& report) {
  return Lexer(source, report).run();
}

}  // namespace quern::frontend
