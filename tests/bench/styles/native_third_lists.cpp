// SPDX-License-Identifier: Apache-2.0
// Run lengths, the largest of each row, keys counted in a hash table, a step of k-means.
#include "sizes_third.hpp"
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {

// Packs the values and the places where runs begin, then takes differences.
void run_lengths(Arrays arrays, Part part) {
  const int* in = array<int>(arrays, 0);
  int *values = array<int>(arrays, 1), *lengths = array<int>(arrays, 2), *counts = array<int>(arrays, 3);
  alignas(64) int found[kRunBlock + kLanes], begins[kRunBlock + 1 + kLanes];
  for (std::size_t block = part.begin; block < part.end; ++block) {
    const int* from = in + block * kRunBlock;
    std::size_t runs = 0;
#if defined(__AVX512F__)
    __m512i before = _mm512_set1_epi32(~from[0]), place = (__m512i)ramp();
    for (std::size_t i = 0; i < kRunBlock; i += 16) {
      const __m512i own = _mm512_loadu_si512(from + i);
      const __mmask16 heads = _mm512_cmpneq_epi32_mask(own, _mm512_alignr_epi32(own, before, 15));
      _mm512_storeu_si512(found + runs, _mm512_maskz_compress_epi32(heads, own));
      _mm512_storeu_si512(begins + runs, _mm512_maskz_compress_epi32(heads, place));
      runs += static_cast<std::size_t>(__builtin_popcount(heads));
      before = own;
      place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
    }
#else
    for (std::size_t i = 0; i < kRunBlock; ++i) {
      found[runs] = from[i];
      begins[runs] = static_cast<int>(i);
      runs += i == 0 || from[i] != from[i - 1] ? 1 : 0;
    }
#endif
    begins[runs] = kRunBlock;
    std::memcpy(values + block * kRunBlock, found, runs * sizeof(int));
    for (std::size_t r = 0; r < runs; ++r) lengths[block * kRunBlock + r] = begins[r + 1] - begins[r];
    counts[block] = static_cast<int>(runs);
  }
}

namespace {

/// The first column of the largest element of `kChains` vectors with their columns.
template <int kChains>
inline void finish(const Floats* best, const Ints* column, float* value, int* where) {
  float most = best[0][0];
  int place = column[0][0];
  for (int c = 0; c < kChains; ++c)
    for (int lane = 0; lane < kLanes; ++lane)
      if (best[c][lane] > most || (best[c][lane] == most && column[c][lane] < place)) {
        most = best[c][lane];
        place = column[c][lane];
      }
  *value = most;
  *where = place;
}

inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }

}  // namespace

void arg_max(Arrays arrays, Part part) {
  constexpr int kChains = 4;
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const float* from = array<float>(arrays, 0) + row * kTopWidth;
    Floats best[kChains];
    Ints column[kChains], here[kChains];
    for (int c = 0; c < kChains; ++c) {
      best[c] = load<Floats>(from + c * kLanes);
      column[c] = here[c] = ramp() + c * kLanes;
    }
    for (std::size_t x = kChains * kLanes; x < kTopWidth; x += kChains * kLanes)
#pragma clang loop unroll(full)
      for (int c = 0; c < kChains; ++c) {
        const Floats own = load<Floats>(from + x + static_cast<std::size_t>(c * kLanes));
        here[c] += kChains * kLanes;
        const Ints more = own > best[c];
        best[c] = larger(own, best[c]);
        column[c] = more ? here[c] : column[c];
      }
    finish<kChains>(best, column, array<float>(arrays, 1) + row, array<int>(arrays, 2) + row);
  }
}

// The largest first, then its first place, while the row is in the first cache.
void arg_max_twice(Arrays arrays, Part part) {
  constexpr int kChains = 4;
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const float* from = array<float>(arrays, 0) + row * kTopWidth;
    Floats best[kChains];
    for (int c = 0; c < kChains; ++c) best[c] = load<Floats>(from + c * kLanes);
    for (std::size_t x = kChains * kLanes; x < kTopWidth; x += kChains * kLanes)
#pragma clang loop unroll(full)
      for (int c = 0; c < kChains; ++c)
        best[c] = larger(load<Floats>(from + x + static_cast<std::size_t>(c * kLanes)), best[c]);
    const float most = __builtin_reduce_max(larger(larger(best[0], best[1]), larger(best[2], best[3])));
    std::size_t x = 0;
#if defined(__AVX512F__)
    __mmask16 equal;
    while ((equal = _mm512_cmpeq_ps_mask(_mm512_loadu_ps(from + x), _mm512_set1_ps(most))) == 0) x += 16;
    x += static_cast<std::size_t>(__builtin_ctz(equal));
#else
    while (from[x] != most) ++x;
#endif
    array<float>(arrays, 1)[row] = most;
    array<int>(arrays, 2)[row] = static_cast<int>(x);
  }
}

namespace {

/// One thread needs no atomic operations. It stores the key without asking whether it is new: whether it is
/// cannot be predicted.
template <bool kAlone>
inline void count_key(unsigned* table, unsigned* counts, unsigned key) {
  for (unsigned place = scrambled(key) & (kPlaces - 1);; place = (place + 1) & (kPlaces - 1)) {
    unsigned before = __atomic_load_n(&table[place], __ATOMIC_RELAXED);
    if constexpr (!kAlone)
      if (before == 0)
        __atomic_compare_exchange_n(&table[place], &before, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (((before != 0) & (before != key)) != 0) continue;
    if constexpr (kAlone) {
      table[place] = key;
      ++counts[place];
    } else {
      __atomic_fetch_add(&counts[place], 1u, __ATOMIC_RELAXED);
    }
    return;
  }
}

template <bool kAlone>
void count_keys(Arrays arrays, Part part) {
  const unsigned* keys = array<unsigned>(arrays, 0);
  unsigned *table = array<unsigned>(arrays, 1), *counts = array<unsigned>(arrays, 2);
  constexpr std::size_t kAhead = 24;
  const std::size_t end = part.end * 1024;
  for (std::size_t i = part.begin * 1024; i < end; ++i) {
    if (i + kAhead < end) {
      const unsigned place = scrambled(keys[i + kAhead]) & (kPlaces - 1);
      __builtin_prefetch(&table[place], 1);
      __builtin_prefetch(&counts[place], 1);
    }
    count_key<kAlone>(table, counts, keys[i]);
  }
}

}  // namespace

void hash_count(Arrays arrays, Part part) {
  if (part.begin == 0 && part.end == kCountedKeys / 1024)
    count_keys<true>(arrays, part);
  else
    count_keys<false>(arrays, part);
}

namespace {

/// kLanes points, a vector for each of their features; `order` says which point a lane has.
struct Points {
  Floats feature[kFeatures];
  static Ints order() {
#if defined(__AVX512F__)
    return Ints{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
#else
    return ramp();
#endif
  }
  explicit Points(const float* from) {
#if defined(__AVX512F__)
    // Transposes the squares of 4 x 4 in the quarters: lane 4 q + i of a feature is point 4 i + q.
    const __m512 a = _mm512_loadu_ps(from), b = _mm512_loadu_ps(from + 16), c = _mm512_loadu_ps(from + 32),
                 d = _mm512_loadu_ps(from + 48);
    const __m512 ab = _mm512_unpacklo_ps(a, b), ba = _mm512_unpackhi_ps(a, b), cd = _mm512_unpacklo_ps(c, d),
                 dc = _mm512_unpackhi_ps(c, d);
    feature[0] = _mm512_shuffle_ps(ab, cd, 0x44);
    feature[1] = _mm512_shuffle_ps(ab, cd, 0xee);
    feature[2] = _mm512_shuffle_ps(ba, dc, 0x44);
    feature[3] = _mm512_shuffle_ps(ba, dc, 0xee);
#else
    for (std::size_t d = 0; d < kFeatures; ++d)
      feature[d] = gather(from + d, ramp() * static_cast<int>(kFeatures));
#endif
  }
};

struct Distances {
  explicit Distances(const float* centres) : centres_(centres) {}
  Floats operator()(const Points& points, std::size_t k) const {
    Floats total = 0.0f;
    for (std::size_t d = 0; d < kFeatures; ++d) {
      const Floats difference = points.feature[d] - centres_[k * kFeatures + d];
      total += difference * difference;
    }
    return total;
  }

 private:
  const float* centres_;
};

/// |c|^2 - 2 p c, which is less the distance by |p|^2.
struct Expanded {
  float twice[kClusters][kFeatures], square[kClusters];
  explicit Expanded(const float* centres) {
    for (std::size_t k = 0; k < kClusters; ++k) {
      square[k] = 0;
      for (std::size_t d = 0; d < kFeatures; ++d) {
        const float centre = centres[k * kFeatures + d];
        twice[k][d] = -2 * centre;
        square[k] += centre * centre;
      }
    }
  }
  Floats operator()(const Points& points, std::size_t k) const {
    Floats total = square[k];
    for (std::size_t d = 0; d < kFeatures; ++d) total += points.feature[d] * twice[k][d];
    return total;
  }
};

inline void add(float* to, float value) {
  float before, after;
  __atomic_load(to, &before, __ATOMIC_RELAXED);
  do after = before + value;
  while (!__atomic_compare_exchange(to, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/// Labels two vectors of points at a time, then adds their points up in two tables in turn.
template <class Measure>
void assign_points(Arrays arrays, Part part) {
  typedef float Four __attribute__((ext_vector_type(4)));
  const float* points = array<float>(arrays, 0);
  const Measure measure(array<float>(arrays, 1));
  int* labels = array<int>(arrays, 2);
  Four sums[2][kClusters]{};
  int counts[2][kClusters]{};
  constexpr std::size_t kVectors = 2, kGroup = kVectors * kLanes;
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; i += kGroup) {
    const Points own[kVectors] = {Points(points + i * kFeatures), Points(points + (i + kLanes) * kFeatures)};
    Floats least[kVectors];
    Ints best[kVectors]{};
    for (std::size_t v = 0; v < kVectors; ++v) least[v] = measure(own[v], 0);
    for (std::size_t k = 1; k < kClusters; ++k)
#pragma clang loop unroll(full)
      for (std::size_t v = 0; v < kVectors; ++v) {
        const Floats distance = measure(own[v], k);
        const Ints nearer = distance < least[v];
        least[v] = nearer ? distance : least[v];
        best[v] = nearer ? Ints(static_cast<int>(k)) : best[v];
      }
    for (std::size_t v = 0; v < kVectors; ++v)
#if defined(__AVX512F__)
      store<Ints>(labels + i + v * 16,
                  (Ints)_mm512_permutexvar_epi32((__m512i)Points::order(), (__m512i)best[v]));
#else
      store<Ints>(labels + i + v * kLanes, best[v]);
#endif
    for (std::size_t p = i; p < i + kGroup; ++p) {
      sums[p % 2][labels[p]] += load<Four>(points + p * kFeatures);
      ++counts[p % 2][labels[p]];
    }
  }
  for (std::size_t k = 0; k < kClusters; ++k) {
    const Four sum = sums[0][k] + sums[1][k];
    for (std::size_t d = 0; d < kFeatures; ++d) add(array<float>(arrays, 3) + k * kFeatures + d, sum[d]);
    __atomic_fetch_add(array<int>(arrays, 4) + k, counts[0][k] + counts[1][k], __ATOMIC_RELAXED);
  }
}

}  // namespace

void assign(Arrays arrays, Part part) { assign_points<Distances>(arrays, part); }
void assign_expanded(Arrays arrays, Part part) { assign_points<Expanded>(arrays, part); }

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
