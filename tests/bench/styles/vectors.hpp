// SPDX-License-Identifier: Apache-2.0
// Vectors of clang's for the native functions: loads, stores past the caches, shuffles, gathers.
// QUERN_NATIVE_VARIANT names the namespace, since the functions are compiled twice.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "native.hpp"
#include "sizes.hpp"

#if defined(__AVX512F__)
#define QUERN_LANES 16
#else
#define QUERN_LANES 8
#endif

namespace quern::bench::QUERN_NATIVE_VARIANT {

constexpr int kLanes = QUERN_LANES;
typedef float Floats __attribute__((ext_vector_type(QUERN_LANES)));
typedef std::int32_t Ints __attribute__((ext_vector_type(QUERN_LANES)));
typedef std::uint32_t Words __attribute__((ext_vector_type(QUERN_LANES)));

template <class T>
T* array(Arrays arrays, int i) {
  return static_cast<T*>(arrays[i]);
}

template <class V, class T>
inline V load(const T* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class V, class T>
inline void store(T* to, V value) {
  std::memcpy(to, &value, sizeof value);
}
/// Stores past the caches; `to` is aligned to the vector.
template <class V, class T>
inline void stream(T* to, V value) {
  __builtin_nontemporal_store(value, reinterpret_cast<V*>(to));
}

/// Stores past the caches, or through them.
template <bool kPast, class V, class T>
inline void put(T* to, V value) {
  if constexpr (kPast)
    stream<V>(to, value);
  else
    store<V>(to, value);
}

/// The bits of f16.
typedef std::uint16_t Halves __attribute__((ext_vector_type(QUERN_LANES)));

inline Floats widen(Halves bits) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps((__m256i)bits);
#else
  return _mm256_cvtph_ps((__m128i)bits);
#endif
}
inline Halves narrow(Floats value) {
#if defined(__AVX512F__)
  return (Halves)_mm512_cvtps_ph(value, 0);
#else
  return (Halves)_mm256_cvtps_ph(value, 0);
#endif
}

inline float sum(Floats v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(v);
#else
  const auto half = v.lo + v.hi;
  const auto quarter = half.lo + half.hi;
  return quarter[0] + quarter[1];
#endif
}

inline Floats gather(const float* base, Ints index) {
#if defined(__AVX512F__)
  return _mm512_i32gather_ps((__m512i)index, base, 4);
#else
  return _mm256_i32gather_ps(base, (__m256i)index, 4);
#endif
}
inline Ints gather(const int* base, Ints index) {
#if defined(__AVX512F__)
  return (Ints)_mm512_i32gather_epi32((__m512i)index, base, 4);
#else
  return (Ints)_mm256_i32gather_epi32(base, (__m256i)index, 4);
#endif
}

inline Ints ramp() {
  Ints value;
  for (int i = 0; i < kLanes; ++i) value[i] = i;
  return value;
}

/// Transposes a square of kLanes x kLanes: interleaves rows i and i + kLanes / 2 as often as it takes.
template <class V>
inline void transpose_square(V* rows) {
  V next[kLanes];
  for (int round = 1; round < kLanes; round *= 2) {
    for (int i = 0; i < kLanes / 2; ++i) {
      const V a = rows[i], b = rows[i + kLanes / 2];
#if defined(__AVX512F__)
      next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] =
          __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#else
      next[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#endif
    }
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
