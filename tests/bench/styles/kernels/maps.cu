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
