// SPDX-License-Identifier: Apache-2.0
#include "compile/source/file_names.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "compile/source/cpp_tokens.hpp"
#include "compile/source/line_map.hpp"

namespace quern::compile {
namespace {

bool is_within(std::string_view name, std::string_view given) {
  return name.starts_with(given) &&
         (name.size() == given.size() || given.ends_with('/') || name[given.size()] == '/');
}

}  // namespace

std::vector<std::string> spelled_names(std::string_view source) {
  std::vector<std::string> names;
  for (const CppToken& token : cpp_tokens(source)) {
    if (token.kind != CppToken::Kind::directive) continue;
    const std::size_t at = token.text.find_first_of("\"<");
    if (at == std::string_view::npos) continue;
    const std::string_view rest = token.text.substr(at);
    if (std::optional<std::string> name = string_literal(rest))
      names.push_back(*std::move(name));
    else
      names.emplace_back(rest.substr(1, std::min(rest.find('>'), rest.size()) - 1));
  }
  return names;
}

void restore_file_names(std::string& ptx, const std::vector<std::string>& absolute) {
  std::error_code error;
  std::string prefix = std::filesystem::current_path(error).string();
  if (!prefix.ends_with('/')) prefix += '/';  // it is "/" itself in many containers
  constexpr std::string_view kMarker = "\n\t.file\t";
  for (std::size_t at = ptx.find(kMarker); at != std::string::npos; at = ptx.find(kMarker, at + 1)) {
    const std::size_t quote = ptx.find('"', at);
    if (quote == std::string::npos || ptx.find('\n', at + 1) < quote) continue;
    const std::string name = string_literal(std::string_view(ptx).substr(quote)).value_or("");
    const bool given = std::any_of(absolute.begin(), absolute.end(),
                                   [&](const std::string& each) { return is_within(name, each); });
    if (!given && name.starts_with(prefix) && ptx.compare(quote + 1, prefix.size(), prefix) == 0)
      ptx.erase(quote + 1, prefix.size());
  }
}

}  // namespace quern::compile
