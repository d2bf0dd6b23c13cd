// SPDX-License-Identifier: Apache-2.0
// component: compile
// Arrays as kernels see them: quern::array, the argument type of a device array, and the arrays of fixed
// extents that shared, local and constant memory hand out. Plain C++17 without any include: host code may use
// it as well.
#pragma once

#if !defined(QUERN_HOST_DEVICE)
#if defined(__CUDACC__)
#define QUERN_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define QUERN_HOST_DEVICE inline
#endif
#endif

namespace quern {

/// A strided N-dimensional array of T, passed to kernels by value. Extents count elements, strides count
/// bytes and may be negative. It owns nothing, and indices are not checked: `quern check` does that.
template <class T, int N>
struct array {
  static_assert(N > 0, "quern::array<T, N>: N is the number of dimensions");
  using value_type = T;
  enum : int { rank = N };  // enumerators: NVRTC emits static members as variables

  T* data;
  long long extents[N];
  long long strides_bytes[N];

  /// Elements along dimension `dim`.
  QUERN_HOST_DEVICE constexpr long long extent(int dim) const { return extents[dim]; }
  /// Elements in all.
  QUERN_HOST_DEVICE constexpr long long size() const {
    long long count = 1;
    for (int dim = 0; dim < N; ++dim) count *= extents[dim];
    return count;
  }

  /// a(i, j, ...): one index for each dimension.
  template <class... Index>
  QUERN_HOST_DEVICE T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == N,
                  "quern::array: the number of indices is not the number of dimensions");
    const long long indices[] = {static_cast<long long>(index)...};
    long long offset = 0;
    for (int dim = 0; dim < N; ++dim) offset += indices[dim] * strides_bytes[dim];
    return at_offset(offset);
  }
  /// a[i] of a one-dimensional array.
  QUERN_HOST_DEVICE T& operator[](long long index) const {
    static_assert(N == 1, "quern::array: a[i] is for one dimension; write a(i, j, ...)");
    return at_offset(index * strides_bytes[0]);
  }

 private:
  // Through void, so that no alignment is claimed on the way; const is kept by T itself.
  QUERN_HOST_DEVICE T& at_offset(long long offset) const {
    using byte = unsigned char;
    return *static_cast<T*>(
        static_cast<void*>(reinterpret_cast<byte*>(const_cast<mutable_type*>(data)) + offset));
  }
  template <class U>
  struct without_const {
    using type = U;
  };
  template <class U>
  struct without_const<const U> {
    using type = U;
  };
  using mutable_type = typename without_const<T>::type;
};

/// The array of no dimensions: one element.
template <class T>
struct array<T, 0> {
  using value_type = T;
  enum : int { rank = 0 };

  T* data;

  QUERN_HOST_DEVICE constexpr long long size() const { return 1; }
  QUERN_HOST_DEVICE T& operator()() const { return *data; }
};

namespace detail {

/// Row-major indexing with extents known to the compiler.
template <int First, int... Rest>
struct extents {
  static_assert(First > 0, "quern: extents must be positive");
  enum : int {
    rank = 1 + sizeof...(Rest),
    inner = (1 * ... * Rest),  // elements under one index of the first dimension
    size = First * inner,
  };

  static QUERN_HOST_DEVICE constexpr int extent(int dim) {
    const int all[] = {First, Rest...};
    return all[dim];
  }
  // The element's address, as the compiler would compute it for a C array: dimension by dimension, so that it
  // costs the same.
  template <class T, class Head, class... Tail>
  static QUERN_HOST_DEVICE T* element(T* first, Head head, Tail... tail) {
    static_assert(static_cast<int>(sizeof...(Tail)) + 1 == rank,
                  "quern: the number of indices is not the number of dimensions");
    T* const at = row(first, head);
    if constexpr (sizeof...(Rest) == 0)
      return at;
    else
      return extents<Rest...>::element(at, tail...);
  }
  /// The address of the elements under one index of the first dimension.
  template <class T, class Index>
  static QUERN_HOST_DEVICE T* row(T* first, Index index) {
    using row_type = T[inner];
    return reinterpret_cast<row_type*>(first)[index];
  }
};

}  // namespace detail

/// A view of an array of fixed extents in row-major order: s(i, j) or s[i][j].
template <class T, int First, int... Rest>
struct fixed_array {
  using value_type = T;
  using shape = detail::extents<First, Rest...>;
  enum : int { rank = shape::rank };

  T* data;

  static QUERN_HOST_DEVICE constexpr int extent(int dim) { return shape::extent(dim); }
  static QUERN_HOST_DEVICE constexpr int size() { return shape::size; }

  template <class... Index>
  QUERN_HOST_DEVICE T& operator()(Index... index) const {
    return *shape::element(data, index...);
  }
  /// The element of a one-dimensional array, else the sub-array.
  template <class Index>
  QUERN_HOST_DEVICE decltype(auto) operator[](Index index) const {
    if constexpr (rank == 1)
      return (data[index]);
    else
      return fixed_array<T, Rest...>{shape::row(data, index)};
  }
};

}  // namespace quern
