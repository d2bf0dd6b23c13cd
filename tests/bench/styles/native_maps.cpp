// SPDX-License-Identifier: Apache-2.0
// Element by element: saxpy, a polynomial, halves, options, the Mandelbrot set, points in a quarter circle.
#include <cmath>

#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {

void saxpy(Arrays arrays, Part part) {
  const float* __restrict x = array<float>(arrays, 0);
  float* __restrict y = array<float>(arrays, 1);
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i) y[i] = kSlope * x[i] + y[i];
}

void polynomial(Arrays arrays, Part part) {
  const float* x = array<float>(arrays, 0);
  float* y = array<float>(arrays, 1);
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; i += kLanes) {
    const Floats v = load<Floats>(x + i);
    stream<Floats>(y + i, ((0.5f * v + 1.25f) * v - 2.0f) * v + 0.75f);
  }
  _mm_sfence();
}

namespace {

float normal_cdf(float x) {
  const float k = 1.0f / (1.0f + 0.2316419f * std::fabs(x));
  const float polynomial =
      k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228040143267794f * std::exp(-0.5f * x * x) * polynomial;
  return x > 0.0f ? 1.0f - tail : tail;
}

}  // namespace

void half_axpy(Arrays arrays, Part part) {
  const std::uint16_t* x = array<std::uint16_t>(arrays, 0);
  std::uint16_t* y = array<std::uint16_t>(arrays, 1);
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; i += kLanes)
    store(y + i, narrow(kSlope * widen(load<Halves>(x + i)) + widen(load<Halves>(y + i))));
}

void half_gemv(Arrays arrays, Part part) {
  const std::uint16_t *matrix = array<std::uint16_t>(arrays, 0), *x = array<std::uint16_t>(arrays, 1);
  float* y = array<float>(arrays, 2);
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const std::uint16_t* line = matrix + row * kHalfSide;
    Floats sums[4]{};
    for (std::size_t i = 0; i < kHalfSide; i += 4 * kLanes)
      for (int k = 0; k < 4; ++k)
        sums[k] += widen(load<Halves>(line + i + k * kLanes)) * widen(load<Halves>(x + i + k * kLanes));
    y[row] = sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
}

// The loop is vectorised with glibc's vector functions (-fveclib=libmvec).
void black_scholes(Arrays arrays, Part part) {
  const float* __restrict spot = array<float>(arrays, 0);
  const float* __restrict strike = array<float>(arrays, 1);
  const float* __restrict years = array<float>(arrays, 2);
  float* __restrict call = array<float>(arrays, 3);
  float* __restrict put = array<float>(arrays, 4);
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i) {
    const float root = kVolatility * std::sqrt(years[i]);
    const float d1 =
        (std::log(spot[i] / strike[i]) + (kRate + 0.5f * kVolatility * kVolatility) * years[i]) / root;
    const float discounted = strike[i] * std::exp(-kRate * years[i]);
    const float price = spot[i] * normal_cdf(d1) - discounted * normal_cdf(d1 - root);
    call[i] = price;
    put[i] = price - spot[i] + discounted;
  }
}

// Several vectors of points at a time, until all of them have left the set.
void mandelbrot(Arrays arrays, Part part) {
  constexpr int kGroups = kLanes == 16 ? 4 : 2;  // as many as there are registers for
  std::int32_t* image = array<std::int32_t>(arrays, 0);
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const float cy = -1.0f + 2.0f * static_cast<float>(row) / static_cast<float>(kPicture);
    for (int column = 0; column < static_cast<int>(kPicture); column += kGroups * kLanes) {
      Floats cx[kGroups], x[kGroups]{}, y[kGroups]{};
      Ints steps[kGroups]{};
      for (int k = 0; k < kGroups; ++k)
        cx[k] = -2.0f + 3.0f * __builtin_convertvector(ramp() + (column + k * kLanes), Floats) /
                            static_cast<float>(kPicture);
      for (int i = 0; i < kEscapeLimit; ++i) {
        Ints any = 0;
        for (int k = 0; k < kGroups; ++k) {
          const Floats xx = x[k] * x[k], yy = y[k] * y[k];
          const Ints inside = (xx + yy) < 4.0f;
          any |= inside;
          steps[k] -= inside;
          y[k] = 2.0f * x[k] * y[k] + cy;
          x[k] = xx - yy + cx[k];
        }
        if (__builtin_reduce_or(any) == 0) break;
      }
      for (int k = 0; k < kGroups; ++k) store(image + row * kPicture + column + k * kLanes, steps[k]);
    }
  }
}

void inside(Arrays arrays, Part part) {
  std::int32_t* hits = array<std::int32_t>(arrays, 0);
  for (std::size_t first = part.begin * 32; first < part.end * 32; first += 32) {
    constexpr int kGroups = 32 / kLanes;
    Words state[kGroups];
    Ints count[kGroups]{};
    for (int g = 0; g < kGroups; ++g)
      state[g] = __builtin_convertvector(ramp(), Words) + static_cast<std::uint32_t>(first + 1 + g * kLanes);
    const auto draw = [&](Words& s) {
      s ^= s << 13;
      s ^= s >> 17;
      s ^= s << 5;
      return __builtin_convertvector(s, Floats) * (1.0f / 4294967296.0f);
    };
    for (int trial = 0; trial < kTrials; ++trial)
      for (int g = 0; g < kGroups; ++g) {
        const Floats x = draw(state[g]), y = draw(state[g]);
        count[g] -= (x * x + y * y) < 1.0f;
      }
    for (int g = 0; g < kGroups; ++g) store(hits + first + g * kLanes, count[g]);
  }
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
