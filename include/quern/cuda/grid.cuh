// SPDX-License-Identifier: Apache-2.0
// room: compile
// A thread's place in the whole grid:
//
//   const long long i = quern::grid<1>();
//   const auto [x, y] = quern::grid<2>();
#pragma once

namespace quern {

struct position2 {
  long long x, y;
};
struct position3 {
  long long x, y, z;
};

namespace detail {

template <int N, class X, class Y, class Z>
__device__ __forceinline__ auto pack_position(X x, Y y, Z z) {
  static_assert(N >= 1 && N <= 3, "quern::grid<N>, gridsize<N>: N is 1, 2 or 3");
  if constexpr (N == 1)
    return x();
  else if constexpr (N == 2)
    return position2{x(), y()};
  else
    return position3{x(), y(), z()};
}

__device__ __forceinline__ long long product(unsigned a, unsigned b) { return static_cast<long long>(a) * b; }

}  // namespace detail

/// The thread's absolute position in the grid: a number for N = 1, else {x, y} or {x, y, z}.
template <int N>
__device__ __forceinline__ auto grid() {
  return detail::pack_position<N>([] { return detail::product(blockIdx.x, blockDim.x) + threadIdx.x; },
                                  [] { return detail::product(blockIdx.y, blockDim.y) + threadIdx.y; },
                                  [] { return detail::product(blockIdx.z, blockDim.z) + threadIdx.z; });
}

/// The threads of the whole grid along each dimension, in the same form.
template <int N>
__device__ __forceinline__ auto gridsize() {
  return detail::pack_position<N>([] { return detail::product(gridDim.x, blockDim.x); },
                                  [] { return detail::product(gridDim.y, blockDim.y); },
                                  [] { return detail::product(gridDim.z, blockDim.z); });
}

}  // namespace quern
