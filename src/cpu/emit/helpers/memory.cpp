// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters for processors that lack instructions for them, or have them for some sizes only.
#include <immintrin.h>

#include "cpu/emit/helpers/helper_code.hpp"

namespace quern::cpu::emit {
namespace {

template <class T>
QUERN_INLINE void gather_lanes(T* out, const std::int64_t* addresses, std::uint32_t mask) {
  if (mask == 0xffffffffu) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) out[lane] = read_at<T>(addresses[lane]);
    return;
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    out[lane] = (mask >> lane & 1) != 0 ? read_at<T>(addresses[lane]) : T{0};
}

template <class T>
QUERN_INLINE void scatter_lanes(const T* values, const std::int64_t* addresses, std::uint32_t mask) {
  for_each_lane(mask, [&](unsigned lane) QUERN_INLINE_BODY { write_at(addresses[lane], values[lane]); });
}

/// Stores the lanes of the mask to consecutive elements, in groups of eight. Lanes that do not run store
/// elsewhere: their number is as hard to predict as the mask.
template <class T>
QUERN_INLINE void store_row(T* to, const T* values, std::uint32_t mask) {
  constexpr unsigned kGroup = 8;
  T elsewhere;
  for (unsigned first = 0; mask != 0; first += kGroup, mask >>= kGroup) {
    if ((mask & 0xff) == 0xff) {
      __builtin_memcpy(to + first, values + first, kGroup * sizeof(T));
    } else if ((mask & 0xff) != 0) {
      for (unsigned lane = 0; lane < kGroup; ++lane) {
        T* const place = (mask >> lane & 1) != 0 ? to + first + lane : &elsewhere;
        write_at(reinterpret_cast<std::int64_t>(place), values[first + lane]);
      }
    }
  }
}

}  // namespace

extern "C" {

QUERN_KERNEL_MEMORY static void quern_cpu_gather_8(std::uint8_t* out, const std::int64_t* addresses,
                                                   std::uint32_t mask) {
  gather_lanes(out, addresses, mask);
}
QUERN_KERNEL_MEMORY static void quern_cpu_gather_16(std::uint16_t* out, const std::int64_t* addresses,
                                                    std::uint32_t mask) {
  gather_lanes(out, addresses, mask);
}
QUERN_KERNEL_MEMORY static void quern_cpu_gather_32(std::uint32_t* out, const std::int64_t* addresses,
                                                    std::uint32_t mask) {
  gather_lanes(out, addresses, mask);
}
QUERN_KERNEL_MEMORY static void quern_cpu_gather_64(std::uint64_t* out, const std::int64_t* addresses,
                                                    std::uint32_t mask) {
  gather_lanes(out, addresses, mask);
}

__attribute__((target("avx2"))) QUERN_KERNEL_MEMORY static void quern_cpu_gather_32_avx2(
    std::uint32_t* out, const std::int64_t* addresses, std::uint32_t mask) {
  const __m128i bits = _mm_setr_epi32(1, 2, 4, 8);
  for (unsigned lane = 0; lane < kWarpSize; lane += 4, mask >>= 4) {
    const __m256i chunk = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(addresses + lane));
    const __m128i all = _mm_set1_epi32(static_cast<int>(mask));
    const __m128i running = _mm_cmpeq_epi32(_mm_and_si128(all, bits), bits);
    const __m128i values = _mm256_mask_i64gather_epi32(_mm_setzero_si128(), nullptr, chunk, running, 1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + lane), values);
  }
}

__attribute__((target("avx2"))) QUERN_KERNEL_MEMORY static void quern_cpu_gather_64_avx2(
    std::uint64_t* out, const std::int64_t* addresses, std::uint32_t mask) {
  const __m256i bits = _mm256_setr_epi64x(1, 2, 4, 8);
  for (unsigned lane = 0; lane < kWarpSize; lane += 4, mask >>= 4) {
    const __m256i chunk = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(addresses + lane));
    const __m256i running = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(mask), bits), bits);
    const __m256i values = _mm256_mask_i64gather_epi64(_mm256_setzero_si256(), nullptr, chunk, running, 1);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + lane), values);
  }
}

// By 32-bit indices from one base, in elements.
__attribute__((target("avx2"))) QUERN_KERNEL_MEMORY static void quern_cpu_gather_indexed_32_avx2(
    std::uint32_t* out, const void* base, const std::int32_t* indices, std::uint32_t mask) {
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  for (unsigned lane = 0; lane < kWarpSize; lane += 8, mask >>= 8) {
    const __m256i chunk = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(indices + lane));
    const __m256i all = _mm256_set1_epi32(static_cast<int>(mask));
    const __m256i running = _mm256_cmpeq_epi32(_mm256_and_si256(all, bits), bits);
    const __m256i values = _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), static_cast<const int*>(base),
                                                       chunk, running, sizeof *out);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + lane), values);
  }
}

__attribute__((target("avx2"))) QUERN_KERNEL_MEMORY static void quern_cpu_gather_indexed_64_avx2(
    std::uint64_t* out, const void* base, const std::int32_t* indices, std::uint32_t mask) {
  const __m256i bits = _mm256_setr_epi64x(1, 2, 4, 8);
  for (unsigned lane = 0; lane < kWarpSize; lane += 4, mask >>= 4) {
    const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(indices + lane));
    const __m256i running = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(mask), bits), bits);
    const __m256i values = _mm256_mask_i32gather_epi64(
        _mm256_setzero_si256(), static_cast<const long long*>(base), chunk, running, sizeof *out);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + lane), values);
  }
}

QUERN_KERNEL_MEMORY static void quern_cpu_scatter_8(const std::uint8_t* values, const std::int64_t* addresses,
                                                    std::uint32_t mask) {
  scatter_lanes(values, addresses, mask);
}
QUERN_KERNEL_MEMORY static void quern_cpu_scatter_16(const std::uint16_t* values,
                                                     const std::int64_t* addresses, std::uint32_t mask) {
  scatter_lanes(values, addresses, mask);
}
QUERN_KERNEL_MEMORY static void quern_cpu_scatter_32(const std::uint32_t* values,
                                                     const std::int64_t* addresses, std::uint32_t mask) {
  scatter_lanes(values, addresses, mask);
}
QUERN_KERNEL_MEMORY static void quern_cpu_scatter_64(const std::uint64_t* values,
                                                     const std::int64_t* addresses, std::uint32_t mask) {
  scatter_lanes(values, addresses, mask);
}

QUERN_KERNEL_MEMORY static void quern_cpu_store_row_8(std::uint8_t* to, const std::uint8_t* values,
                                                      std::uint32_t mask) {
  store_row(to, values, mask);
}
QUERN_KERNEL_MEMORY static void quern_cpu_store_row_16(std::uint16_t* to, const std::uint16_t* values,
                                                       std::uint32_t mask) {
  store_row(to, values, mask);
}

}  // extern "C"

std::span<const Helper> memory_helpers() {
  static const Helper rows[] = {
      QUERN_HELPER(quern_cpu_gather_8),
      QUERN_HELPER(quern_cpu_gather_16),
      QUERN_HELPER(quern_cpu_gather_32),
      QUERN_HELPER(quern_cpu_gather_64),
      QUERN_HELPER(quern_cpu_gather_32_avx2),
      QUERN_HELPER(quern_cpu_gather_64_avx2),
      QUERN_HELPER(quern_cpu_gather_indexed_32_avx2),
      QUERN_HELPER(quern_cpu_gather_indexed_64_avx2),
      QUERN_HELPER(quern_cpu_scatter_8),
      QUERN_HELPER(quern_cpu_scatter_16),
      QUERN_HELPER(quern_cpu_scatter_32),
      QUERN_HELPER(quern_cpu_scatter_64),
      QUERN_HELPER(quern_cpu_store_row_8),
      QUERN_HELPER(quern_cpu_store_row_16),
  };
  return rows;
}

}  // namespace quern::cpu::emit
