// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "frontend/syntax/token.hpp"

namespace quern::frontend {

/// Every token of the source with Python's indentation turned into indent and dedent tokens; the last one is
/// Tok::end. Invalid text is reported and becomes Tok::unreadable; lexing continues behind it.
std::vector<Token> read_tokens(const SourceText& source, Report& report);

}  // namespace quern::frontend
