// SPDX-License-Identifier: Apache-2.0
// Values as NumPy prints them.
#pragma once

#include <string>

#include "arrays/array.hpp"

namespace quern::cli {

/// numpy.array2string: "[0.   0.5  1.25 ... 7.   7.5  8.  ]", nested for more dimensions (each row on a line
/// of its own, indented by `indent` columns). An axis of more than `edge` * 2 values is abridged in arrays of
/// more than 16 elements.
std::string array_text(const Array& array, std::size_t indent = 0, std::int64_t edge = 3);

}  // namespace quern::cli
