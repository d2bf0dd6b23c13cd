// SPDX-License-Identifier: Apache-2.0
// Parts of a language model: RMS norm with a residual, a matrix of 4-bit weights times a vector, the choice of
// experts.
#include <cuda_fp16.h>
#include <math_constants.h>

__device__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// A block a row: adds the residual, rounds the sum to half, and divides by the root of the mean square.
extern "C" __global__ void __launch_bounds__(256) rms_norm(const __half2* __restrict__ x,
                                                           const __half2* __restrict__ residual,
                                                           const __half2* __restrict__ weight, __half2* sum,
                                                           __half2* __restrict__ out, int hidden, float epsilon) {
  __shared__ float warp_sums[8];
  __shared__ float scale;
  const int pairs = hidden / 2;
  const size_t row = (size_t)blockIdx.x * pairs;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
    const float2 a = __half22float2(x[row + i]), b = __half22float2(residual[row + i]);
    const __half2 both = __floats2half2_rn(a.x + b.x, a.y + b.y);
    const float2 rounded = __half22float2(both);
    squares += rounded.x * rounded.x + rounded.y * rounded.y;
    sum[row + i] = both;
  }
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = squares;
  __syncthreads();
  if (threadIdx.x < 32) {
    const float total = warp_sum(threadIdx.x < 8 ? warp_sums[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) scale = rsqrtf(total / hidden + epsilon);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
    const float2 v = __half22float2(sum[row + i]), w = __half22float2(weight[i]);
    out[row + i] = __floats2half2_rn(v.x * scale * w.x, v.y * scale * w.y);
  }
}

// A warp a row. A group of 32 weights has a scale and four words: the low nibbles of word j are the weights 4 j to
// 4 j + 3, the high ones 16 more; 8 is zero. The vector is int8 with a scale a group, and each group's sum.
extern "C" __global__ void gemv_q4(const uint4* __restrict__ weights, const __half* __restrict__ scales,
                                   const int4* __restrict__ x, const float* __restrict__ x_scales,
                                   const float* __restrict__ x_sums, float* __restrict__ y, int groups) {
  const int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float total = 0.0f;
  for (int g = lane; g < groups; g += 32) {
    const uint4 four = weights[(size_t)row * groups + g];
    const int4 low = x[2 * g], high = x[2 * g + 1];
    int dot = 0;
    dot = __dp4a((int)(four.x & 0x0f0f0f0fu), low.x, dot);
    dot = __dp4a((int)(four.y & 0x0f0f0f0fu), low.y, dot);
    dot = __dp4a((int)(four.z & 0x0f0f0f0fu), low.z, dot);
    dot = __dp4a((int)(four.w & 0x0f0f0f0fu), low.w, dot);
    dot = __dp4a((int)(four.x >> 4 & 0x0f0f0f0fu), high.x, dot);
    dot = __dp4a((int)(four.y >> 4 & 0x0f0f0f0fu), high.y, dot);
    dot = __dp4a((int)(four.z >> 4 & 0x0f0f0f0fu), high.z, dot);
    dot = __dp4a((int)(four.w >> 4 & 0x0f0f0f0fu), high.w, dot);
    const float scale = __half2float(scales[(size_t)row * groups + g]);
    total += scale * (x_scales[g] * dot - 8.0f * x_sums[g]);
  }
  total = warp_sum(total);
  if (lane == 0) y[row] = total;
}

// Softmax of 64 logits by a warp, two a lane, and the four largest, one after the other; of equal ones the first.
extern "C" __global__ void route(const float2* __restrict__ logits, float* __restrict__ shares,
                                 int* __restrict__ experts, int tokens) {
  const int lane = threadIdx.x % 32, token = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (token >= tokens) return;
  float2 own = logits[(size_t)token * 32 + lane];
  float most = fmaxf(own.x, own.y);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
  const float total = warp_sum(__expf(own.x - most) + __expf(own.y - most));
  float share = 0.0f;
  int expert = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    float best = own.x >= own.y ? own.x : own.y;
    int where = own.x >= own.y ? 2 * lane : 2 * lane + 1;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, best, offset);
      const int there = __shfl_xor_sync(0xffffffffu, where, offset);
      if (other > best || (other == best && there < where)) {
        best = other;
        where = there;
      }
    }
    if (where == 2 * lane) own.x = -CUDART_INF_F;
    if (where == 2 * lane + 1) own.y = -CUDART_INF_F;
    if (lane == k) {
      share = __expf(best - most) / total;
      expert = where;
    }
  }
  if (lane < 4) {
    shares[token * 4 + lane] = share;
    experts[token * 4 + lane] = expert;
  }
}
