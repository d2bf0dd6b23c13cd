// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace quern::cli {

/// Reads the whole file. Throws quern::Error (io) with the file and the system's reason.
std::string read_whole_file(const std::string& path);
/// Replaces the file completely. If that fails, does not change it and throws quern::Error (io).
void write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace quern::cli
