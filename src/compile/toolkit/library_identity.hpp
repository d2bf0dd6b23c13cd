// SPDX-License-Identifier: Apache-2.0
// Identifies a shared library by its content.
#pragma once

#include <optional>
#include <string>

namespace quern::compile {

/// "build-id:65be..." as the linker wrote it into the file (ELF note NT_GNU_BUILD_ID), else "sha256:..." of
/// the file. Returns nothing if it cannot be read.
std::optional<std::string> library_identity(const std::string& path);

}  // namespace quern::compile
