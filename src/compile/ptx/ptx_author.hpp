// SPDX-License-Identifier: Apache-2.0
// Maps a line of PTX to the author's source, by its .loc and .file directives, without a full parse: the PTX
// may be invalid. The CPU device gets this from its parser (ir::author_location).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "quern/diagnostic.hpp"

namespace quern::compile {

/// The author's position of the code in line `line` of the PTX (lines count from 1), with the file name from
/// .file. For inlined code: the innermost position in the file of the kernel itself. Nothing if no .loc gives
/// it.
std::optional<Span> author_place(std::string_view ptx, std::uint32_t line);

}  // namespace quern::compile
