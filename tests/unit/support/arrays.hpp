// SPDX-License-Identifier: Apache-2.0
// Arrays that tests use as input.
#pragma once

#include <cstddef>
#include <span>

#include "quern/ndarray.hpp"

namespace quern::test {

/// 0, 1, 2, ... in C order, float32.
inline NDArray counting(const Shape& shape) {
  const NDArray array(shape, Dtype::float32);
  const std::span<float> values = array.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return array;
}

}  // namespace quern::test
