// SPDX-License-Identifier: Apache-2.0
// component: compile
// Lanes, masks and bits under the names that Kernel Python uses.
#pragma once

namespace quern {

__device__ __forceinline__ int lane_id() {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
__device__ __forceinline__ unsigned lanemask_lt() {
  unsigned mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}
/// Is the predicate true for all lanes of the mask, or for none?
__device__ __forceinline__ int equal_sync(unsigned mask, int predicate) {
  const unsigned votes = __ballot_sync(mask, predicate);
  return votes == 0 || votes == (mask & __activemask());
}

/// Bits of an integer of any width. clz counts within the width of T.
template <class T>
__device__ __forceinline__ int popc(T x) {
  if constexpr (sizeof(T) == 8)
    return __popcll(static_cast<unsigned long long>(x));
  else
    return __popc(static_cast<unsigned>(x) & (0xffffffffu >> (32 - 8 * sizeof(T))));
}
/// np.bitwise_count: the one bits of |x|. The magnitude of the least number is 2**(bits - 1).
template <class T>
__device__ __forceinline__ unsigned char bitwise_count(T x) {
  if constexpr (T(-1) < T(0)) {
    if (x < 0) x = static_cast<T>(0ull - static_cast<unsigned long long>(x));
  }
  return static_cast<unsigned char>(popc(x));
}
template <class T>
__device__ __forceinline__ int clz(T x) {
  if constexpr (sizeof(T) == 8)
    return __clzll(static_cast<long long>(x));
  else
    return __clz(static_cast<int>(static_cast<unsigned>(x) & (0xffffffffu >> (32 - 8 * sizeof(T))))) -
           (32 - 8 * static_cast<int>(sizeof(T)));
}
template <class T>
__device__ __forceinline__ auto brev(T x) {
  if constexpr (sizeof(T) == 8)
    return __brevll(static_cast<unsigned long long>(x));
  else
    return __brev(static_cast<unsigned>(x));
}
template <class T>
__device__ __forceinline__ unsigned ffs(T x) {
  if constexpr (sizeof(T) == 8)
    return __ffsll(static_cast<long long>(x));
  else
    return __ffs(static_cast<int>(static_cast<unsigned>(x) & (0xffffffffu >> (32 - 8 * sizeof(T)))));
}

}  // namespace quern
