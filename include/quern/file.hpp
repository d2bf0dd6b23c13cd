// SPDX-License-Identifier: Apache-2.0
// component: base
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "quern/expected.hpp"
#include "quern/export.hpp"

namespace quern {

/// Writes a file of these bytes to `path`, completely or not at all: a temporary file beside it is written
/// and renamed, so that readers see either the old bytes or the new ones. If `path` is a symbolic link, its
/// target is replaced, not the link; a device or an open file (/dev/stdout) is appended to. The bytes are
/// only read during the call. The error (code "io") names the file and the system's reason; the file is then
/// unchanged. Thread-safe.
QUERN_API Expected<void> write_file_atomically(const std::filesystem::path& path,
                                               std::span<const std::byte> bytes);

}  // namespace quern
