// SPDX-License-Identifier: Apache-2.0
// Compiled with clang -O3 -march=native; QUERN_NATIVE_VARIANT names the namespace.
#include "native.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#if defined(__AVX512F__)
#define QUERN_LANES 16
#else
#define QUERN_LANES 8
#endif

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

typedef float Floats __attribute__((ext_vector_type(QUERN_LANES)));
typedef std::int32_t Ints __attribute__((ext_vector_type(QUERN_LANES)));

template <class V, class T>
V load(const T* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class V, class T>
void store(T* to, V value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

void saxpy(std::size_t n, float a, const float* __restrict x, float* __restrict y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

// Processes two vectors of points at a time, until all of them have left the set.
void mandelbrot(std::int32_t* image, int width, int height, int limit) {
  constexpr int kStep = 2 * QUERN_LANES;
  Ints ramp;
  for (int i = 0; i < QUERN_LANES; ++i) ramp[i] = i;
  for (int row = 0; row < height; ++row) {
    const float cy = -1.0f + 2.0f * static_cast<float>(row) / static_cast<float>(height);
    for (int column = 0; column < width; column += kStep) {
      Floats cx[2], x[2]{}, y[2]{};
      Ints steps[2]{};
      for (int k = 0; k < 2; ++k)
        cx[k] = -2.0f + 3.0f * __builtin_convertvector(ramp + (column + k * QUERN_LANES), Floats) /
                            static_cast<float>(width);
      for (int i = 0; i < limit; ++i) {
        Ints any = 0;
        for (int k = 0; k < 2; ++k) {
          const Floats xx = x[k] * x[k], yy = y[k] * y[k];
          const Ints inside = (xx + yy) < 4.0f;
          any |= inside;
          steps[k] -= inside;
          y[k] = 2.0f * x[k] * y[k] + cy;
          x[k] = xx - yy + cx[k];
        }
        if (__builtin_reduce_or(any) == 0) break;
      }
      for (int k = 0; k < 2; ++k) {
        const int at = column + k * QUERN_LANES;
        std::int32_t* to = image + static_cast<std::ptrdiff_t>(row) * width + at;
        if (at + QUERN_LANES <= width)
          store(to, steps[k]);
        else
          for (int i = 0; at + i < width; ++i) to[i] = steps[k][i];
      }
    }
  }
}

// Register blocks of 6 rows by 2 vectors over packed panels of b.
void matmul(const float* a, const float* b, float* c, int n) {
  constexpr int kRows = 6, kColumns = 2 * QUERN_LANES;
  std::vector<float> panel(static_cast<std::size_t>(n) * kColumns);
  for (int j = 0; j < n; j += kColumns) {
    for (int k = 0; k < n; ++k)
      std::memcpy(&panel[static_cast<std::size_t>(k) * kColumns], b + static_cast<std::ptrdiff_t>(k) * n + j,
                  kColumns * sizeof(float));
    for (int i = 0; i < n; i += kRows) {
      const int rows = n - i < kRows ? n - i : kRows;
      Floats sum[kRows][2]{};
      const float* row[kRows];
      for (int r = 0; r < kRows; ++r) row[r] = a + static_cast<std::ptrdiff_t>(i + (r < rows ? r : 0)) * n;
      for (int k = 0; k < n; ++k) {
        const Floats b0 = load<Floats>(&panel[static_cast<std::size_t>(k) * kColumns]);
        const Floats b1 = load<Floats>(&panel[static_cast<std::size_t>(k) * kColumns + QUERN_LANES]);
        for (int r = 0; r < kRows; ++r) {
          sum[r][0] += row[r][k] * b0;
          sum[r][1] += row[r][k] * b1;
        }
      }
      for (int r = 0; r < rows; ++r) {
        store(c + static_cast<std::ptrdiff_t>(i + r) * n + j, sum[r][0]);
        store(c + static_cast<std::ptrdiff_t>(i + r) * n + j + QUERN_LANES, sum[r][1]);
      }
    }
  }
}

float sum(const float* x, std::size_t n) {
  constexpr std::size_t kStep = 8 * QUERN_LANES;
  Floats part[8]{};
  std::size_t i = 0;
  for (; i + kStep <= n; i += kStep)
    for (std::size_t k = 0; k < 8; ++k) part[k] += load<Floats>(x + i + k * QUERN_LANES);
  float total = 0;
  for (std::size_t k = 0; k < 8; ++k)
    for (int lane = 0; lane < QUERN_LANES; ++lane) total += part[k][lane];
  for (; i < n; ++i) total += x[i];
  return total;
}

static float normal_cdf(float x) {
  const float k = 1.0f / (1.0f + 0.2316419f * std::fabs(x));
  const float polynomial =
      k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228040143267794f * std::exp(-0.5f * x * x) * polynomial;
  return x > 0.0f ? 1.0f - tail : tail;
}

// The loop is vectorised with glibc's vector functions (-fveclib=libmvec).
void black_scholes(const float* __restrict spot, const float* __restrict strike,
                   const float* __restrict years, float rate, float volatility, float* __restrict call,
                   float* __restrict put, int n) {
  for (int i = 0; i < n; ++i) {
    const float root = volatility * std::sqrt(years[i]);
    const float d1 =
        (std::log(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / root;
    const float discounted = strike[i] * std::exp(-rate * years[i]);
    const float price = spot[i] * normal_cdf(d1) - discounted * normal_cdf(d1 - root);
    call[i] = price;
    put[i] = price - spot[i] + discounted;
  }
}

// Processes two vectors of bodies at a time, each against all bodies.
void nbody(const float* __restrict position, float* __restrict acceleration, int n, float softening) {
  constexpr int kBodies = 2 * QUERN_LANES;
  for (int first = 0; first < n; first += kBodies) {
    Floats own[2][3], sum[2][3]{};
    for (int v = 0; v < 2; ++v)
      for (int lane = 0; lane < QUERN_LANES; ++lane)
        for (int d = 0; d < 3; ++d) own[v][d][lane] = position[4 * (first + v * QUERN_LANES + lane) + d];
    for (int j = 0; j < n; ++j)
      for (int v = 0; v < 2; ++v) {
        const Floats dx = position[4 * j] - own[v][0], dy = position[4 * j + 1] - own[v][1],
                     dz = position[4 * j + 2] - own[v][2];
        const Floats inverse = 1.0f / __builtin_elementwise_sqrt(dx * dx + dy * dy + dz * dz + softening);
        const Floats pull = position[4 * j + 3] * inverse * inverse * inverse;
        sum[v][0] += dx * pull;
        sum[v][1] += dy * pull;
        sum[v][2] += dz * pull;
      }
    for (int v = 0; v < 2; ++v)
      for (int lane = 0; lane < QUERN_LANES; ++lane)
        for (int d = 0; d < 4; ++d)
          acceleration[4 * (first + v * QUERN_LANES + lane) + d] = d < 3 ? sum[v][d][lane] : 0.0f;
  }
}

// Transposes 8 x 8 blocks in registers, in tiles of 32 x 32.
void transpose(const float* __restrict in, float* __restrict out, int rows, int columns) {
  typedef float Eight __attribute__((ext_vector_type(8)));
  const auto block = [&](int y, int x) {
    Eight r[8], t[8];
    for (int i = 0; i < 8; ++i) r[i] = load<Eight>(in + static_cast<std::ptrdiff_t>(y + i) * columns + x);
    for (int i = 0; i < 8; i += 2) {
      t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
      for (int k = 0; k < 2; ++k) {
        r[i + 2 * k] = __builtin_shufflevector(t[i + k], t[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 2 * k + 1] = __builtin_shufflevector(t[i + k], t[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      }
    for (int i = 0; i < 4; ++i) {
      t[i] = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
      t[i + 4] = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; ++i) store(out + static_cast<std::ptrdiff_t>(x + i) * rows + y, t[i]);
  };
  for (int y = 0; y < rows; y += 32)
    for (int x = 0; x < columns; x += 32)
      for (int j = 0; j < 32; j += 8)
        for (int i = 0; i < 32; i += 8) block(y + i, x + j);
}

void five_point(const float* __restrict in, float* __restrict out, int width, int height) {
  for (int x = 0; x < width; ++x) out[x] = in[x];
  for (int y = 1; y + 1 < height; ++y) {
    const float* row = in + static_cast<std::ptrdiff_t>(y) * width;
    float* to = out + static_cast<std::ptrdiff_t>(y) * width;
    to[0] = row[0];
    for (int x = 1; x + 1 < width; ++x)
      to[x] = 0.25f * (row[x - 1] + row[x + 1] + row[x - width] + row[x + width]);
    to[width - 1] = row[width - 1];
  }
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(height - 1) * width;
  for (int x = 0; x < width; ++x) out[last + x] = in[last + x];
}

// Four tables, so that equal neighbours do not wait for each other.
void histogram(const unsigned char* data, int n, unsigned int* counts) {
  unsigned int tables[4][256]{};
  int i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) ++tables[k][data[i + k]];
  for (; i < n; ++i) ++tables[0][data[i]];
  for (int b = 0; b < 256; ++b) counts[b] += tables[0][b] + tables[1][b] + tables[2][b] + tables[3][b];
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
