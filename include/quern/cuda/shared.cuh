// SPDX-License-Identifier: Apache-2.0
// component: compile
// Arrays in shared memory.
//
//   auto tile = quern::shared::array<float, 16, 17>();   // 16 x 17 floats of this block
//   auto dynamic = quern::shared::array<float, 0>();     // what the launch gives (--shared BYTES)
//
// Every place in the source that says array<...>() has storage of its own, as every __shared__ declaration
// has; a name given to the type (`using tile_t = quern::shared::array<float, 16>`) is one place. C++17 needs
// help to tell the places apart: write quern::shared::array<float, 16, 17>([] {}) there, which C++20 takes as
// well.
#pragma once

#include <quern/cuda/array.cuh>

namespace quern {

/// A view of dynamic shared memory: as many elements as the launch gave.
template <class T>
struct dynamic_array {
  using value_type = T;
  enum : int { rank = 1 };

  T* data;

  __device__ __forceinline__ int size() const {
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return static_cast<int>(bytes / sizeof(T));
  }
  __device__ __forceinline__ int extent(int) const { return size(); }
  template <class Index>
  __device__ __forceinline__ T& operator()(Index index) const {
    return data[index];
  }
  template <class Index>
  __device__ __forceinline__ T& operator[](Index index) const {
    return data[index];
  }
};

namespace detail {

template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  // One name and one type for all T: CUDA C++ gives every dynamic array the same address.
  extern __shared__ __align__(16) unsigned char quern_dynamic_shared[];
  static_assert(alignof(T) <= 16, "quern::shared::array: dynamic shared memory is aligned to 16 bytes");
  return reinterpret_cast<T*>(quern_dynamic_shared);
}

enum : int { no_extent = -1 };

// The view for a list of extents that ends at the first no_extent.
template <class T, class Seen, int... Extents>
struct shared_view;
template <int... Seen>
struct extent_list {};
template <class T, int... Seen>
struct shared_view<T, extent_list<Seen...>> {
  using type = fixed_array<T, Seen...>;
};
template <class T, int... Seen, int... Rest>
struct shared_view<T, extent_list<Seen...>, no_extent, Rest...> {
  using type = fixed_array<T, Seen...>;
};
template <class T, int... Seen, int Next, int... Rest>
struct shared_view<T, extent_list<Seen...>, Next, Rest...>
    : shared_view<T, extent_list<Seen..., Next>, Rest...> {};
template <class T, int... Rest>
struct shared_view<T, extent_list<>, 0, Rest...> {
  using type = dynamic_array<T>;
};

template <class T, class Site, int Count>
__device__ __forceinline__ T* static_shared() {
  // Bytes, so that a T with constructors can be held too: as for any array in shared memory they are not run.
  __shared__ __align__(alignof(T) > 16 ? alignof(T) : 16) unsigned char storage[sizeof(T) * Count];
  return reinterpret_cast<T*>(storage);
}

// A view that finds its own storage. Site tells the places in the source apart.
template <class View, class Site>
struct shared_array : View {
  __device__ __forceinline__ shared_array()
      : View{static_shared<typename View::value_type, Site, View::size()>()} {}
  template <class Lambda>
  __device__ __forceinline__ explicit shared_array(Lambda) : shared_array() {}
};
template <class T, class Site>
struct shared_array<dynamic_array<T>, Site> : dynamic_array<T> {
  __device__ __forceinline__ shared_array() : dynamic_array<T>{dynamic_shared<T>()} {}
  template <class Lambda>
  __device__ __forceinline__ explicit shared_array(Lambda) : shared_array() {}
};

#if __cplusplus >= 202002L
// Every use of the alias below has a lambda of its own as its last argument. NVRTC 13 gives such lambdas
// mangled names that are not unique, so they must not reach a symbol: each is turned into a number, the first
// that no other has taken. Defining the friend of number_taken<N> is what takes N.
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1301
template <int N>
struct number_taken {
  friend constexpr int taken_number(number_taken<N>);
};
#pragma nv_diagnostic pop
// Enumerators, not static members: NVRTC would emit those as variables, under the very names that are not
// unique.
template <int N>
struct take_number {
  friend constexpr int taken_number(number_taken<N>) { return N; }
  enum : int { value = N };
};
template <bool>
struct when {};
template <int N, auto Lambda, class = when<true>>
struct number_of_site {
  enum : int { value = take_number<N>::value };
};
template <int N, auto Lambda>
struct number_of_site<N, Lambda, when<(taken_number(number_taken<N>{}) == N)>>
    : number_of_site<N + 1, Lambda> {};
#endif

template <int Number>
struct numbered_site {};

}  // namespace detail

namespace shared {

#if __cplusplus >= 202002L
/// An array of T in the block's shared memory, uninitialised: fixed_array<T, extents...>. A single extent of
/// 0 is the dynamic shared memory: dynamic_array<T>. At most six dimensions.
template <class T, int E0, int E1 = detail::no_extent, int E2 = detail::no_extent, int E3 = detail::no_extent,
          int E4 = detail::no_extent, int E5 = detail::no_extent, auto Site = [] {}>
using array =
    detail::shared_array<typename detail::shared_view<T, detail::extent_list<>, E0, E1, E2, E3, E4, E5>::type,
                         detail::numbered_site<detail::number_of_site<0, Site>::value>>;
#else
/// The same for C++17: `site` is any lambda written at the call; it is never called.
template <class T, int... Extents, class Site>
__device__ __forceinline__ auto array(Site) {
  return detail::shared_array<typename detail::shared_view<T, detail::extent_list<>, Extents...>::type,
                              Site>();
}
template <class T, int... Extents>
__device__ __forceinline__ auto array() {
  static_assert(sizeof(T) == 0,
                "quern::shared::array<T, extents...>() needs C++20; for C++17 write quern::shared::array<T, "
                "extents...>([] {})");
  return array<T, Extents...>([] {});
}
#endif

}  // namespace shared
}  // namespace quern
