// SPDX-License-Identifier: Apache-2.0
// Where the author wrote what a line of PTX was made of, read from its .loc and .file without a full parse:
// the PTX may be one that is refused. The CPU device has it from its parser (ir::author_location).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "quern/diagnostic.hpp"

namespace quern::compile {

/// The author's place of what stands in line `line` of the PTX (lines count from 1), its file as .file names
/// it. Of code that was inlined: the innermost place in the file that the kernel itself is in. Nothing where
/// no .loc says it.
std::optional<Span> author_place(std::string_view ptx, std::uint32_t line);

}  // namespace quern::compile
