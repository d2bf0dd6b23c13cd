// SPDX-License-Identifier: Apache-2.0
// NVRTC's log as diagnostics. Formats: those of the EDG front end ("file(3): error: ...", the source line, a
// caret line), of NVRTC itself ("nvrtc: error: ...") and of ptxas ("ptxas error   : ...").
#pragma once

#include <string_view>

#include "quern/diagnostic.hpp"

namespace quern::compile {

/// The name that NVRTC gives to the lines it adds for name expressions.
inline constexpr std::string_view kNameMapFile = "__nv_name_map";

/// Every message of `log`, in its order: severity, position, source line, column from the caret (counted in
/// bytes, as NVRTC does), notes, template instantiation chains. Codes are "cuda-N" for a numbered message,
/// else "cuda-error" or "cuda-warning"; "ptxas" and "nvrtc-option" for those tools' own. A line of unknown
/// form is kept as a note. `file_name` is the file of messages about the end of the source.
Diagnostics parse_log(std::string_view log, std::string_view file_name);

}  // namespace quern::compile
