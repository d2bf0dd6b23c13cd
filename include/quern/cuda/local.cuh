// SPDX-License-Identifier: Apache-2.0
// component: compile
// Arrays of one thread:
//
//   auto window = quern::local::array<float, 8>();       // 8 floats of this thread, uninitialised
#pragma once

#include <quern/cuda/array.cuh>

namespace quern {

/// An array of fixed extents that holds its elements itself, in row-major order: l(i, j) or l[i][j].
template <class T, int First, int... Rest>
struct local_array {
  using value_type = T;
  using shape = detail::extents<First, Rest...>;
  enum : int { rank = shape::rank };

  T data[shape::size];

  // Not defaulted: `local_array{}` must leave the elements as they are.
  __device__ __forceinline__ local_array() {}

  static __device__ __forceinline__ constexpr int extent(int dim) { return shape::extent(dim); }
  static __device__ __forceinline__ constexpr int size() { return shape::size; }

  template <class... Index>
  __device__ __forceinline__ T& operator()(Index... index) {
    return *shape::element(data, index...);
  }
  template <class... Index>
  __device__ __forceinline__ const T& operator()(Index... index) const {
    return *shape::element(data, index...);
  }
  template <class Index>
  __device__ __forceinline__ decltype(auto) operator[](Index index) {
    return view()[index];
  }
  template <class Index>
  __device__ __forceinline__ decltype(auto) operator[](Index index) const {
    return fixed_array<const T, First, Rest...>{data}[index];
  }
  /// The same elements as a view; it must not outlive this array.
  __device__ __forceinline__ fixed_array<T, First, Rest...> view() { return {data}; }
};

namespace local {

template <class T, int... Extents>
__device__ __forceinline__ local_array<T, Extents...> array() {
  return {};
}

}  // namespace local
}  // namespace quern
