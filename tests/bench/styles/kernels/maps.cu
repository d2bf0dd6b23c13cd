// SPDX-License-Identifier: Apache-2.0
// One element a thread, a grid-stride loop, pairs of halves.
#include <cuda_fp16.h>

extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void grid_stride(int n, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    const float v = x[i];
    y[i] = ((0.5f * v + 1.25f) * v - 2.0f) * v + 0.75f;
  }
}

extern "C" __global__ void half_axpy(int pairs, float a, const __half2* x, __half2* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) y[i] = __hfma2(__float2half2_rn(a), x[i], y[i]);
}

// One warp a row.
extern "C" __global__ void half_gemv(int columns, const __half2* matrix, const __half2* x, float* y) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const __half2* line = matrix + (size_t)row * (columns / 2);
  float sum = 0.0f;
  for (int i = lane; i < columns / 2; i += 32) {
    const float2 a = __half22float2(line[i]), b = __half22float2(x[i]);
    sum += a.x * b.x + a.y * b.y;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == 0) y[row] = sum;
}

__device__ float normal_cdf(float x) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(x));
  const float polynomial = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228040143267794f * expf(-0.5f * x * x) * polynomial;
  return x > 0.0f ? 1.0f - tail : tail;
}

extern "C" __global__ void black_scholes(const float* spot, const float* strike, const float* years, float rate, float volatility,
                                         float* call, float* put, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float root = volatility * sqrtf(years[i]);
  const float d1 = (logf(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / root;
  const float d2 = d1 - root;
  const float discounted = strike[i] * expf(-rate * years[i]);
  const float price = spot[i] * normal_cdf(d1) - discounted * normal_cdf(d2);
  call[i] = price;
  put[i] = price - spot[i] + discounted;
}

extern "C" __global__ void mandelbrot(int* image, int width, int height, int limit) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  const float cx = -2.0f + 3.0f * column / width;
  const float cy = -1.0f + 2.0f * row / height;
  float x = 0.0f, y = 0.0f;
  int steps = 0;
  while (steps < limit && x * x + y * y < 4.0f) {
    const float next = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = next;
    ++steps;
  }
  image[row * width + column] = steps;
}
