// SPDX-License-Identifier: Apache-2.0
#include "terminal/words.hpp"

#include <algorithm>
#include <string_view>

namespace quern::cli {
namespace {

struct Row {
  std::string_view library;
  std::string_view command_line;
};
constexpr Row kRows[] = {
#define QUERN_WORDS(library, command_line) {library, command_line},
#include "terminal/words.def"
#undef QUERN_WORDS
};

}  // namespace

std::string in_command_words(std::string hint) {
  for (const Row& row : kRows)
    if (const std::size_t at = hint.find(row.library); at != std::string::npos)
      hint.replace(at, row.library.size(), row.command_line);
  return hint;
}

std::string with_command_words(const std::string& message) {
  constexpr std::string_view kHint = "hint: ";
  std::string result;
  for (std::size_t at = 0; at < message.size();) {
    const std::size_t end = std::min(message.find('\n', at), message.size() - 1) + 1;
    std::string line = message.substr(at, end - at);
    result += line.starts_with(kHint) ? in_command_words(std::move(line)) : line;
    at = end;
  }
  return result;
}

}  // namespace quern::cli
