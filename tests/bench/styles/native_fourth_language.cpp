// SPDX-License-Identifier: Apache-2.0
// RMS norm with a residual, a matrix of 4-bit weights times a vector, the choice of experts.
#include <cmath>

#include "sizes_fourth.hpp"
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

/// The rounded sums stay in the first cache as f32.
template <bool kPast>
void rms_rows(Arrays arrays, Part part) {
  const std::uint16_t *x = array<std::uint16_t>(arrays, 0), *residual = array<std::uint16_t>(arrays, 1),
                      *weight = array<std::uint16_t>(arrays, 2);
  std::uint16_t *sums = array<std::uint16_t>(arrays, 3), *out = array<std::uint16_t>(arrays, 4);
  alignas(64) float held[kHidden];
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const std::size_t first = row * kHidden;
    Floats squares[4]{};
    for (std::size_t i = 0; i < kHidden; i += 4 * kLanes)
#pragma clang loop unroll(full)
      for (std::size_t k = 0; k < 4; ++k) {
        const std::size_t at = i + k * kLanes;
        const Halves both =
            narrow(widen(load<Halves>(x + first + at)) + widen(load<Halves>(residual + first + at)));
        put<kPast>(sums + first + at, both);
        const Floats rounded = widen(both);
        store(held + at, rounded);
        squares[k] += rounded * rounded;
      }
    const float mean = sum((squares[0] + squares[1]) + (squares[2] + squares[3])) / kHidden;
    const float scale = 1.0f / std::sqrt(mean + kRmsEpsilon);
    for (std::size_t i = 0; i < kHidden; i += kLanes)
      put<kPast>(out + first + i, narrow(load<Floats>(held + i) * scale * widen(load<Halves>(weight + i))));
  }
  _mm_sfence();
}

/// Sums of four products of an unsigned and a signed byte: weights up to 15 overflow no 16 bits.
inline __m256i products(__m256i weights, __m256i x) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  return _mm256_dpbusd_epi32(_mm256_setzero_si256(), weights, x);
#else
  return _mm256_madd_epi16(_mm256_maddubs_epi16(weights, x), _mm256_set1_epi16(1));
#endif
}

inline float sum_of_eight(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace

void rms_norm(Arrays arrays, Part part) { rms_rows<true>(arrays, part); }
void rms_norm_stored(Arrays arrays, Part part) { rms_rows<false>(arrays, part); }

// The scales of kLanes groups at once; a vector of bytes is a group.
void gemv_q4(Arrays arrays, Part part) {
  const std::uint8_t* weights = array<std::uint8_t>(arrays, 0);
  const std::uint16_t* scales = array<std::uint16_t>(arrays, 1);
  const std::int8_t* x = array<std::int8_t>(arrays, 2);
  const float *x_scales = array<float>(arrays, 3), *x_sums = array<float>(arrays, 4);
  const __m256i nibble = _mm256_set1_epi8(15);
  for (std::size_t row = part.begin; row < part.end; ++row) {
    __m256 sums[4]{};
    Floats offset = 0.0f;
    for (std::size_t g = 0; g < kQuantGroups; g += kLanes) {
      const Floats own = widen(load<Halves>(scales + row * kQuantGroups + g));
      alignas(64) float factors[kLanes];
      store(factors, own * load<Floats>(x_scales + g));
      offset += own * load<Floats>(x_sums + g);
#pragma clang loop unroll(full)
      for (std::size_t k = 0; k < kLanes; ++k) {
        const std::uint8_t* from = weights + (row * kQuantGroups + g + k) * 16;
        _mm_prefetch(from + 1024, _MM_HINT_T0);
        const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        const __m256i both = _mm256_set_m128i(_mm_srli_epi16(packed, 4), packed);
        const __m256i dot =
            products(_mm256_and_si256(both, nibble),
                     _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + (g + k) * kQuantGroup)));
        sums[k % 4] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_broadcast_ss(factors + k), sums[k % 4]);
      }
    }
    const __m256 all = _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3]));
    array<float>(arrays, 5)[row] = sum_of_eight(all) - 8.0f * sum(offset);
  }
}

// A token a lane: inserts each logit into the four largest so far.
void route(Arrays arrays, Part part) {
#pragma clang fp reassociate(on)
  constexpr std::size_t kLane = kLanes, kAll = kExperts * kLane;
  const float* logits = array<float>(arrays, 0);
  float* shares = array<float>(arrays, 1);
  int* experts = array<int>(arrays, 2);
  for (std::size_t token = part.begin * 16; token < part.end * 16; token += kLane) {
    alignas(64) float powers[kAll + kChosen * kLane];
    Floats best[kChosen];
    Ints where[kChosen]{};
    for (Floats& b : best) b = -1e30f;
    for (std::size_t first = 0; first < kExperts; first += kLane) {
      Floats square[kLane];
      for (std::size_t r = 0; r < kLane; ++r)
        square[r] = load<Floats>(logits + (token + r) * kExperts + first);
      transpose_square(square);
#pragma clang loop unroll(full)
      for (std::size_t r = 0; r < kLane; ++r) {
        Floats value = square[r];
        Ints expert = static_cast<int>(first + r);
        store(powers + (first + r) * kLane, value);
#pragma clang loop unroll(full)
        for (std::size_t k = 0; k < kChosen; ++k) {
          const Ints more = value > best[k];
          const Floats lost = more ? best[k] : value;
          const Ints lost_expert = more ? where[k] : expert;
          best[k] = more ? value : best[k];
          where[k] = more ? expert : where[k];
          value = lost;
          expert = lost_expert;
        }
      }
    }
    for (std::size_t e = 0; e < kExperts; ++e)
      store(powers + e * kLane, load<Floats>(powers + e * kLane) - best[0]);
    for (std::size_t k = 0; k < kChosen; ++k) store(powers + kAll + k * kLane, best[k] - best[0]);
    for (float& power : powers) power = std::exp(power);
    Floats total[4]{};
    for (std::size_t e = 0; e < kExperts; ++e) total[e % 4] += load<Floats>(powers + e * kLane);
    const Floats scale = 1.0f / ((total[0] + total[1]) + (total[2] + total[3]));
    for (std::size_t k = 0; k < kChosen; ++k) {
      const Floats share = load<Floats>(powers + kAll + k * kLane) * scale;
      for (std::size_t lane = 0; lane < kLane; ++lane) {
        shares[(token + lane) * kChosen + k] = share[lane];
        experts[(token + lane) * kChosen + k] = where[k][lane];
      }
    }
  }
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
