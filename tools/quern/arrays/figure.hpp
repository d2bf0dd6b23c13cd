// SPDX-License-Identifier: Apache-2.0
// Evaluates arithmetic expressions, in which case files write the bytes and operations of a benchmark: "2 *
// 1024**3".
#pragma once

#include <string_view>

namespace quern::cli {

/// Returns the value of an expression of numbers with + - * / ** and parentheses, computed in floats as in
/// Python. Throws Error(usage) with the position of invalid text.
double evaluate_figure(std::string_view text);

}  // namespace quern::cli
