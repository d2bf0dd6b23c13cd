// SPDX-License-Identifier: Apache-2.0
// The names of files in PTX's `.file` directives, as the author spells them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::compile {

/// Every file that directives of the source name: in #line and #include.
std::vector<std::string> spelled_names(std::string_view source);

/// NVRTC completes every relative name in `.file` with the working directory, also those of #line and of
/// headers that are no files. Makes them relative again, as NVRTC's own messages say them. `absolute` holds
/// the files and the directories that were given with their whole path: what is one of them or lies in one
/// keeps its name.
void restore_file_names(std::string& ptx, const std::vector<std::string>& absolute);

}  // namespace quern::compile
