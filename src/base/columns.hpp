// SPDX-License-Identifier: Apache-2.0
// Columns of source text: compilers count bytes, a Span counts characters.
#pragma once

#include <cstdint>
#include <string_view>

#include "quern/diagnostic.hpp"

namespace quern::base {

/// The characters of UTF-8 text; a byte that is not of UTF-8 counts as one.
std::uint32_t count_characters(std::string_view text) noexcept;

/// Converts `span.column`, which counts bytes of `line` from 1, to characters, and extends the span over the
/// word, number or single character there; characters of `also` belong to words as well. A column beyond the
/// line, or 0, is not changed.
void cover_word(Span& span, std::string_view line, std::string_view also = {}) noexcept;

}  // namespace quern::base
