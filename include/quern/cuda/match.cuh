// SPDX-License-Identifier: Apache-2.0
// component: compile
#pragma once

#include <quern/cuda/tuple.cuh>

namespace quern {

/// (mask, true) where all lanes of the mask hold the same value, else (0, false).
template <class T>
__device__ __forceinline__ tuple<int, bool> match_all(unsigned mask, T value) {
  int same = 0;
  const unsigned lanes = __match_all_sync(mask, value, &same);
  return {static_cast<int>(lanes), same != 0};
}

}  // namespace quern
