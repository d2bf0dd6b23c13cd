// SPDX-License-Identifier: Apache-2.0
#include "compile/source/line_map.hpp"

#include <algorithm>
#include <charconv>

#include "compile/source/cpp_tokens.hpp"

namespace quern::compile {
namespace {

using std::string_view;

string_view without_blanks(string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\\"), text.size()));
  return text;
}

struct Directive {
  string_view name;  ///< "line", "if"; empty for `# 12 "file"`
  string_view rest;
};

Directive read_directive(string_view text) {
  text = without_blanks(text.substr(1));
  const std::size_t end = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), text.size());
  return {text.substr(0, end), without_blanks(text.substr(end))};
}

}  // namespace

std::optional<std::string> string_literal(string_view text) {
  if (!text.starts_with('"')) return std::nullopt;
  std::string value;
  for (std::size_t i = 1; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    value += text[i];
  }
  return value;
}

LineMap::LineMap(string_view source, std::string file_name, bool directives) {
  stretches_.push_back({std::move(file_name), 1, 0});
  if (directives) read_directives(source);
  for (string_view rest = source; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines_.push_back(line);
    rest.remove_prefix(end == string_view::npos ? rest.size() : end + 1);
  }
  stretches_.back().end = lines_.size();
}

void LineMap::read_directives(string_view source) {
  std::size_t conditionals = 0;
  for (const CppToken& token : cpp_tokens(source)) {
    if (token.kind != CppToken::Kind::directive) continue;
    const Directive directive = read_directive(token.text);
    if (directive.name.starts_with("if")) ++conditionals;
    if (directive.name == "endif" && conditionals > 0) --conditionals;
    if (directive.name != "line" && !directive.name.empty()) continue;
    std::uint32_t line = 0;
    const char* const end = directive.rest.data() + directive.rest.size();
    const auto [stop, error] = std::from_chars(directive.rest.data(), end, line);
    if (error != std::errc()) {
      certain_ = certain_ && directive.rest.empty();  // a macro, or `#` alone
      continue;
    }
    if (conditionals > 0) certain_ = false;
    const string_view behind = without_blanks({stop, static_cast<std::size_t>(end - stop)});
    stretches_.back().end = token.line - 1;  // without the directive itself
    const auto breaks = std::count(token.text.begin(), token.text.end(), '\n');
    stretches_.push_back({string_literal(behind).value_or(stretches_.back().file), line,
                          token.line + static_cast<std::size_t>(breaks)});
  }
}

std::vector<std::string> LineMap::file_names() const {
  std::vector<std::string> names;
  for (const LineRun& stretch : stretches_)
    if (std::find(names.begin(), names.end(), stretch.file) == names.end()) names.push_back(stretch.file);
  return names;
}

std::optional<string_view> LineMap::text_of(string_view file, std::uint32_t line) const {
  std::optional<string_view> found;
  for (const LineRun& stretch : stretches_) {
    if (stretch.file != file || line < stretch.line) continue;
    const std::size_t at = stretch.begin + (line - stretch.line);
    if (at >= stretch.end) continue;
    if (found || !certain_) return std::nullopt;
    found = lines_[at];
  }
  return found;
}

}  // namespace quern::compile
