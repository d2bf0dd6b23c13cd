// SPDX-License-Identifier: Apache-2.0
// The view that `quern top` draws, as lines of text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reading.hpp"

namespace quern::cli {

/// `text` in at most `cells` columns of a terminal, safe to print: control characters, marks that change the
/// direction of text, and bytes that are not UTF-8 become '?'. The part that is cut off becomes "...".
std::string printable(std::string_view text, std::size_t cells);

struct TopFrame {
  std::vector<ServerRow> servers;
  double now_s = 0;           ///< Unix time
  std::string note;           ///< a last line; empty: none
  std::size_t width = 100;    ///< columns
  std::size_t height = 1000;  ///< lines
};

/// At most `height` lines of at most `width` columns. The list of slow compiles is cut first.
std::vector<std::string> top_lines(const TopFrame& frame);

}  // namespace quern::cli
