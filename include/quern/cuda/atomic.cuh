// SPDX-License-Identifier: Apache-2.0
// component: compile
// Atomic operations that CUDA C++ lacks for some types. Each returns what was there before.
#pragma once

__device__ __forceinline__ long long atomicAdd(long long* address, long long value) {
  return static_cast<long long>(
      atomicAdd(reinterpret_cast<unsigned long long*>(address), static_cast<unsigned long long>(value)));
}
__device__ __forceinline__ long long atomicExch(long long* address, long long value) {
  return static_cast<long long>(
      atomicExch(reinterpret_cast<unsigned long long*>(address), static_cast<unsigned long long>(value)));
}
__device__ __forceinline__ long long atomicCAS(long long* address, long long old, long long value) {
  return static_cast<long long>(atomicCAS(reinterpret_cast<unsigned long long*>(address),
                                          static_cast<unsigned long long>(old),
                                          static_cast<unsigned long long>(value)));
}

namespace quern {
namespace detail {

template <int Bytes>
struct word;
template <>
struct word<4> {
  using type = unsigned;
};
template <>
struct word<8> {
  using type = unsigned long long;
};

// Replaces the element by change(element) until nobody was in between.
template <class T, class Change>
__device__ __forceinline__ T atomic_update(T* address, Change change) {
  using bits = typename word<sizeof(T)>::type;
  bits seen = *reinterpret_cast<volatile bits*>(address);
  for (;;) {
    T before;
    memcpy(&before, &seen, sizeof(T));
    const T after = change(before);
    bits wanted;
    memcpy(&wanted, &after, sizeof(T));
    const bits found = atomicCAS(reinterpret_cast<bits*>(address), seen, wanted);
    if (found == seen) return before;
    seen = found;
  }
}

}  // namespace detail

/// CUDA's operations, for long long too.
template <class T>
__device__ __forceinline__ T atomic_add(T* address, T value) {
  return atomicAdd(address, value);
}
template <class T>
__device__ __forceinline__ T atomic_exch(T* address, T value) {
  return atomicExch(address, value);
}
template <class T>
__device__ __forceinline__ T atomic_cas(T* address, T old, T value) {
  return atomicCAS(address, old, value);
}
template <class T>
__device__ __forceinline__ T atomic_sub(T* address, T value) {
  return atomicAdd(address, static_cast<T>(-value));
}

/// For floats, if either value is NaN, the one in memory stays, as in Python's max(there, value).
__device__ __forceinline__ int atomic_max(int* address, int value) { return atomicMax(address, value); }
__device__ __forceinline__ unsigned atomic_max(unsigned* address, unsigned value) {
  return atomicMax(address, value);
}
__device__ __forceinline__ long long atomic_max(long long* address, long long value) {
  return atomicMax(address, value);
}
__device__ __forceinline__ unsigned long long atomic_max(unsigned long long* address,
                                                         unsigned long long value) {
  return atomicMax(address, value);
}
template <class T>
__device__ __forceinline__ T atomic_max(T* address, T value) {
  return detail::atomic_update(address, [=](T x) { return value > x ? value : x; });
}
__device__ __forceinline__ int atomic_min(int* address, int value) { return atomicMin(address, value); }
__device__ __forceinline__ unsigned atomic_min(unsigned* address, unsigned value) {
  return atomicMin(address, value);
}
__device__ __forceinline__ long long atomic_min(long long* address, long long value) {
  return atomicMin(address, value);
}
__device__ __forceinline__ unsigned long long atomic_min(unsigned long long* address,
                                                         unsigned long long value) {
  return atomicMin(address, value);
}
template <class T>
__device__ __forceinline__ T atomic_min(T* address, T value) {
  return detail::atomic_update(address, [=](T x) { return value < x ? value : x; });
}

/// The same, passing over NaN.
template <class T>
__device__ __forceinline__ T atomic_nanmax(T* address, T value) {
  return detail::atomic_update(address, [=](T x) { return value != value || x >= value ? x : value; });
}
template <class T>
__device__ __forceinline__ T atomic_nanmin(T* address, T value) {
  return detail::atomic_update(address, [=](T x) { return value != value || x <= value ? x : value; });
}

/// Counting that wraps: up to `limit`, then 0; down to 0, then `limit`.
template <class T>
__device__ __forceinline__ T atomic_inc(T* address, T limit) {
  return detail::atomic_update(address, [=](T x) { return x >= limit ? T(0) : T(x + 1); });
}
__device__ __forceinline__ unsigned atomic_inc(unsigned* address, unsigned limit) {
  return atomicInc(address, limit);
}
template <class T>
__device__ __forceinline__ T atomic_dec(T* address, T limit) {
  return detail::atomic_update(address, [=](T x) { return x == 0 || x > limit ? limit : T(x - 1); });
}
__device__ __forceinline__ unsigned atomic_dec(unsigned* address, unsigned limit) {
  return atomicDec(address, limit);
}

}  // namespace quern
