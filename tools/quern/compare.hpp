// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "arrays/array.hpp"
#include "cases.hpp"

namespace quern::cli {

/// Describes the difference of `actual` from `expected` (in dtype, shape, or the first value beyond the
/// bounds, with the number of such values); nothing if there is none. Without bounds, values must be equal
/// exactly (-0 equals 0, NaN equals NaN), and records byte by byte.
std::optional<std::string> difference(const Array& actual, const Array& expected, double rtol, double atol);

/// The same against numbers, which are rounded to the array's dtype first.
std::optional<std::string> difference(const Array& actual, const ExpectedValues& expected, double rtol,
                                      double atol);

}  // namespace quern::cli
