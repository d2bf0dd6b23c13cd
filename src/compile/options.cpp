// SPDX-License-Identifier: Apache-2.0
#include "compile/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace quern::compile {
namespace {

using std::string_view;

enum class Effect : std::uint8_t {
  refused,
  include_directory,
  pre_include,
  standard,
  line_info,
  debug,
  stack_limit,
  relocatable,
  int128,
  uncached,
  macro,
  value,
};

struct Rule {
  string_view spelling;  // without leading dashes
  Effect effect;
  bool takes_value;    // as `--name=value`, or as the next option where it stands alone
  string_view advice;  // for a refused one
};

constexpr string_view kTargetAdvice = "the architecture is the device's; choose the device instead";
constexpr string_view kOutputAdvice = "quern needs PTX from NVRTC; leave this option out";

// NVRTC accepts every spelling with one dash or two. Options that are not here go to NVRTC unread.
constexpr Rule kRules[] = {
    {"gpu-architecture", Effect::refused, true, kTargetAdvice},
    {"arch", Effect::refused, true, kTargetAdvice},
    {"dlink-time-opt", Effect::refused, false, kOutputAdvice},
    {"dlto", Effect::refused, false, kOutputAdvice},
    {"gen-opt-lto", Effect::refused, false, kOutputAdvice},
    {"optix-ir", Effect::refused, false, kOutputAdvice},
    {"fdevice-syntax-only", Effect::refused, false, kOutputAdvice},
    {"include-path", Effect::include_directory, true, ""},
    {"I", Effect::include_directory, true, ""},
    {"pre-include", Effect::pre_include, true, ""},
    {"preinclude", Effect::pre_include, true, ""},
    {"include", Effect::pre_include, true, ""},
    {"std", Effect::standard, true, ""},
    {"generate-line-info", Effect::line_info, false, ""},
    {"lineinfo", Effect::line_info, false, ""},
    {"device-debug", Effect::debug, false, ""},
    {"G", Effect::debug, false, ""},
    {"modify-stack-limit", Effect::stack_limit, true, ""},
    {"relocatable-device-code", Effect::relocatable, true, ""},
    {"rdc", Effect::relocatable, true, ""},
    {"device-c", Effect::relocatable, false, ""},
    {"dc", Effect::relocatable, false, ""},
    {"device-int128", Effect::int128, false, ""},
    {"pch", Effect::uncached, false, ""},
    {"create-pch", Effect::uncached, true, ""},
    {"use-pch", Effect::uncached, true, ""},
    {"pch-dir", Effect::uncached, true, ""},
    {"fdevice-time-trace", Effect::uncached, true, ""},
    {"time", Effect::uncached, true, ""},
    {"define-macro", Effect::macro, true, ""},
    {"D", Effect::macro, true, ""},
    {"undefine-macro", Effect::value, true, ""},
    {"U", Effect::value, true, ""},
};

Diagnostic refusal(const std::string& option, string_view reason, string_view hint) {
  Diagnostic diagnostic;
  diagnostic.code = "nvrtc-option";
  diagnostic.message = fmt::format("cannot pass option '{}' to NVRTC: {}", option, reason);
  diagnostic.hint = hint;
  return diagnostic;
}

struct Match {
  const Rule* rule = nullptr;
  string_view value;
  bool needs_next = false;
  bool has_blanks = false;  ///< around the option or its value
};

/// NVRTC removes blanks around an option, and between a letter and its value: "-I dir ".
string_view trim(string_view text) {
  constexpr string_view kBlank = " \t\n\v\f\r";
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

// One-letter options take their value joined ("-Idir") or after '='; the others after '=' only.
Match match(string_view given) {
  string_view option = trim(given);
  bool has_blanks = option != given;
  if (!option.starts_with('-')) return {};
  option.remove_prefix(option.starts_with("--") ? 2 : 1);
  for (const Rule& rule : kRules) {
    if (option == rule.spelling) return {&rule, {}, rule.takes_value, has_blanks};
    if (!rule.takes_value || !option.starts_with(rule.spelling)) continue;
    const string_view rest = option.substr(rule.spelling.size());
    const bool letter = rule.spelling.size() == 1;
    if (!letter && !rest.starts_with('=')) continue;
    const string_view value = trim(rest.starts_with('=') ? rest.substr(1) : rest);
    has_blanks = has_blanks || rest.find(value) > (rest.starts_with('=') ? 1 : 0);
    return {&rule, value, false, has_blanks};
  }
  return {};
}

void apply(const Match& matched, string_view value, UserOptions& read) {
  switch (matched.rule->effect) {
    case Effect::include_directory:
      read.include_directories.emplace_back(value);
      break;
    case Effect::pre_include:
      read.pre_includes.emplace_back(value);
      break;
    case Effect::standard:
      read.standard = true;
      read.raw_strings = value.find("03") == string_view::npos && value.find("98") == string_view::npos;
      break;
    case Effect::line_info:
      read.line_info = true;
      break;
    case Effect::debug:
      read.line_info = read.debug = true;
      break;
    case Effect::stack_limit:
      read.stack_limit = true;
      break;
    case Effect::relocatable:
      read.relocatable = !matched.rule->takes_value || value == "true";
      break;
    case Effect::int128:
      read.int128 = true;
      break;
    case Effect::uncached:
      read.cacheable = false;
      break;
    case Effect::macro:
      read.macros.emplace_back(value);
      break;
    case Effect::refused:
    case Effect::value:
      break;
  }
}

}  // namespace

Expected<UserOptions> read_options(const std::vector<std::string>& options) {
  UserOptions read;
  Diagnostics errors;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    if (option.empty() || option.find('\0') != std::string::npos) {
      errors.push_back(refusal(option.c_str(), "it is empty or holds a zero byte", "leave it out"));
      continue;
    }
    const Match matched = match(option);
    if (matched.rule == nullptr) continue;
    if (matched.has_blanks) read.cacheable = false;  // NVRTC may read the directory "d" or "d "
    if (matched.rule->effect == Effect::refused)
      errors.push_back(refusal(option, "quern sets it", matched.rule->advice));
    string_view value = matched.value;
    if (matched.needs_next) {
      if (i + 1 == options.size()) {
        errors.push_back(refusal(option, "its value is missing", "write it as --name=value"));
        continue;
      }
      value = trim(options[++i]);
      if (value != options[i]) read.cacheable = false;
    }
    apply(matched, value, read);
  }
  if (!errors.empty()) return errors;
  return read;
}

std::vector<std::string> nvrtc_options(const std::string& architecture, const std::vector<std::string>& user,
                                       const UserOptions& read,
                                       const std::vector<std::string>& toolkit_directories) {
  std::vector<std::string> options{"--gpu-architecture=" + architecture,
                                   "--device-as-default-execution-space"};
  if (!read.standard) options.emplace_back("--std=c++20");
  // Source lines for messages, reports and profilers.
  if (!read.line_info) options.emplace_back("--generate-line-info");
  // NVRTC would raise the whole process's stack limit while it runs, which races between threads.
  if (!read.stack_limit) options.emplace_back("--modify-stack-limit=false");
  if (read.needs_int128 && !read.int128) options.emplace_back("--device-int128");
  options.insert(options.end(), user.begin(), user.end());
  for (const std::string& directory : toolkit_directories) options.push_back("--include-path=" + directory);
  return options;
}

}  // namespace quern::compile
