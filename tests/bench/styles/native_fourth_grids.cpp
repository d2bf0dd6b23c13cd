// SPDX-License-Identifier: Apache-2.0
// Jacobi's method in three dimensions, a bilateral filter, JPEG's transform.
#include <algorithm>

#include "sizes_fourth.hpp"
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

/// Three planes fit in the second cache.
template <bool kPast>
void jacobi_planes(Arrays arrays, Part part) {
  constexpr std::size_t kRow = kSpaceX, kPlane = kSpaceX * kSpaceY;
  const float* in = array<float>(arrays, 0);
  float* out = array<float>(arrays, 1);
  const Ints first = ramp() == 0, last = ramp() == kLanes - 1;
  for (std::size_t z = part.begin; z < part.end; ++z)
    for (std::size_t y = 0; y < kSpaceY; ++y) {
      const float* from = in + z * kPlane + y * kRow;
      float* to = out + z * kPlane + y * kRow;
      if (z == 0 || z == kSpaceZ - 1 || y == 0 || y == kSpaceY - 1) {
        for (std::size_t x = 0; x < kRow; x += kLanes) put<kPast>(to + x, load<Floats>(from + x));
        continue;
      }
      const auto moved = [&](std::size_t x) {
        const float* p = from + x;
        const Floats sides = load<Floats>(p - kPlane) + load<Floats>(p + kPlane) + load<Floats>(p - kRow) +
                             load<Floats>(p + kRow) + load<Floats>(p - 1) + load<Floats>(p + 1);
        return kCentreWeight * load<Floats>(p) + kSideWeight * sides;
      };
      put<kPast>(to, first ? load<Floats>(from) : moved(0));
      for (std::size_t x = kLanes; x < kRow - kLanes; x += kLanes) put<kPast>(to + x, moved(x));
      put<kPast>(to + kRow - kLanes, last ? load<Floats>(from + kRow - kLanes) : moved(kRow - kLanes));
    }
  _mm_sfence();
}

/// exp(x) for x <= 0: a power of two and a polynomial.
inline Floats power(Floats x) {
  const Floats n =
      __builtin_elementwise_roundeven(__builtin_elementwise_max(x, Floats(-87.0f)) * 1.44269504f);
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * (Floats)(__builtin_convertvector(n, Ints) + 127 << 23);
}

typedef float Eight __attribute__((ext_vector_type(8)));

}  // namespace

void jacobi3(Arrays arrays, Part part) { jacobi_planes<true>(arrays, part); }
void jacobi3_stored(Arrays arrays, Part part) { jacobi_planes<false>(arrays, part); }

// Rows with repeated ends; two vectors side by side.
void bilateral(Arrays arrays, Part part) {
  constexpr std::size_t kVectors = 2;
  const float *image = array<float>(arrays, 0), *space = array<float>(arrays, 1);
  float* out = array<float>(arrays, 2);
  float rows[kTaps][kNoisySide + 2 * kRadius];
  for (std::size_t y = part.begin; y < part.end; ++y) {
    for (std::size_t k = 0; k < kTaps; ++k) {
      const std::size_t from = std::min(std::max(y + k, kRadius) - kRadius, kNoisySide - 1);
      const float* row = image + from * kNoisySide;
      std::memcpy(rows[k] + kRadius, row, kNoisySide * sizeof(float));
      for (std::size_t x = 0; x < kRadius; ++x) {
        rows[k][x] = row[0];
        rows[k][kRadius + kNoisySide + x] = row[kNoisySide - 1];
      }
    }
    for (std::size_t x = 0; x < kNoisySide; x += kVectors * kLanes) {
      Floats total[kVectors]{}, weights[kVectors]{};
      for (std::size_t dy = 0; dy < kTaps; ++dy)
        for (std::size_t dx = 0; dx < kTaps; ++dx)
#pragma clang loop unroll(full)
          for (std::size_t v = 0; v < kVectors; ++v) {
            const std::size_t at = x + v * kLanes;
            const Floats value = load<Floats>(rows[dy] + at + dx);
            const Floats difference = value - load<Floats>(rows[kRadius] + at + kRadius);
            const Floats weight = space[dy * kTaps + dx] * power(-kRangeScale * difference * difference);
            total[v] += weight * value;
            weights[v] += weight;
          }
      for (std::size_t v = 0; v < kVectors; ++v)
        store(out + y * kNoisySide + x + v * kLanes, total[v] / weights[v]);
    }
  }
}

// Two products of 8 x 8 matrices; a row is a vector.
void dct(Arrays arrays, Part part) {
  const std::uint8_t* image = array<std::uint8_t>(arrays, 0);
  const float *basis = array<float>(arrays, 1), *quant = array<float>(arrays, 2);
  std::int16_t* out = array<std::int16_t>(arrays, 3);
  Eight across[8], inverse[8];
  for (std::size_t k = 0; k < 8; ++k) {
    for (std::size_t x = 0; x < 8; ++x) across[k][x] = basis[x * 8 + k];
    inverse[k] = 1.0f / load<Eight>(quant + k * 8);
  }
  for (std::size_t band = part.begin; band < part.end; ++band)
    for (std::size_t x = 0; x < kDctWidth; x += 8) {
      const std::size_t first = band * 8 * kDctWidth + x;
      alignas(32) float columns[8][8];
      Eight tile[8];
#pragma clang loop unroll(full)
      for (std::size_t k = 0; k < 8; ++k)
        tile[k] = (Eight)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(
                      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(image + first + k * kDctWidth)))) -
                  128.0f;
#pragma clang loop unroll(full)
      for (std::size_t r = 0; r < 8; ++r) {
        Eight even = basis[r * 8] * tile[0], odd = basis[r * 8 + 1] * tile[1];
#pragma clang loop unroll(full)
        for (std::size_t k = 2; k < 8; k += 2) {
          even += basis[r * 8 + k] * tile[k];
          odd += basis[r * 8 + k + 1] * tile[k + 1];
        }
        store(columns[r], even + odd);
      }
#pragma clang loop unroll(full)
      for (std::size_t r = 0; r < 8; ++r) {
        Eight even = columns[r][0] * across[0], odd = columns[r][1] * across[1];
#pragma clang loop unroll(full)
        for (std::size_t k = 2; k < 8; k += 2) {
          even += columns[r][k] * across[k];
          odd += columns[r][k + 1] * across[k + 1];
        }
        const __m256i whole = _mm256_cvtps_epi32((__m256)((even + odd) * inverse[r]));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + first + r * kDctWidth),
                         _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1)));
      }
    }
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
