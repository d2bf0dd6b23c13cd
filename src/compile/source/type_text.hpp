// SPDX-License-Identifier: Apache-2.0
// C++ types as text, in one spelling: for messages and for type checks of arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::compile {

/// The parts of `text` between commas outside (), [], {} and <>; trimmed.
std::vector<std::string_view> split_at_commas(std::string_view text);

/// `float const *` -> "const float*", `unsigned` -> "unsigned int", `T [4]` -> "T[4]": words separated by one
/// space, const in front, no space before `*` and `&`; `__restrict__` and const on the outermost level are
/// dropped.
std::string normal_type(std::string_view type);

/// The way in which a kernel parameter of this type is passed, as far as its text tells.
struct PointerType {
  bool pointer = false;    ///< T*, T[] or T&: an address in the parameter buffer
  bool read_only = false;  ///< the pointee is const
  std::string pointee;     ///< "float" of "const float*"; empty if this is no pointer
};
PointerType pointer_type(std::string_view normal);

}  // namespace quern::compile
