// SPDX-License-Identifier: Apache-2.0
// The files that a C++ text asks for, read without a preprocessor. A text in which a preprocessor could see
// other directives than this reader is reported as unsure, with the reason: what depends on it is not cached.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::compile {

/// A file named by `#include` or `__has_include`.
struct IncludeName {
  std::string name;
  bool quoted = false;
};

struct Directives {
  std::vector<IncludeName> includes;
  bool int128 = false;  ///< the text names a 128-bit integer type
  std::string unsure;   ///< why other files could be read, or the result differ each time; empty if it cannot
};

/// `raw_strings`: the language has raw string literals, as C++ from C++11 on.
Directives read_directives(std::string_view text, bool raw_strings = true);

/// The same for a macro that an option defines: "NAME=value".
Directives read_macro_option(std::string_view definition);

/// True if the text names a 128-bit integer type outside comments and strings.
bool names_int128(std::string_view text);

}  // namespace quern::compile
