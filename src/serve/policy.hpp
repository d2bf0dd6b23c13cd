// SPDX-License-Identifier: Apache-2.0
// Refuses requests that ask for files of the server before anything is compiled. The sandbox of the workers
// makes the same impossible; this makes it a clear error.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quern/diagnostic.hpp"

namespace quern::serve {

/// "option-refused" for each option that is not in options.def.
Diagnostics refused_options(const std::vector<std::string>& options);

/// "include-refused" for each #include, __has_include and the like of `text` whose operand is an absolute
/// path, or leaves the folder of everything in the request, unless `headers` has a header of that name.
/// `name` is that of the header whose text it is, or empty for the source. Comments and strings are not told
/// apart: a line of one may be refused as well if it looks like a directive.
Diagnostics refused_includes(std::string_view text, const std::string& name,
                             const std::set<std::string, std::less<>>& headers);

/// True for a path that is absolute, or that leads out of where it begins.
bool leaves_its_folder(std::string_view path);

}  // namespace quern::serve
