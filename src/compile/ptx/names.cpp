// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/names.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "compile/source/type_text.hpp"

namespace quern::compile {
namespace {

using std::string_view;

// Position of the '(' that opens the parameter list: the last one outside any bracket.
std::size_t parameter_list(string_view text) {
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')' || text[i] == '>' || text[i] == ']') ++depth;
    if (text[i] == '(' || text[i] == '<' || text[i] == '[') --depth;
    if (text[i] == '(' && depth == 0) return i;
  }
  return string_view::npos;
}

// `void scale<float>` -> `scale<float>`: a template's demangled name begins with its return type.
string_view without_return_type(string_view text) {
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')' || text[i] == '>' || text[i] == ']') ++depth;
    if (text[i] == '(' || text[i] == '<' || text[i] == '[') --depth;
    if (text[i] == ' ' && depth == 0) return text.substr(i + 1);
  }
  return text;
}

}  // namespace

DemangledName demangle(const std::string& lowered_name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      ::abi::__cxa_demangle(lowered_name.c_str(), nullptr, nullptr, &status), &std::free);
  // Only function names: "f" alone would demangle to a type.
  if (!lowered_name.starts_with("_Z") || status != 0 || !text) return {lowered_name, {}, false};
  const string_view whole = text.get();
  const std::size_t open = parameter_list(whole);
  if (open == string_view::npos || !whole.ends_with(')')) return {std::string(whole), {}, true};
  DemangledName result{std::string(without_return_type(whole.substr(0, open))), {}, true};
  const string_view inside = whole.substr(open + 1, whole.size() - open - 2);
  if (inside == "void" || inside.empty()) return result;
  for (const string_view type : split_at_commas(inside)) result.parameter_types.push_back(normal_type(type));
  return result;
}

bool has_needless_arguments(string_view expression, const std::string& lowered_name) {
  while (expression.ends_with(' ')) expression.remove_suffix(1);
  // Casts that choose an overload hold a '<' too.
  if (!expression.ends_with('>') || lowered_name.empty()) return false;
  const DemangledName known = demangle(lowered_name);
  if (!known.mangled && lowered_name.starts_with('_'))
    return false;  // a form that the demangler does not know
  return known.name.find('<') == std::string::npos;
}

}  // namespace quern::compile
