// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "frontend/syntax/token.hpp"

namespace quern::frontend {

/// Returns the tokens of the source. Python's indentation becomes indent and dedent tokens; the last token is
/// Tok::end. Invalid text is reported and becomes Tok::unreadable; lexing continues after it.
std::vector<Token> read_tokens(const SourceText& source, Report& report);

}  // namespace quern::frontend
