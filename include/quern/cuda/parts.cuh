// SPDX-License-Identifier: Apache-2.0
// component: compile
// A float in two parts, as tuples.
#pragma once

#include <quern/cuda/tuple.cuh>

namespace quern {

/// Mantissa in [0.5, 1) and exponent.
template <class T>
__device__ __forceinline__ tuple<T, int> frexp(T x) {
  int exponent = 0;
  const T mantissa = ::frexp(x, &exponent);
  return {mantissa, exponent};
}
/// Fraction and whole part, both with the sign of x.
template <class T>
__device__ __forceinline__ tuple<T, T> modf(T x) {
  T whole = 0;
  const T fraction = ::modf(x, &whole);
  return {fraction, whole};
}

}  // namespace quern
