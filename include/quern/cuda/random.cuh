// SPDX-License-Identifier: Apache-2.0
// component: compile
// xoroshiro128+ generators, one for each element of an array of states {s0, s1}; seeded by SplitMix64. The
// algorithms are by D. Blackman and S. Vigna, in the public domain (prng.di.unimi.it).
#pragma once

namespace quern {
namespace random {
namespace detail {

__device__ __forceinline__ unsigned long long rotated(unsigned long long x, int by) {
  return (x << by) | (x >> (64 - by));
}

}  // namespace detail

template <class States>
__device__ __forceinline__ void init(const States& states, long long index, unsigned long long seed) {
  unsigned long long z = seed + 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  auto& state = states[index];
  state.s0 = state.s1 = z;
}

/// 64 random bits.
template <class States>
__device__ __forceinline__ unsigned long long next(const States& states, long long index) {
  auto& state = states[index];
  const unsigned long long s0 = state.s0, s1 = state.s1 ^ state.s0, result = state.s0 + state.s1;
  state.s0 = detail::rotated(s0, 55) ^ s1 ^ (s1 << 14);
  state.s1 = detail::rotated(s1, 36);
  return result;
}

/// 2**64 steps forward: generators that start so far apart never meet.
template <class States>
__device__ __forceinline__ void jump(const States& states, long long index) {
  unsigned long long s0 = 0, s1 = 0;
  const unsigned long long words[] = {0xBEAC0467EBA5FACBull, 0xD86B048B86AA9922ull};
  for (const unsigned long long bits : words)
    for (int i = 0; i < 64; ++i) {
      if (bits >> i & 1) {
        s0 ^= states[index].s0;
        s1 ^= states[index].s1;
      }
      next(states, index);
    }
  states[index].s0 = s0;
  states[index].s1 = s1;
}

/// The upper 53 bits as a number in [0, 1).
__device__ __forceinline__ double unit_float64(unsigned long long bits) {
  return (double)(bits >> 11) * (1.0 / 9007199254740992.0);
}
__device__ __forceinline__ float unit_float32(unsigned long long bits) { return (float)unit_float64(bits); }

template <class States>
__device__ __forceinline__ double uniform_float64(const States& states, long long index) {
  return unit_float64(next(states, index));
}
template <class States>
__device__ __forceinline__ float uniform_float32(const States& states, long long index) {
  return unit_float32(next(states, index));
}

/// Box and Muller's transform of two even numbers, in float32 both, as Numba draws them.
template <class States>
__device__ __forceinline__ float normal_float32(const States& states, long long index) {
  const float u = uniform_float32(states, index), v = uniform_float32(states, index);
  return sqrtf(-2.0f * logf(u)) * cosf(6.283185307179586f * v);
}
template <class States>
__device__ __forceinline__ double normal_float64(const States& states, long long index) {
  const float u = uniform_float32(states, index), v = uniform_float32(states, index);
  return sqrt(-2.0 * (double)logf(u)) * cos(6.283185307179586 * (double)v);
}

}  // namespace random
}  // namespace quern
