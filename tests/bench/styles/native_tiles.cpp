// SPDX-License-Identifier: Apache-2.0
// Blocked for caches and registers: transpose, matrix product, stencil, n bodies, a 7 x 7 filter.
#include <vector>

#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {

// Tiles of 16 x kLanes in registers; each line of the result is written whole, past the caches.
void transpose(Arrays arrays, Part part) {
  const float* in = array<float>(arrays, 0);
  float* out = array<float>(arrays, 1);
  constexpr std::size_t kGroups = 16 / kLanes;
  const auto tile = [&](std::size_t y, std::size_t x) {
    Floats rows[kGroups][kLanes];
    for (std::size_t g = 0; g < kGroups; ++g) {
      for (std::size_t r = 0; r < kLanes; ++r)
        rows[g][r] = load<Floats>(in + (y + g * kLanes + r) * kSide + x);
      transpose_square(rows[g]);
    }
    for (std::size_t r = 0; r < kLanes; ++r)
      for (std::size_t g = 0; g < kGroups; ++g)
        stream<Floats>(out + (x + r) * kSide + y + g * kLanes, rows[g][r]);
  };
  for (std::size_t x0 = part.begin * 64; x0 < part.end * 64; x0 += 64)
    for (std::size_t y = 0; y < kSide; y += 16)
      for (std::size_t x = x0; x < x0 + 64; x += kLanes) tile(y, x);
  _mm_sfence();
}

// Register blocks of rows by two vectors over packed panels of b.
void matmul(Arrays arrays, Part part) {
  const float *a = array<float>(arrays, 0), *b = array<float>(arrays, 1);
  float* c = array<float>(arrays, 2);
  constexpr std::size_t kRows = kLanes == 16 ? 12 : 6, kWide = 2 * kLanes;
  std::vector<float> panel(kMatrix * kWide);
  for (std::size_t j = part.begin * 32; j < part.end * 32; j += kWide) {
    for (std::size_t k = 0; k < kMatrix; ++k)
      std::memcpy(&panel[k * kWide], b + k * kMatrix + j, kWide * sizeof(float));
    for (std::size_t i = 0; i < kMatrix; i += kRows) {
      Floats total[kRows][2]{};
      for (std::size_t k = 0; k < kMatrix; ++k) {
        const Floats b0 = load<Floats>(&panel[k * kWide]), b1 = load<Floats>(&panel[k * kWide + kLanes]);
        for (std::size_t r = 0; r < kRows; ++r) {
          total[r][0] += a[(i + r) * kMatrix + k] * b0;
          total[r][1] += a[(i + r) * kMatrix + k] * b1;
        }
      }
      for (std::size_t r = 0; r < kRows; ++r) {
        store(c + (i + r) * kMatrix + j, total[r][0]);
        store(c + (i + r) * kMatrix + j + kLanes, total[r][1]);
      }
    }
  }
}

// The rim of the result stays.
void stencil(Arrays arrays, Part part) {
  const float* in = array<float>(arrays, 0);
  float* out = array<float>(arrays, 1);
  for (std::size_t y = part.begin; y < part.end; ++y) {
    if (y == 0 || y == kSide - 1) continue;
    const float* row = in + y * kSide;
    float* to = out + y * kSide;
    const auto point = [&](std::size_t x) {
      return 0.25f * (row[x - 1] + row[x + 1] + row[x - kSide] + row[x + kSide]);
    };
    for (std::size_t x = 1; x < kLanes; ++x) to[x] = point(x);
    for (std::size_t x = kLanes; x < kSide - kLanes; x += kLanes)
      stream<Floats>(to + x, 0.25f * (load<Floats>(row + x - 1) + load<Floats>(row + x + 1) +
                                      load<Floats>(row + x - kSide) + load<Floats>(row + x + kSide)));
    for (std::size_t x = kSide - kLanes; x < kSide - 1; ++x) to[x] = point(x);
  }
  _mm_sfence();
}

// Two vectors of bodies at a time, each against all bodies.
void nbody(Arrays arrays, Part part) {
  const float* position = array<float>(arrays, 0);
  float* acceleration = array<float>(arrays, 1);
  constexpr std::size_t kGroup = 2 * kLanes;
  for (std::size_t first = part.begin * 32; first < part.end * 32; first += kGroup) {
    Floats own[2][3], total[2][3]{};
    for (int v = 0; v < 2; ++v)
      for (int lane = 0; lane < kLanes; ++lane)
        for (int d = 0; d < 3; ++d) own[v][d][lane] = position[4 * (first + v * kLanes + lane) + d];
    for (std::size_t j = 0; j < kBodies; ++j)
      for (int v = 0; v < 2; ++v) {
        const Floats dx = position[4 * j] - own[v][0], dy = position[4 * j + 1] - own[v][1],
                     dz = position[4 * j + 2] - own[v][2];
        const Floats squared = dx * dx + dy * dy + dz * dz + kSoftening;
#if defined(__AVX512F__)
        const Floats near = _mm512_rsqrt14_ps(squared);  // and a step of Newton's
        const Floats inverse = near * (1.5f - 0.5f * squared * near * near);
#else
        const Floats inverse = 1.0f / __builtin_elementwise_sqrt(squared);
#endif
        const Floats pull = position[4 * j + 3] * inverse * inverse * inverse;
        total[v][0] += dx * pull;
        total[v][1] += dy * pull;
        total[v][2] += dz * pull;
      }
    for (int v = 0; v < 2; ++v)
      for (int lane = 0; lane < kLanes; ++lane)
        for (int d = 0; d < 4; ++d)
          acceleration[4 * (first + v * kLanes + lane) + d] = d < 3 ? total[v][d][lane] : 0.0f;
  }
}

// Rows are copied between rims of zeros, so that no point is special; the last eight copies are kept.
void convolve(Arrays arrays, Part part) {
  const float* in = array<float>(arrays, 0);
  float* out = array<float>(arrays, 1);
  constexpr std::size_t kPadded = kImage + 2 * kLanes;
  constexpr int kVectors = 4;
  std::vector<float> rows(8 * kPadded);
  const auto bring = [&](std::ptrdiff_t y) {
    float* to = &rows[static_cast<std::size_t>(y & 7) * kPadded + kLanes];
    if (y >= 0 && y < static_cast<std::ptrdiff_t>(kImage))
      std::memcpy(to, in + static_cast<std::size_t>(y) * kImage, kImage * sizeof(float));
    else
      std::memset(to, 0, kImage * sizeof(float));
  };
  const auto first = static_cast<std::ptrdiff_t>(part.begin * 64),
             last = static_cast<std::ptrdiff_t>(part.end * 64);
  for (std::ptrdiff_t y = first - 3; y < first + 3; ++y) bring(y);
  for (std::ptrdiff_t y = first; y < last; ++y) {
    bring(y + 3);
    for (std::size_t x = 0; x < kImage; x += kVectors * kLanes) {
      Floats total[kVectors]{};
      for (int j = 0; j < 7; ++j) {
        const float* row = &rows[static_cast<std::size_t>((y + j - 3) & 7) * kPadded + kLanes - 3 + x];
        for (int i = 0; i < 7; ++i)
          for (int v = 0; v < kVectors; ++v)
            total[v] += kFilter[j * 7 + i] * load<Floats>(row + i + v * kLanes);
      }
      for (int v = 0; v < kVectors; ++v)
        stream<Floats>(out + static_cast<std::size_t>(y) * kImage + x + v * kLanes, total[v]);
    }
  }
  _mm_sfence();
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
