// SPDX-License-Identifier: Apache-2.0
// The names of files in PTX's `.file` directives, as the author spells them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::compile {

/// Every file that directives of the source name: in #line and #include.
std::vector<std::string> spelled_names(std::string_view source);

/// NVRTC makes every relative name in `.file` absolute with the working directory, also those of #line and of
/// headers that are no files. This makes them relative again, as in NVRTC's own messages. `absolute` holds
/// the files and the directories that were given as absolute paths: these, and files in these directories,
/// keep their names.
void restore_file_names(std::string& ptx, const std::vector<std::string>& absolute);

}  // namespace quern::compile
