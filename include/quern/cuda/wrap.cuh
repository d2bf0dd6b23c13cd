// SPDX-License-Identifier: Apache-2.0
// component: compile
#pragma once

#include <quern/cuda/c_array.cuh>

namespace quern {

/// Python's index: a negative one counts from the end.
QUERN_HOST_DEVICE constexpr long long wrap(long long index, long long extent) {
  return index < 0 ? index + extent : index;
}

}  // namespace quern
