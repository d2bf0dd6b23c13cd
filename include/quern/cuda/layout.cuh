// SPDX-License-Identifier: Apache-2.0
// component: compile
// Arrays whose layout the compiler knows, of any rank, and views of C arrays as such.
#pragma once

#include <quern/cuda/array.cuh>
#include <quern/cuda/c_array.cuh>
#include <quern/cuda/wrap.cuh>

namespace quern {

/// For more dimensions than c_array.cuh writes out.
template <class T, int N>
struct c_array {
  QUERN_LAYOUT_MEMBERS(N)
  QUERN_HOST_DEVICE constexpr long long size() const {
    long long count = 1;
    for (int dim = 0; dim < N; ++dim) count *= extents[dim];
    return count;
  }
  template <class... Index>
  QUERN_HOST_DEVICE T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == N,
                  "quern::c_array: the number of indices is not the number of dimensions");
    const long long indices[] = {static_cast<long long>(index)...};
    long long at = indices[0];
    for (int dim = 1; dim < N; ++dim) at = at * extents[dim] + indices[dim];
    return data[at];
  }
};
template <class T>
struct c_array<T, 3> {
  QUERN_LAYOUT_MEMBERS(3)
  QUERN_HOST_DEVICE constexpr long long size() const { return extents[0] * extents[1] * extents[2]; }
  QUERN_HOST_DEVICE T& operator()(long long i, long long j, long long k) const {
    return data[(i * extents[1] + j) * extents[2] + k];
  }
};
template <class T>
struct c_array<T, 0> : array<T, 0> {};

/// Contiguous, the first index fastest, as in Fortran.
template <class T, int N>
struct f_array {
  QUERN_LAYOUT_MEMBERS(N)
  QUERN_HOST_DEVICE constexpr long long size() const {
    long long count = 1;
    for (int dim = 0; dim < N; ++dim) count *= extents[dim];
    return count;
  }
  template <class... Index>
  QUERN_HOST_DEVICE T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == N,
                  "quern::f_array: the number of indices is not the number of dimensions");
    const long long indices[] = {static_cast<long long>(index)...};
    long long at = indices[N - 1];
    for (int dim = N - 2; dim >= 0; --dim) at = at * extents[dim] + indices[dim];
    return data[at];
  }
};
template <class T>
struct f_array<T, 2> {
  QUERN_LAYOUT_MEMBERS(2)
  QUERN_HOST_DEVICE constexpr long long size() const { return extents[0] * extents[1]; }
  QUERN_HOST_DEVICE T& operator()(long long i, long long j) const { return data[i + j * extents[0]]; }
};

#undef QUERN_LAYOUT_MEMBERS

namespace detail {

template <class T>
struct flat_element {
  using type = T;
  enum : int { rank = 0 };
};
template <class T, decltype(sizeof(0)) Count>
struct flat_element<T[Count]> {
  using type = typename flat_element<T>::type;
  enum : int { rank = flat_element<T>::rank + 1 };
};
template <class T, int Dim>
struct extent_of {
  enum : long long { value = 0 };
};
template <class T, decltype(sizeof(0)) Count>
struct extent_of<T[Count], 0> {
  enum : long long { value = Count };
};
template <class T, decltype(sizeof(0)) Count, int Dim>
struct extent_of<T[Count], Dim> {
  enum : long long { value = extent_of<T, Dim - 1>::value };
};
template <class A, int Dim, int N, class Out>
QUERN_HOST_DEVICE void fill_extents(Out& out) {
  if constexpr (Dim < N) {
    out.extents[Dim] = extent_of<A, Dim>::value;
    fill_extents<A, Dim + 1, N>(out);
  }
}

}  // namespace detail

/// A C array as an array that can be passed on.
template <class A>
QUERN_HOST_DEVICE auto view(A& source) {
  using element = typename detail::flat_element<A>::type;
  constexpr int rank = detail::flat_element<A>::rank;
  c_array<element, rank> result;
  result.data = reinterpret_cast<element*>(&source);
  detail::fill_extents<A, 0, rank>(result);
  long long stride = sizeof(element);
  for (int dim = rank - 1; dim >= 0; --dim) {
    result.strides_bytes[dim] = stride;
    stride *= result.extents[dim];
  }
  return result;
}

#if defined(__CUDACC__)
/// The dynamic shared memory that the launch gave, as elements of T.
template <class T>
__device__ __forceinline__ c_array<T, 1> dynamic_shared() {
  extern __shared__ __align__(16) unsigned char quern_dynamic_shared[];
  unsigned bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  c_array<T, 1> result;
  result.data = reinterpret_cast<T*>(quern_dynamic_shared);
  result.extents[0] = bytes / sizeof(T);
  result.strides_bytes[0] = sizeof(T);
  return result;
}
#endif

}  // namespace quern
