// SPDX-License-Identifier: Apache-2.0
// Converts lowered names to the author's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::compile {

/// A demangled kernel name: "scale<float>" and its parameters' types, written "const float*". For a name that
/// is not mangled (extern "C") `name` is that name, and there are no types.
struct DemangledName {
  std::string name;
  std::vector<std::string> parameter_types;
  bool mangled = false;
};
DemangledName demangle(const std::string& lowered_name);

/// True for "k<int>" if `lowered_name` is that of a function that is no template's instance.
bool has_needless_arguments(std::string_view expression, const std::string& lowered_name);

}  // namespace quern::compile
