// SPDX-License-Identifier: Apache-2.0
// Creates arrays by a rule, with the same results as NumPy, bit for bit.
#pragma once

#include "arrays/array.hpp"
#include "arrays/scalar.hpp"

namespace quern::cli {

Array full(std::vector<std::int64_t> shape, const Scalar& value, Dtype dtype);
/// numpy.arange: if no dtype is given, it follows from the operands.
Array arange(const Scalar& start, const Scalar& stop, const Scalar& step, std::optional<Dtype> dtype);
Array linspace(const Scalar& start, const Scalar& stop, const Scalar& num, Dtype dtype);
/// numpy.random.default_rng(seed).random(shape, dtype): float32 or float64, [0, 1).
Array random(std::vector<std::int64_t> shape, Dtype dtype, const Scalar& seed);

}  // namespace quern::cli
