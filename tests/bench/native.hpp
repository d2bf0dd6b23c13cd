// SPDX-License-Identifier: Apache-2.0
// The work of the samples, as fast as one thread of this processor can do it: the baseline for quern's CPU
// device. clang compiles native.cpp twice, with and without -ffast-math; the better result is used.
#pragma once

#include <cstddef>
#include <cstdint>

#define QUERN_DECLARE_NATIVE(variant)                                                                       \
  namespace variant {                                                                                       \
  void saxpy(std::size_t n, float a, const float* x, float* y);                                             \
  void mandelbrot(std::int32_t* image, int width, int height, int limit);                                   \
  void matmul(const float* a, const float* b, float* c, int n); /* n: a multiple of 64 */                   \
  float sum(const float* x, std::size_t n);                                                                 \
  void black_scholes(const float* spot, const float* strike, const float* years, float rate,                \
                     float volatility, float* call, float* put, int n);                                     \
  void nbody(const float* position, float* acceleration, int n, float softening); /* n: a multiple of 64 */ \
  void transpose(const float* in, float* out, int rows, int columns);             /* multiples of 32 */     \
  void five_point(const float* in, float* out, int width, int height);                                      \
  void histogram(const unsigned char* data, int n, unsigned int* counts);                                   \
  }

namespace quern::bench {
QUERN_DECLARE_NATIVE(strict)
QUERN_DECLARE_NATIVE(fast)
}  // namespace quern::bench
