// SPDX-License-Identifier: Apache-2.0
#include "compile/source/cpp_tokens.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace quern::compile {
namespace {

using std::string_view;
using Kind = CppToken::Kind;

// Bytes beyond ASCII belong to identifiers.
bool is_word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 128;
}
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class Reader {
 public:
  explicit Reader(string_view source) : source_(source) {}

  std::vector<CppToken> read() {
    for (skip_blanks(); at_ < source_.size(); skip_blanks()) {
      const std::size_t begin = at_;
      const std::uint32_t line = line_;
      const Kind kind = token();
      tokens_.push_back({kind, source_.substr(begin, at_ - begin), line});
    }
    return std::move(tokens_);
  }

 private:
  bool looking_at(string_view text) const { return source_.substr(at_).starts_with(text); }

  void advance(std::size_t end) {
    end = std::min(end, source_.size());
    const std::size_t count = end - at_;
    const string_view passed = source_.substr(at_, count);
    line_ += static_cast<std::uint32_t>(std::count(passed.begin(), passed.end(), '\n'));
    at_ = end;
  }

  void skip_blanks() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\n') fresh_line_ = true;
      if (std::isspace(static_cast<unsigned char>(c)) != 0 || looking_at("\\\n"))
        advance(at_ + (c == '\\' ? 2 : 1));
      else if (looking_at("//") || looking_at("/*"))
        skip_comment();
      else
        return;
    }
  }

  void skip_comment() {
    if (looking_at("/*")) {
      const std::size_t end = source_.find("*/", at_ + 2);
      advance(end == string_view::npos ? end : end + 2);
    } else {
      advance(end_of_line());
    }
  }

  // The end of the line; a backslash at its end continues it on the next line.
  std::size_t end_of_line() const {
    std::size_t end = source_.find('\n', at_);
    while (end != string_view::npos && end > 0) {
      const std::size_t last = source_[end - 1] == '\r' && end > 1 ? end - 2 : end - 1;
      if (source_[last] != '\\') break;
      end = source_.find('\n', end + 1);
    }
    return std::min(end, source_.size());
  }

  Kind token() {
    const bool first = std::exchange(fresh_line_, false);
    const char c = source_[at_];
    if (c == '#' && first) return directive();
    if (c == '"' || c == '\'') return quoted(c);
    if (is_word_start(c)) return word();
    if (is_digit(c) || (c == '.' && at_ + 1 < source_.size() && is_digit(source_[at_ + 1]))) return number();
    advance(at_ + (looking_at("::") || looking_at("->") ? 2 : 1));
    return Kind::punctuation;
  }

  // A comment in a directive may run over lines and does not end it. Strings hold no comments.
  Kind directive() {
    while (at_ < source_.size()) {
      const std::size_t end = end_of_line();
      const std::size_t next = std::min(source_.find_first_of("\"'/", at_), end);
      advance(next);
      if (next == end || looking_at("//")) {
        advance(end);
        break;
      }
      if (looking_at("/*"))
        skip_comment();
      else
        advance(source_[at_] == '/' ? at_ + 1 : end_of_literal(end));
    }
    return Kind::directive;
  }

  /// The position behind the literal that begins here, or behind its quote if the line ends first, as in
  /// `#error don't`.
  std::size_t end_of_literal(std::size_t end_of_line) const {
    for (std::size_t at = at_ + 1; at < end_of_line; ++at) {
      if (source_[at] == source_[at_]) return at + 1;
      if (source_[at] == '\\') ++at;
    }
    return at_ + 1;
  }

  Kind quoted(char quote) {
    advance(at_ + 1);
    while (at_ < source_.size() && source_[at_] != quote && source_[at_] != '\n')
      advance(at_ + (source_[at_] == '\\' ? 2 : 1));
    if (at_ < source_.size() && source_[at_] == quote) advance(at_ + 1);
    return quote == '"' ? Kind::string : Kind::character;
  }

  Kind raw_string() {
    const std::size_t open = source_.find('(', at_);
    if (open == string_view::npos) return advance(source_.size()), Kind::string;
    const std::string close = ")" + std::string(source_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const std::size_t end = source_.find(close, open);
    advance(end == string_view::npos ? end : end + close.size());
    return Kind::string;
  }

  Kind word() {
    const std::size_t begin = at_;
    while (at_ < source_.size() && (is_word_start(source_[at_]) || is_digit(source_[at_]))) ++at_;
    const string_view text = source_.substr(begin, at_ - begin);
    const bool prefix = text == "u8" || text == "u" || text == "U" || text == "L" || text.ends_with('R');
    if (!prefix || at_ == source_.size()) return Kind::word;
    if (source_[at_] == '"' && (text == "R" || text == "u8R" || text == "uR" || text == "UR" || text == "LR"))
      return raw_string();
    if (source_[at_] == '"' && !text.ends_with('R')) return quoted('"');
    if (source_[at_] == '\'' && !text.ends_with('R')) return quoted('\'');
    return Kind::word;
  }

  // 1'000, 0x1p-3, 1e+5f: a preprocessing number.
  Kind number() {
    ++at_;
    while (at_ < source_.size()) {
      const char c = source_[at_], before = source_[at_ - 1];
      const bool sign = (c == '+' || c == '-') && string_view("eEpP").find(before) != string_view::npos;
      const bool separator = c == '\'' && at_ + 1 < source_.size() &&
                             (is_word_start(source_[at_ + 1]) || is_digit(source_[at_ + 1]));
      if (!sign && !separator && c != '.' && !is_word_start(c) && !is_digit(c)) break;
      ++at_;
    }
    return Kind::number;
  }

  string_view source_;
  std::vector<CppToken> tokens_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool fresh_line_ = true;
};

}  // namespace

std::vector<CppToken> cpp_tokens(string_view source) { return Reader(source).read(); }

string_view trim_left(string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  return text;
}

std::optional<HeaderName> header_name(string_view text) {
  text = trim_left(text);
  if (text.empty() || (text[0] != '<' && text[0] != '"')) return std::nullopt;
  const std::size_t end = text.find(text[0] == '<' ? '>' : '"', 1);
  if (end == string_view::npos) return std::nullopt;
  return HeaderName{text.substr(1, end - 1), text[0] == '"'};
}

}  // namespace quern::compile
