// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/python_literal.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

namespace tool {
namespace {

constexpr int kMaxDepth = 32;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  quern::Expected<PythonLiteral> read_all() {
    PythonLiteral literal;
    if (!read(literal, 0)) return problem();
    skip_space();
    if (at_ != text_.size()) return fail("unexpected text"), problem();
    return literal;
  }

 private:
  bool fail(const char* what) {
    if (message_.empty()) message_ = fmt::format("{} at position {}", what, at_);
    return false;
  }
  quern::Diagnostic problem() const {
    quern::Diagnostic diagnostic;
    diagnostic.code = "literal";
    diagnostic.message = message_;
    return diagnostic;
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) {
    if (peek() != wanted || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  bool read(PythonLiteral& out, int depth) {
    if (depth > kMaxDepth) return fail("too deep a nesting");
    const char next = peek();
    if (next == '\'' || next == '"') return read_string(out.value.emplace<std::string>());
    if (next == '(') return read_sequence(out, ')', depth);
    if (next == '[') return read_sequence(out, ']', depth);
    if (next == '{') return read_dict(out, depth);
    if (next == '-' || std::isdigit(static_cast<unsigned char>(next)) != 0) return read_integer(out);
    return read_word(out);
  }

  bool read_word(PythonLiteral& out) {
    for (const auto& [word, value] :
         {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      out.value = value;
      return true;
    }
    if (!text_.substr(at_).starts_with("None")) return fail("neither a string, a number, a tuple nor a list");
    at_ += 4;
    out.value = PythonLiteral::None{};
    return true;
  }

  bool read_integer(PythonLiteral& out) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc()) return fail("a whole number that does not fit 64 bits");
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    out.value = number;
    return true;
  }

  bool read_string(std::string& out) {
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\') {
        ++at_;
        if (at_ >= text_.size()) break;
        if (text_[at_] != '\\' && text_[at_] != '\'' && text_[at_] != '"')
          return fail("an escape that is not understood");
      }
      out += text_[at_++];
    }
    if (at_ >= text_.size()) return fail("a string without an end");
    ++at_;
    return true;
  }

  bool read_sequence(PythonLiteral& out, char close, int depth) {
    ++at_;
    PythonLiteral::Sequence sequence;
    sequence.tuple = close == ')';
    bool comma = false;
    while (!take(close)) {
      if (!sequence.items.empty() && !comma) return fail("a comma is missing");
      if (!read(sequence.items.emplace_back(), depth + 1)) return false;
      comma = take(',');
    }
    if (sequence.tuple && sequence.items.size() == 1 && !comma) {  // parentheses around one value
      PythonLiteral only = std::move(sequence.items.front());
      out = std::move(only);
      return true;
    }
    out.value = std::move(sequence);
    return true;
  }

  bool read_dict(PythonLiteral& out, int depth) {
    ++at_;
    PythonLiteral::Dict dict;
    bool comma = true;
    while (!take('}')) {
      if (!comma) return fail("a comma is missing");
      const char next = peek();
      if (next != '\'' && next != '"') return fail("a key that is no string");
      auto& [key, value] = dict.items.emplace_back();
      if (!read_string(key)) return false;
      if (!take(':')) return fail("a colon is missing");
      if (!read(value, depth + 1)) return false;
      comma = take(',');
    }
    out.value = std::move(dict);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string message_;
};

}  // namespace

quern::Expected<PythonLiteral> read_python_literal(std::string_view text) { return Reader(text).read_all(); }

std::string python_string(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

}  // namespace tool
