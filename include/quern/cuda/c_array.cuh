// SPDX-License-Identifier: Apache-2.0
// component: compile
// Contiguous arrays of one and of two dimensions: indexed by extents alone, without strides. They are what an
// array argument is specialised to, have the fields of quern::array, and turn into one. Most kernels need no
// more of quern than this, so that it is a header of its own, and each rank that is common is written out:
// templates over ranks and indices, and all that a header only declares, show in the time that a kernel takes
// to compile. layout.cuh has the other ranks.
#pragma once

#if !defined(QUERN_HOST_DEVICE)
#if defined(__CUDACC__)
#define QUERN_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define QUERN_HOST_DEVICE inline
#endif
#endif

namespace quern {

template <class T, int N>
struct array;

#define QUERN_LAYOUT_MEMBERS(N)                                                        \
  using value_type = T;                                                                \
  enum : int { rank = N };                                                             \
  T* data;                                                                             \
  long long extents[N];                                                                \
  long long strides_bytes[N];                                                          \
  QUERN_HOST_DEVICE constexpr long long extent(int dim) const { return extents[dim]; } \
  template <class U>                                                                   \
  QUERN_HOST_DEVICE operator array<U, N>() const {                                     \
    array<U, N> result;                                                                \
    result.data = data;                                                                \
    for (int dim = 0; dim < N; ++dim) {                                                \
      result.extents[dim] = extents[dim];                                              \
      result.strides_bytes[dim] = strides_bytes[dim];                                  \
    }                                                                                  \
    return result;                                                                     \
  }

/// Contiguous, the last index fastest: a[i] of one dimension, a(i, j) of more.
template <class T, int N>
struct c_array;
template <class T>
struct c_array<T, 1> {
  QUERN_LAYOUT_MEMBERS(1)
  QUERN_HOST_DEVICE constexpr long long size() const { return extents[0]; }
  QUERN_HOST_DEVICE T& operator[](long long index) const { return data[index]; }
  QUERN_HOST_DEVICE T& operator()(long long index) const { return data[index]; }
};
template <class T>
struct c_array<T, 2> {
  QUERN_LAYOUT_MEMBERS(2)
  QUERN_HOST_DEVICE constexpr long long size() const { return extents[0] * extents[1]; }
  QUERN_HOST_DEVICE T& operator()(long long i, long long j) const { return data[i * extents[1] + j]; }
};

}  // namespace quern
