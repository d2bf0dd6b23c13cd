// SPDX-License-Identifier: Apache-2.0
#include "compile/source/directives.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <span>

#include "compile/source/cpp_tokens.hpp"

namespace quern::compile {
namespace {

using std::string_view;
using Kind = CppToken::Kind;

/// Directives that read no file.
constexpr string_view kHarmless[] = {"ifdef", "ifndef", "elifdef", "elifndef", "else", "endif",
                                     "undef", "line",   "error",   "warning",  "ident"};
constexpr string_view kTimes[] = {"__TIME__", "__DATE__", "__TIMESTAMP__"};
constexpr string_view kHasInclude = "__has_include";
/// Macros can join such parts to the operator's name.
constexpr std::size_t kLeastPrefix = 3;
constexpr std::size_t kLeastSuffix = 8;

struct Spelling {
  string_view text;
  const char* why;
};
constexpr Spelling kSpellings[] = {
    {"%:", "it may hold a directive in another spelling"},
    {"?\?=", "it may hold a directive in another spelling"},
    {"?\?/", "it may hold a directive in another spelling"},
    {string_view("\0", 1), "it holds a zero byte"},
    {"\xef\xbb\xbf", "it holds a byte order mark"},
};

template <std::size_t N>
bool one_of(string_view word, const string_view (&list)[N]) {
  return std::ranges::find(list, word) != std::end(list);
}

string_view take_word(string_view& text) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const auto end = std::ranges::find_if_not(text, is_word);
  const auto size = static_cast<std::size_t>(end - text.begin());
  const string_view word = text.substr(0, size);
  text.remove_prefix(size);
  return word;
}

bool is_int128(const CppToken& token) {
  return token.kind == Kind::word &&
         (token.text == "__int128" || token.text == "__int128_t" || token.text == "__uint128_t");
}

bool is_raw_string(const CppToken& token) {
  const std::size_t quote = token.text.find('"');
  return token.kind == Kind::string && quote != 0 && token.text[quote - 1] == 'R';
}

bool is_part_of_has_include(string_view word) {
  if (word.size() >= kHasInclude.size()) return false;
  return (word.size() >= kLeastPrefix && kHasInclude.starts_with(word)) ||
         (word.size() >= kLeastSuffix && kHasInclude.ends_with(word));
}

/// The text with lines joined that end in a backslash, as translation phase 2 does ([lex.phases]).
std::string join_lines(string_view text) {
  std::string joined;
  joined.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const string_view rest = text.substr(i);
    if (rest.starts_with("\\\n"))
      i += 1;
    else if (rest.starts_with("\\\r\n"))
      i += 2;
    else
      joined += text[i];
  }
  return joined;
}

class DirectiveReader {
 public:
  explicit DirectiveReader(bool raw_strings) : raw_strings_(raw_strings) {}

  Directives read(string_view text) {
    std::string joined;
    const bool continued = text.find("\\\n") != string_view::npos || text.find("\\\r\n") != string_view::npos;
    if (continued) text = joined = join_lines(text);
    for (const Spelling& spelling : kSpellings)
      if (text.find(spelling.text) != string_view::npos) unsure(spelling.why);
    for (std::size_t at = text.find('\r'); at != string_view::npos; at = text.find('\r', at + 1))
      if (!text.substr(at + 1).starts_with('\n')) unsure("it holds a carriage return within a line");
    // Lines are not joined in raw strings, which only a reader of the text as it was could tell.
    may_hold_raw_strings_ = raw_strings_ && !continued;
    for (const CppToken& token : cpp_tokens(text)) take(token);
    return std::move(result_);
  }

 private:
  void unsure(std::string why) {
    if (result_.unsure.empty()) result_.unsure = std::move(why);
  }

  void take(const CppToken& token) {
    if (token.kind == Kind::directive) return directive(trim_left(token.text.substr(1)));
    if (token.text == "\\") return unsure("it holds a backslash outside strings");
    check_raw_string(token);
    check_word(token);
  }

  void check_raw_string(const CppToken& token) {
    if (is_raw_string(token) && !may_hold_raw_strings_)
      unsure(raw_strings_ ? "it has raw strings and lines that end in a backslash"
                          : "it has text that is a raw string in later C++");
  }

  void check_word(const CppToken& token) {
    if (token.kind != Kind::word) return;
    result_.int128 = result_.int128 || is_int128(token);
    if (one_of(token.text, kTimes)) unsure("it uses " + std::string(token.text));
    if (is_part_of_has_include(token.text)) unsure("macros may make __has_include of parts");
  }

  void directive(string_view rest) {
    const string_view keyword = take_word(rest);
    if (keyword == "include") return include(rest);
    if (keyword == "define" || keyword == "if" || keyword == "elif") return tokens_of(rest);
    if (keyword == "pragma") {
      if (rest.find("include") != string_view::npos) unsure("it has a #pragma about includes");
      return;
    }
    const bool is_number = !keyword.empty() && std::isdigit(static_cast<unsigned char>(keyword[0])) != 0;
    const bool is_null = keyword.empty() && trim_left(rest).empty();
    if (!one_of(keyword, kHarmless) && !is_number && !is_null)
      unsure("only a preprocessor knows what #" + std::string(keyword) + " reads");
  }

  void include(string_view operand) {
    if (operand.find("/*") != string_view::npos) return unsure("an #include has a comment");
    name(operand, "an #include names a macro");
  }

  void name(string_view operand, const char* why_not) {
    const std::optional<HeaderName> found = header_name(operand);
    if (!found) return unsure(why_not);
    result_.includes.push_back({std::string(found->text), found->quoted});
  }

  /// The text of a condition or of a macro.
  void tokens_of(string_view text) {
    const std::vector<CppToken> tokens = cpp_tokens(text);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      // `#` of a macro at its text's beginning is read as a directive.
      if (tokens[i].kind == Kind::directive) tokens_of(tokens[i].text.substr(1));
      if (is_raw_string(tokens[i])) unsure("a directive has a raw string");
      if (tokens[i].text == "\\") unsure("it holds a backslash outside strings");
      check_word(tokens[i]);
      if (tokens[i].kind == Kind::word) has_include(text, std::span(tokens).first(i + 1));
    }
  }

  /// The last of the words, if it asks for a file.
  void has_include(string_view text, std::span<const CppToken> words) {
    const CppToken& word = words.back();
    if (!word.text.starts_with("__has_include") && !word.text.starts_with("__has_embed")) return;
    const bool after_bracket = words.size() > 1 && words[words.size() - 2].text == "(";
    const std::size_t back = after_bracket ? 3 : 2;
    if (words.size() >= back && words[words.size() - back].text == "defined") return;
    const auto end = static_cast<std::size_t>(word.text.data() - text.data()) + word.text.size();
    const string_view rest = trim_left(text.substr(end));
    if (word.text != kHasInclude || !rest.starts_with('('))
      return unsure("only a preprocessor knows what " + std::string(word.text) + " asks for");
    if (rest.find("/*") != string_view::npos) return unsure("an __has_include has a comment");
    name(rest.substr(1), "an __has_include names a macro");
  }

  const bool raw_strings_;
  bool may_hold_raw_strings_ = true;
  Directives result_;
};

}  // namespace

Directives read_directives(string_view text, bool raw_strings) {
  return DirectiveReader(raw_strings).read(text);
}

Directives read_macro_option(string_view definition) {
  std::string line = "#define " + std::string(definition);
  if (const std::size_t equals = line.find('='); equals != std::string::npos) line[equals] = ' ';
  Directives found = read_directives(line);
  if (found.unsure.empty() && !found.includes.empty()) found.unsure = "an option's macro asks for a file";
  return found;
}

bool names_int128(string_view text) { return std::ranges::any_of(cpp_tokens(text), is_int128); }

}  // namespace quern::compile
