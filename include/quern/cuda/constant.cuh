// SPDX-License-Identifier: Apache-2.0
// component: compile
// Arrays in constant memory, from a constexpr array of the source:
//
//   constexpr float kWeights[2][3] = {{1, 2, 3}, {4, 5, 6}};
//   ...
//   auto weights = quern::constant::array_like<kWeights>();   // in a kernel; weights(1, 2) == 6
#pragma once

#include <quern/cuda/array.cuh>

namespace quern {
namespace detail {

// The parts of a (multi-dimensional) C array type: its element, its extents from the outside in.
template <class T, int... Extents>
struct constant_traits {
  using element = T;
  using view = fixed_array<const T, Extents...>;
  enum : int { size = view::shape::size };
};
template <class T, decltype(sizeof(0)) Count, int... Extents>
struct constant_traits<T[Count], Extents...> : constant_traits<T, Extents..., static_cast<int>(Count)> {};

// float[2][3] of const float (&)[2][3].
template <class T>
struct constant_plain {
  static_assert(sizeof(T) == 0, "quern::constant::array_like<A>: A must be a constexpr array");
};
template <class T, decltype(sizeof(0)) Count>
struct constant_plain<const T (&)[Count]> {
  using type = T[Count];
};

template <class T, int Count>
struct constant_values {
  T values[Count];
};

// Copies the elements of `from` in row-major order to `to`, and returns the end of what it wrote.
template <class T>
constexpr T* copy_elements(const T& from, T* to) {
  *to = from;
  return to + 1;
}
template <class T, class Row, decltype(sizeof(0)) Count>
constexpr T* copy_elements(const Row (&from)[Count], T* to) {
  for (decltype(sizeof(0)) i = 0; i < Count; ++i) to = copy_elements(from[i], to);
  return to;
}

template <class Traits, class Array>
constexpr auto copy_constant(const Array& source) {
  constant_values<typename Traits::element, Traits::size> copy{};
  copy_elements(source, copy.values);
  return copy;
}

template <const auto& Source>
using constant_traits_of = constant_traits<typename constant_plain<decltype((Source))>::type>;

template <const auto& Source>
__constant__ constexpr auto constant_copy = copy_constant<constant_traits_of<Source>>(Source);

}  // namespace detail

namespace constant {

/// A view, const and row-major, of a copy of `Source` in constant memory: c(i, j) or c[i][j]. `Source` is a
/// constexpr array of namespace scope, of any number of dimensions, and of at most 64 KiB.
template <const auto& Source>
__device__ __forceinline__ auto array_like() {
  static_assert(sizeof(Source) <= 65536,
                "quern::constant::array_like: constant memory holds 64 KiB, and this array is larger");
  return typename detail::constant_traits_of<Source>::view{detail::constant_copy<Source>.values};
}

}  // namespace constant
}  // namespace quern
