// SPDX-License-Identifier: Apache-2.0
// Reads the names of a kernel's parameters from the `__global__` declarations in CUDA C++ source. It knows no
// types and expands no macros; it skips declarations that it cannot read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quern::compile {

struct ParameterDeclaration {
  std::string name;        ///< empty where the author gave none
  std::string type;        ///< in one spelling: "const float*"
  bool pointer = false;    ///< a pointer, array or reference
  bool read_only = false;  ///< to const
  std::string pointee;     ///< "float" of "const float*"
};

struct KernelDeclaration {
  std::string name;   ///< without scope and template arguments
  std::string scope;  ///< "outer::inner", empty for the global namespace
  std::vector<ParameterDeclaration> parameters;
  bool is_template = false;
  std::uint32_t line = 0;

  std::string qualified_name() const { return scope.empty() ? name : scope + "::" + name; }
};

/// Every kernel that `source` declares or defines, in its order. Text in untaken preprocessor branches is
/// read like the rest.
std::vector<KernelDeclaration> read_kernels(std::string_view source);

}  // namespace quern::compile
