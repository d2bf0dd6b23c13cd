// SPDX-License-Identifier: Apache-2.0
// Minimizers of DNA, barcodes by Myers' bit vectors, a level of breadth-first search, Keccak-256 of pairs.
#include "sizes_fourth.hpp"
#include "sizes_third.hpp"
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

typedef std::int64_t Longs __attribute__((ext_vector_type(QUERN_LANES / 2)));
typedef std::uint64_t Masks __attribute__((ext_vector_type(QUERN_LANES / 2)));
constexpr std::size_t kWide = QUERN_LANES / 2;

/// The element of a table of four that two bits of each word select: those from bit 8 * letter on.
class Table {
 public:
  explicit Table(const std::uint64_t* four) {
#if defined(__AVX512F__)
    all_ = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(four)));
#else
    const double* from = reinterpret_cast<const double*>(four);
    low_ = _mm256_broadcast_pd(reinterpret_cast<const __m128d*>(from));
    high_ = _mm256_broadcast_pd(reinterpret_cast<const __m128d*>(from + 2));
#endif
  }
  Masks at(Masks words, int letter) const {
#if defined(__AVX512F__)
    return (Masks)_mm512_permutexvar_epi64((__m512i)(words >> static_cast<std::uint64_t>(8 * letter) & 3),
                                           all_);
#else
    // The instructions look at one bit each: at bit 1 and at bit 63.
    const Masks odd = letter == 0 ? words << 1 : words >> static_cast<std::uint64_t>(8 * letter - 1);
    const Masks upper = words << static_cast<std::uint64_t>(62 - 8 * letter);
    return (Masks)_mm256_blendv_pd(_mm256_permutevar_pd(low_, (__m256i)odd),
                                   _mm256_permutevar_pd(high_, (__m256i)odd), (__m256d)upper);
#endif
  }

 private:
#if defined(__AVX512F__)
  __m512i all_;
#else
  __m256d low_, high_;
#endif
};

}  // namespace

// Words of 2, 4, 8 and 15 letters, each from two shorter ones; minima of 2, 4, 8 and 10 hashes likewise.
void minimizers(Arrays arrays, Part part) {
  constexpr std::size_t kSome = 1024, kLetters = kSome + 64;
  const std::uint8_t* strand = array<std::uint8_t>(arrays, 0);
  std::uint32_t* least = array<std::uint32_t>(arrays, 1);
  alignas(64) std::uint16_t f1[kLetters], f2[kLetters], f4[kLetters], f8[kLetters];
  alignas(64) std::uint16_t b2[kLetters], b4[kLetters], b8[kLetters];
  alignas(64) std::uint32_t h[kLetters], m2[kLetters], m4[kLetters], m8[kLetters];
  const auto smaller = [](std::uint32_t a, std::uint32_t b) { return a < b ? a : b; };
  for (std::size_t piece = part.begin; piece < part.end; ++piece) {
    const std::uint8_t* from = strand + piece * kSome;
    std::uint32_t* __restrict to = least + piece * kSome;
    for (std::size_t i = 0; i < kSome + 64; ++i) f1[i] = from[i] >> 1 & 3;
    for (std::size_t i = 0; i < kSome + 56; ++i) {
      f2[i] = static_cast<std::uint16_t>(f1[i] << 2 | f1[i + 1]);
      b2[i] = static_cast<std::uint16_t>((f1[i] | f1[i + 1] << 2) ^ 10);
    }
    for (std::size_t i = 0; i < kSome + 48; ++i) {
      f4[i] = static_cast<std::uint16_t>(f2[i] << 4 | f2[i + 2]);
      b4[i] = static_cast<std::uint16_t>(b2[i] | b2[i + 2] << 4);
    }
    for (std::size_t i = 0; i < kSome + 40; ++i) {
      f8[i] = static_cast<std::uint16_t>(f4[i] << 8 | f4[i + 4]);
      b8[i] = static_cast<std::uint16_t>(b4[i] | b4[i + 4] << 8);
    }
    for (std::size_t i = 0; i < kSome + 32; ++i) {  // the second words begin one letter early
      const std::uint32_t forward = static_cast<std::uint32_t>(f8[i]) << 14 | (f8[i + 7] & 0x3fffu);
      const std::uint32_t backward = static_cast<std::uint32_t>(b8[i + 7] >> 2) << 16 | b8[i];
      h[i] = scrambled(smaller(forward, backward));
    }
    for (std::size_t i = 0; i < kSome + 24; ++i) m2[i] = smaller(h[i], h[i + 1]);
    for (std::size_t i = 0; i < kSome + 16; ++i) m4[i] = smaller(m2[i], m2[i + 2]);
    for (std::size_t i = 0; i < kSome + 8; ++i) m8[i] = smaller(m4[i], m4[i + 4]);
    for (std::size_t i = 0; i < kSome; ++i) to[i] = smaller(m8[i], m8[i + 2]);
  }
}

// A read a lane, two vectors side by side.
void barcodes(Arrays arrays, Part part) {
  constexpr std::size_t kVectors = 2;
  const std::uint8_t *barcode = array<std::uint8_t>(arrays, 0), *reads = array<std::uint8_t>(arrays, 1);
  int *distances = array<int>(arrays, 2), *ends = array<int>(arrays, 3);
  std::uint64_t equal[4]{};
  for (std::size_t i = 0; i < kBarcode; ++i) equal[barcode[i]] |= std::uint64_t{1} << i;
  const Table table(equal);
  for (std::size_t read = part.begin * 32; read < part.end * 32; read += kVectors * kWide) {
    Masks up[kVectors], down[kVectors]{}, words[kVectors];
    Longs score[kVectors], best[kVectors], end[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) {
      up[v] = ~std::uint64_t{0};
      score[v] = best[v] = std::int64_t{kBarcode};
      end[v] = -1;
    }
    for (std::size_t j = 0; j < kRead; j += 8) {
      for (std::size_t v = 0; v < kVectors; ++v)
        for (std::size_t lane = 0; lane < kWide; ++lane) {
          std::uint64_t word;
          std::memcpy(&word, reads + (read + v * kWide + lane) * kRead + j, sizeof word);
          words[v][lane] = word;
        }
#pragma clang loop unroll(full)
      for (int letter = 0; letter < 8; ++letter)
#pragma clang loop unroll(full)
        for (std::size_t v = 0; v < kVectors; ++v) {
          const Masks same = table.at(words[v], letter);
          const Masks vertical = same | down[v];
          const Masks across = (((same & up[v]) + up[v]) ^ up[v]) | same;
          const Masks more = down[v] | ~(across | up[v]), less = up[v] & across;
          score[v] += (Longs)(more >> 63) - (Longs)(less >> 63);
          up[v] = less << 1 | ~(vertical | more << 1);
          down[v] = more << 1 & vertical;
          const Longs nearer = score[v] < best[v];
          best[v] = nearer ? score[v] : best[v];
          end[v] = nearer ? Longs(static_cast<std::int64_t>(j) + letter) : end[v];
        }
    }
    for (std::size_t v = 0; v < kVectors; ++v)
      for (std::size_t lane = 0; lane < kWide; ++lane) {
        distances[read + v * kWide + lane] = static_cast<int>(best[v][lane]);
        ends[read + v * kWide + lane] = static_cast<int>(end[v][lane]);
      }
  }
}

namespace {

/// Takes the edges of 64 vertices together, so that the distances are on their way when they are looked at.
template <bool kAlone>
void search_level(Arrays arrays, Part part) {
  constexpr std::size_t kSome = 64, kMostEdges = kSome * 20;
  const int *begins = array<int>(arrays, 0), *edges = array<int>(arrays, 1),
            *frontier = array<int>(arrays, 2);
  int *distances = array<int>(arrays, 3), *next = array<int>(arrays, 4), *next_size = array<int>(arrays, 5);
  int near[kMostEdges + 32], found[kMostEdges + 1];
  for (std::size_t piece = part.begin; piece < part.end; ++piece) {
    const int* own = frontier + piece * kSome;
    std::size_t count = 0;
    for (std::size_t i = 0; i < kSome; ++i) {
      if (piece * kSome + i + 32 < kFrontier) __builtin_prefetch(&begins[own[i + 32]]);
      if (piece * kSome + i + 16 < kFrontier) {
        const int* ahead = edges + begins[own[i + 16]];
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + 16);
      }
      for (int e = begins[own[i]]; e < begins[own[i] + 1]; ++e) {
        __builtin_prefetch(&distances[edges[e]], 1);
        near[count++] = edges[e];
      }
    }
    int size = 0, first = kAlone ? *next_size : 0;
    for (std::size_t e = 0; e < count; ++e) {
      const int vertex = near[e];
      int before = kAlone ? distances[vertex] : __atomic_load_n(&distances[vertex], __ATOMIC_RELAXED);
      if constexpr (kAlone) {
        distances[vertex] = before < 0 ? kLevel : before;
        found[size] = vertex;
        size += before < 0 ? 1 : 0;
      } else if (before < 0 && __atomic_compare_exchange_n(&distances[vertex], &before, kLevel, false,
                                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        found[size++] = vertex;
      }
    }
    if constexpr (kAlone)
      *next_size = first + size;
    else
      first = __atomic_fetch_add(next_size, size, __ATOMIC_RELAXED);
    std::memcpy(next + first, found, static_cast<std::size_t>(size) * sizeof(int));
  }
}

}  // namespace

void bfs_level(Arrays arrays, Part part) {
  if (part.begin == 0 && part.end == kFrontier / 64)
    search_level<true>(arrays, part);
  else
    search_level<false>(arrays, part);
}

namespace {

constexpr int kTurns[24] = {1,  3,  6,  10, 15, 21, 28, 36, 45, 55, 2,  14,
                            27, 41, 56, 8,  25, 43, 62, 18, 39, 61, 20, 44};
constexpr int kMoves[24] = {10, 7,  11, 17, 18, 3, 5,  16, 8,  21, 24, 4,
                            15, 23, 19, 13, 12, 2, 20, 14, 22, 9,  6,  1};

template <class V>
inline V turned(V x, int by) {
  return x << static_cast<std::uint64_t>(by) | x >> static_cast<std::uint64_t>(64 - by);
}

template <class V>
inline void permute(V* a) {
#pragma clang loop unroll(disable)
  for (int round = 0; round < 24; ++round) {
    V c[5];
#pragma clang loop unroll(full)
    for (int x = 0; x < 5; ++x) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
#pragma clang loop unroll(full)
    for (int x = 0; x < 5; ++x) {
      const V d = c[(x + 4) % 5] ^ turned(c[(x + 1) % 5], 1);
#pragma clang loop unroll(full)
      for (int y = 0; y < 25; y += 5) a[y + x] ^= d;
    }
    V moving = a[1];
#pragma clang loop unroll(full)
    for (int k = 0; k < 24; ++k) {
      const V next = a[kMoves[k]];
      a[kMoves[k]] = turned(moving, kTurns[k]);
      moving = next;
    }
#pragma clang loop unroll(full)
    for (int y = 0; y < 25; y += 5) {
      const V r0 = a[y], r1 = a[y + 1];
      a[y] ^= ~r1 & a[y + 2];
      a[y + 1] ^= ~a[y + 2] & a[y + 3];
      a[y + 2] ^= ~a[y + 3] & a[y + 4];
      a[y + 3] ^= ~a[y + 4] & r0;
      a[y + 4] ^= ~r0 & r1;
    }
    a[0] ^= kRoundConstants[round];
  }
}

}  // namespace

// A pair a lane.
void keccak(Arrays arrays, Part part) {
  const std::uint64_t* in = array<std::uint64_t>(arrays, 0);
  std::uint64_t* out = array<std::uint64_t>(arrays, 1);
  for (std::size_t pair = part.begin * 8; pair < part.end * 8; pair += kWide) {
    Masks a[25]{};
    for (std::size_t k = 0; k < 8; ++k)
      for (std::size_t lane = 0; lane < kWide; ++lane) a[k][lane] = in[(pair + lane) * 8 + k];
    a[8] = 1;
    a[16] = std::uint64_t{1} << 63;
    permute(a);
    for (std::size_t lane = 0; lane < kWide; ++lane)
      for (std::size_t k = 0; k < 4; ++k) out[(pair + lane) * 4 + k] = a[k][lane];
  }
}

void keccak_scalar(Arrays arrays, Part part) {
  for (std::size_t pair = part.begin * 8; pair < part.end * 8; ++pair) {
    std::uint64_t a[25]{};
    std::memcpy(a, array<std::uint64_t>(arrays, 0) + pair * 8, 64);
    a[8] = 1;
    a[16] = std::uint64_t{1} << 63;
    permute(a);
    std::memcpy(array<std::uint64_t>(arrays, 1) + pair * 4, a, 32);
  }
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
