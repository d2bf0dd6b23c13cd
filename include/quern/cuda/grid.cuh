// SPDX-License-Identifier: Apache-2.0
// component: compile
// A thread's place in the whole grid:
//
//   const int i = quern::grid<1>();
//   const auto [x, y] = quern::grid<2>();
//   const long long far = quern::grid<1, long long>();   // for more than 2^31 - 1 threads along a dimension
#pragma once

namespace quern {

template <int N, class Index>
struct position;
template <class Index>
struct position<2, Index> {
  Index x, y;
};
template <class Index>
struct position<3, Index> {
  Index x, y, z;
};

namespace detail {

// block * size + thread, in Index. A narrow product is taken unsigned: it may wrap, where a signed one must
// not.
template <class Index>
__device__ __forceinline__ Index place(unsigned block, unsigned size, unsigned thread) {
  if constexpr (sizeof(Index) > sizeof(unsigned))
    return static_cast<Index>(block) * size + thread;
  else
    return static_cast<Index>(block * size + thread);
}

}  // namespace detail

/// The thread's absolute position in the grid: a number for N = 1, else {x, y} or {x, y, z}.
template <int N, class Index = int>
__device__ __forceinline__ auto grid() {
  static_assert(N >= 1 && N <= 3, "quern::grid<N>: N is 1, 2 or 3");
  const Index x = detail::place<Index>(blockIdx.x, blockDim.x, threadIdx.x);
  if constexpr (N == 1) {
    return x;
  } else {
    const Index y = detail::place<Index>(blockIdx.y, blockDim.y, threadIdx.y);
    if constexpr (N == 2)
      return position<2, Index>{x, y};
    else
      return position<3, Index>{x, y, detail::place<Index>(blockIdx.z, blockDim.z, threadIdx.z)};
  }
}

/// The threads of the whole grid along each dimension, in the same form.
template <int N, class Index = int>
__device__ __forceinline__ auto gridsize() {
  static_assert(N >= 1 && N <= 3, "quern::gridsize<N>: N is 1, 2 or 3");
  const Index x = detail::place<Index>(gridDim.x, blockDim.x, 0);
  if constexpr (N == 1) {
    return x;
  } else {
    const Index y = detail::place<Index>(gridDim.y, blockDim.y, 0);
    if constexpr (N == 2)
      return position<2, Index>{x, y};
    else
      return position<3, Index>{x, y, detail::place<Index>(gridDim.z, blockDim.z, 0)};
  }
}

}  // namespace quern
