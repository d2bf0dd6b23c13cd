// SPDX-License-Identifier: Apache-2.0
// Arithmetic with numbers, as case files write the bytes and operations of a benchmark: "2 * 1024**3".
#pragma once

#include <string_view>

namespace quern::cli {

/// The value of numbers with + - * / ** and parentheses, as Python computes it in floats. Throws Error(usage)
/// with the position of invalid text.
double evaluate_figure(std::string_view text);

}  // namespace quern::cli
