// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace quern::base {

/// The text without control sequences of terminals: control characters except line feed and tab, and marks
/// that change the direction of text (Unicode's bidirectional formatting characters) become '?'. Columns do
/// not change.
std::string printable(std::string_view text);

/// The same with line feeds as blanks: text from outside cannot look like another message.
std::string printable_line(std::string_view text);

}  // namespace quern::base
