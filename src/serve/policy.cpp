// SPDX-License-Identifier: Apache-2.0
#include "serve/policy.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace quern::serve {
namespace {

using std::string_view;

struct Rule {
  string_view spelling;
  bool takes_value;
  string_view only;  // empty if any value is accepted
};
constexpr Rule kRules[] = {
#define QUERN_FLAG(spelling) {spelling, false, {}},
#define QUERN_VALUE(spelling) {spelling, true, {}},
#define QUERN_ONLY(spelling, value) {spelling, true, value},
#include "serve/options.def"
#undef QUERN_FLAG
#undef QUERN_VALUE
#undef QUERN_ONLY
};

constexpr string_view kHasWords[] = {"__has_include", "__has_include_next", "__has_embed"};
constexpr string_view kDirectives[] = {"include", "include_next", "import", "embed"};

struct Match {
  const Rule* rule = nullptr;
  std::optional<string_view> value;
};

Match match(string_view option) {
  if (!option.starts_with('-')) return {};
  option.remove_prefix(option.starts_with("--") ? 2 : 1);
  Match found;
  for (const Rule& rule : kRules) {
    if (option == rule.spelling) return {&rule, std::nullopt};
    if (!rule.takes_value || !option.starts_with(rule.spelling)) continue;
    const string_view rest = option.substr(rule.spelling.size());
    if (rest.starts_with('=')) return {&rule, rest.substr(1)};
    if (rule.spelling.size() == 1) found = {&rule, rest};  // unless a longer word fits
  }
  return found;
}

Diagnostic refusal(const char* code, string_view message, string_view hint) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.message = message;
  diagnostic.hint = hint;
  return diagnostic;
}

Diagnostic refused_option(const std::string& option, string_view why) {
  return refusal("option-refused",
                 fmt::format("the compile service does not take option '{}': {}", option, why),
                 "docs/protocol.md lists the options that it takes");
}

string_view trim_left(string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  return text;
}

/// The operand of `text`, which follows the word: <x>, "x", or either in parentheses.
std::optional<string_view> operand(string_view text) {
  text = trim_left(text);
  if (text.starts_with('(')) text = trim_left(text.substr(1));
  if (text.empty() || (text[0] != '<' && text[0] != '"')) return std::nullopt;
  const std::size_t end = text.find(text[0] == '<' ? '>' : '"', 1);
  return text.substr(1, end == string_view::npos ? end : end - 1);
}

/// The operands of a line: of a directive that reads a file, and of tests for files.
std::vector<string_view> operands(string_view line) {
  std::vector<string_view> found;
  const auto add = [&](string_view text) {
    if (const auto path = operand(text)) found.push_back(*path);
  };
  if (string_view rest = trim_left(line); rest.starts_with('#')) {
    rest = trim_left(rest.substr(1));
    for (const string_view word : kDirectives)
      if (rest.starts_with(word)) add(rest.substr(word.size()));
  }
  for (const string_view word : kHasWords)
    for (std::size_t at = line.find(word); at != string_view::npos; at = line.find(word, at + 1))
      add(line.substr(at + word.size()));
  return found;
}

struct Text {
  std::filesystem::path folder;
  const std::set<std::string, std::less<>>& headers;

  bool refuses(string_view path) const {
    if (headers.contains(path)) return false;
    const std::string joined = (folder / path).lexically_normal().generic_string();
    return leaves_its_folder(joined) && !headers.contains(joined);
  }
};

}  // namespace

bool leaves_its_folder(string_view path) {
  if (path.starts_with('/')) return true;
  int depth = 0;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const string_view part = path.substr(0, slash);
    if (part == "..") {
      if (--depth < 0) return true;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
    path = slash == string_view::npos ? string_view() : path.substr(slash + 1);
  }
  return false;
}

Diagnostics refused_options(const std::vector<std::string>& options) {
  Diagnostics refused;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    Match matched = match(option);
    if (matched.rule == nullptr) {
      refused.push_back(refused_option(option, "it is not one of the options that name no file"));
      continue;
    }
    if (matched.rule->takes_value && !matched.value) {
      if (i + 1 == options.size()) {
        refused.push_back(refused_option(option, "its value is missing"));
        continue;
      }
      matched.value = options[++i];
      // NVRTC may take the word before for one without a value, and this one for an option.
      if (matched.value->starts_with('-'))
        refused.push_back(
            refused_option(std::string(*matched.value), "write values that begin with '-' as --name=value"));
    }
    if (!matched.rule->only.empty() && *matched.value != matched.rule->only)
      refused.push_back(
          refused_option(option, fmt::format("only the value '{}' is taken", matched.rule->only)));
  }
  return refused;
}

Diagnostics refused_includes(string_view text, const std::string& name,
                             const std::set<std::string, std::less<>>& headers) {
  const Text reader{std::filesystem::path(name).parent_path(), headers};
  Diagnostics refused;
  std::uint32_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const string_view line = text.substr(0, end);
    ++number;
    for (const string_view path : operands(line)) {
      if (!reader.refuses(path)) continue;
      refused.push_back(refusal(
          "include-refused",
          fmt::format("the compile service does not include '{}': it is outside the request and the toolkit",
                      path.substr(0, 200)),
          "give the header's text with the request, under this name"));
      refused.back().span = {name, number, 0, 0};
      refused.back().source_line = std::string(line.substr(0, 200));
    }
    text = end == string_view::npos ? string_view() : text.substr(end + 1);
  }
  return refused;
}

}  // namespace quern::serve
