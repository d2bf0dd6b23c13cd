// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "quern/expected.hpp"

namespace quern::base {

/// The whole file. The diagnostic names the file and the system's reason.
Expected<std::string> read_file(const std::filesystem::path& path);

/// The same for a regular file of at most `most_bytes`: others are refused at once, and nothing is waited
/// for.
Expected<std::string> read_regular_file(const std::filesystem::path& path, std::uint64_t most_bytes);

}  // namespace quern::base
