// SPDX-License-Identifier: Apache-2.0
// Compiled with clang -O3 -march=native; QUERN_NATIVE_VARIANT names the namespace.
#include "native.hpp"

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

// Two vectors of points at a time, until none of them is inside.
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
        cx[k] = -2.0f + 3.0f * __builtin_convertvector(ramp + (column + k * QUERN_LANES), Floats) / static_cast<float>(width);
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
        if (at + QUERN_LANES <= width) store(to, steps[k]);
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
    for (int k = 0; k < n; ++k) std::memcpy(&panel[static_cast<std::size_t>(k) * kColumns], b + static_cast<std::ptrdiff_t>(k) * n + j, kColumns * sizeof(float));
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

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
