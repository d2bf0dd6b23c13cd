// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "quern/expected.hpp"

namespace quern::base {

/// The whole file. The diagnostic names the file and the system's reason.
Expected<std::string> read_file(const std::filesystem::path& path);

/// Writes a temporary beside `path` and renames it over `path`: readers see the old bytes or the new ones,
/// never half.
Expected<void> write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
Expected<void> write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace quern::base
