// SPDX-License-Identifier: Apache-2.0
// Columns of source text: compilers count bytes, a Span counts characters.
#pragma once

#include <cstdint>
#include <string_view>

#include "quern/diagnostic.hpp"

namespace quern::base {

/// The characters of UTF-8 text; a byte that is not of UTF-8 counts as one.
std::uint32_t count_characters(std::string_view text) noexcept;

/// `span.column` counts bytes of `line`, from 1: turns it into characters, and has the span cover the word,
/// number or single character that stands there; `also` belongs to words as well. A column beyond the line,
/// or 0, stays as it is.
void cover_word(Span& span, std::string_view line, std::string_view also = {}) noexcept;

}  // namespace quern::base
