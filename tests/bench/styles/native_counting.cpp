// SPDX-License-Identifier: Apache-2.0
// Histograms, stream compaction, a pass of radix sort, string search.
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {

// Four tables, so that equal neighbours do not wait for each other.
void histogram(Arrays arrays, Part part) {
  const unsigned char* data = array<unsigned char>(arrays, 0);
  unsigned* counts = array<unsigned>(arrays, 1);
  unsigned tables[4][256]{};
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; i += 4)
    for (std::size_t k = 0; k < 4; ++k) ++tables[k][data[i + k]];
  for (int b = 0; b < 256; ++b)
    __atomic_fetch_add(&counts[b], tables[0][b] + tables[1][b] + tables[2][b] + tables[3][b],
                       __ATOMIC_RELAXED);
}

// Compresses 4,096 elements into a buffer, then reserves their places.
void compact(Arrays arrays, Part part) {
  const int* in = array<int>(arrays, 0);
  int *out = array<int>(arrays, 1), *count = array<int>(arrays, 2);
  alignas(64) int kept[4096 + kLanes];
  for (std::size_t block = part.begin; block < part.end; ++block) {
    const int* from = in + block * 4096;
    std::size_t number = 0;
#if defined(__AVX512F__)
    for (std::size_t i = 0; i < 4096; i += kLanes) {
      const __m512i v = _mm512_loadu_si512(from + i);
      const __mmask16 mask = _mm512_cmpge_epi32_mask(v, _mm512_set1_epi32(kThreshold));
      _mm512_storeu_si512(kept + number, _mm512_maskz_compress_epi32(mask, v));
      number += static_cast<std::size_t>(__builtin_popcount(mask));
    }
#else
    for (std::size_t i = 0; i < 4096; ++i) {
      kept[number] = from[i];
      number += from[i] >= kThreshold ? 1 : 0;
    }
#endif
    const int first = __atomic_fetch_add(count, static_cast<int>(number), __ATOMIC_RELAXED);
    std::memcpy(out + first, kept, number * sizeof(int));
  }
}

// The places of a part's first block are those of all that follow, since the scatter is stable.
void radix_scatter(Arrays arrays, Part part) {
  const unsigned* keys = array<unsigned>(arrays, 0);
  const int* offset = array<int>(arrays, 1);
  unsigned* out = array<unsigned>(arrays, 2);
  int place[kDigits];
  for (std::size_t d = 0; d < kDigits; ++d) place[d] = offset[d * (kKeys / kRadixBlock) + part.begin];
  for (std::size_t i = part.begin * kRadixBlock; i < part.end * kRadixBlock; ++i)
    out[place[keys[i] >> kRadixShift & 15]++] = keys[i];
}

// Compares the pattern's first and last byte with a vector of positions, the rest where both are there.
void search(Arrays arrays, Part part) {
  const char *text = array<char>(arrays, 0), *pattern = array<char>(arrays, 1);
  int *places = array<int>(arrays, 2), *count = array<int>(arrays, 3);
  const auto found = [&](std::size_t i) {
    if (std::memcmp(text + i, pattern, kPattern) == 0)
      places[__atomic_fetch_add(count, 1, __ATOMIC_RELAXED)] = static_cast<int>(i);
  };
  const std::size_t last = kText - kPattern + 1;
  std::size_t i = part.begin * 4096;
  const std::size_t end = part.end * 4096 < last ? part.end * 4096 : last;
#if defined(__AVX512BW__)
  const __m512i first_byte = _mm512_set1_epi8(pattern[0]),
                last_byte = _mm512_set1_epi8(pattern[kPattern - 1]);
  for (; i + 64 <= end; i += 64)
    for (std::uint64_t mask = _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(text + i), first_byte) &
                              _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(text + i + kPattern - 1), last_byte);
         mask != 0; mask &= mask - 1)
      found(i + static_cast<std::size_t>(__builtin_ctzll(mask)));
#else
  const __m256i first_byte = _mm256_set1_epi8(pattern[0]),
                last_byte = _mm256_set1_epi8(pattern[kPattern - 1]);
  const auto bytes = [&](std::size_t at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + at));
  };
  for (; i + 32 <= end; i += 32)
    for (auto mask = static_cast<std::uint32_t>(
             _mm256_movemask_epi8(_mm256_and_si256(_mm256_cmpeq_epi8(bytes(i), first_byte),
                                                   _mm256_cmpeq_epi8(bytes(i + kPattern - 1), last_byte))));
         mask != 0; mask &= mask - 1)
      found(i + static_cast<std::size_t>(__builtin_ctz(mask)));
#endif
  for (; i < end; ++i) found(i);
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
