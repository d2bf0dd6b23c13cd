// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "quern/expected.hpp"

namespace quern::base {

/// The whole file. The diagnostic names the file and the system's reason.
Expected<std::string> read_file(const std::filesystem::path& path);

}  // namespace quern::base
