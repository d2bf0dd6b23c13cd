// SPDX-License-Identifier: Apache-2.0
#include "launch/global.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"

namespace quern::launch {
namespace {

constexpr std::size_t kMostListed = 20;

std::string without_spaces(std::string_view text) {
  std::string result(text);
  std::erase(result, ' ');
  return result;
}

/// "&ns::v" as in a name expression, "ns::v", and "table<unsigned int>" with any spacing.
std::string plain(std::string_view name) {
  std::string text = without_spaces(name);
  if (text.starts_with('&')) text.erase(0, 1);
  return text;
}

/// Variables that the author did not write: strings of printf and assert, static members of the toolkit's
/// headers.
bool is_compilers_own(const abi::VariableInfo& variable) {
  return variable.name.starts_with('$') || variable.name.starts_with("__unnamed_") ||
         variable.name.starts_with("cuda::");
}

std::vector<const abi::VariableInfo*> called(const abi::PtxImage& image, std::string_view name) {
  std::vector<const abi::VariableInfo*> found;
  const std::string wanted = plain(name);
  for (const abi::VariableInfo& variable : image.variables) {
    if (variable.lowered_name == name) return {&variable};
    if (without_spaces(variable.name) == wanted) found.push_back(&variable);
  }
  return found;
}

[[noreturn]] void refuse_unknown(const abi::PtxImage& image, std::string_view name, std::string_view where) {
  std::vector<std::string> names = global_names(image);
  const std::size_t count = names.size();
  names.resize(std::min(count, kMostListed));
  std::string hint = names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", "));
  if (count > names.size()) hint += fmt::format(" and {} more", count - names.size());
  hint += fmt::format(
      "; a variable that the compiler dropped since no kernel uses it, and one of a template, is kept by the "
      "name expression \"&{}\"",
      name);
  throw Error(ErrorCode::not_found, fmt::format("{} has no variable '{}'\nhint: {}", where, name, hint));
}

}  // namespace

bool has_global(const abi::PtxImage& image, std::string_view name) { return !called(image, name).empty(); }

GlobalVariable find_global(const std::shared_ptr<runtime::Module>& module, const abi::PtxImage& image,
                           std::string_view name, std::string_view where) {
  const std::vector<const abi::VariableInfo*> found = called(image, name);
  if (found.empty()) refuse_unknown(image, name, where);
  if (found.size() > 1) {
    std::vector<std::string> names;
    for (const abi::VariableInfo* variable : found) names.push_back(variable->lowered_name);
    throw Error(ErrorCode::usage, fmt::format("{} has {} variables '{}'\nhint: name one as the PTX does: {}",
                                              where, found.size(), name, fmt::join(names, ", ")));
  }
  const std::optional<runtime::ModuleVariable> variable =
      module->variable(found.front()->lowered_name.c_str());
  if (!variable) refuse_unknown(image, name, where);
  return GlobalVariable(found.front()->name, runtime::adopt_buffer(module->context(), variable->address,
                                                                   variable->size_bytes, module, false));
}

std::vector<std::string> global_names(const abi::PtxImage& image) {
  std::vector<std::string> names;
  for (const abi::VariableInfo& variable : image.variables)
    if (!is_compilers_own(variable)) names.push_back(variable.name);
  return names;
}

}  // namespace quern::launch
