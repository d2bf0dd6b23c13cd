// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace quern::base {

/// The text without what a terminal would obey: control characters except line feed and tab, and marks that
/// change the direction of text (Unicode's bidirectional formatting characters) become '?'. Columns stay.
std::string printable(std::string_view text);

/// The same with line feeds as blanks: a text of the outside cannot pretend to be another message.
std::string printable_line(std::string_view text);

}  // namespace quern::base
