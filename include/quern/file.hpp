// SPDX-License-Identifier: Apache-2.0
// room: base
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "quern/expected.hpp"
#include "quern/export.hpp"

namespace quern {

/// Makes `path` a file of these bytes, whole or not at all: a temporary beside it is written and renamed over
/// it, so that readers see the old bytes or the new ones, never half. What a symbolic link is of is replaced,
/// not the link; a device or an open file (/dev/stdout) is appended to. The bytes are read during the call
/// only. The error (code "io") names the file and the system's reason; the file is then as it was.
/// Thread-safe.
QUERN_API Expected<void> write_file_atomically(const std::filesystem::path& path,
                                               std::span<const std::byte> bytes);

}  // namespace quern
