// SPDX-License-Identifier: Apache-2.0
// Other ways to write works of tests/bench/styles in CUDA C++; the fastest way counts, as for the peers.

// Running sums of 256 by shuffles in warps.
extern "C" __global__ void scan_shuffles(const int* in, int* out) {
  __shared__ int totals[8];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int sum = in[blockIdx.x * 256 + t];
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += before;
  }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += totals[w];
  out[blockIdx.x * 256 + t] = sum;
}

// A thread a block of 256.
extern "C" __global__ void scan_threads(const int* in, int* out) {
  const size_t first = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) * 256;
  int sum = 0;
  for (size_t i = first; i < first + 256; ++i) out[i] = sum += in[i];
}

// A warp a sum of 512 elements.
extern "C" __global__ void block_sums_warps(const float* x, float* sums) {
  const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float sum = 0.0f;
  for (unsigned i = 0; i < 512; i += 32) sum += x[warp * 512 + i + lane];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (lane == 0) sums[warp] = sum;
}

// A warp a row.
extern "C" __global__ void softmax_warps(const float* in, float* out, int columns) {
  const size_t row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  const float* from = in + row * columns;
  float* to = out + row * columns;
  float most = -3.402823466e38f, sum = 0.0f;
  for (int i = lane; i < columns; i += 32) most = fmaxf(most, from[i]);
  for (int offset = 16; offset > 0; offset /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
  for (int i = lane; i < columns; i += 32) {
    const float e = expf(from[i] - most);
    to[i] = e;
    sum += e;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  const float scale = 1.0f / sum;
  for (int i = lane; i < columns; i += 32) to[i] *= scale;
}

// A thread a row of the grid.
extern "C" __global__ void stencil_columns(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x == 0 || x >= width - 1) return;
  for (int y = 1 + blockIdx.y * 64; y < 65 + blockIdx.y * 64 && y < height - 1; ++y) {
    const int i = y * width + x;
    out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
  }
}

// Two rows a thread, without a tile: each element of b that is loaded counts twice.
extern "C" __global__ void matmul_two_rows(const float* a, const float* b, float* c, int n) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = (blockIdx.y * blockDim.y + threadIdx.y) * 2;
  float sum = 0.0f, next = 0.0f;
  for (int k = 0; k < n; ++k) {
    const float other = b[k * n + column];
    sum += a[row * n + k] * other;
    next += a[(row + 1) * n + k] * other;
  }
  c[row * n + column] = sum;
  c[(row + 1) * n + column] = next;
}

// Eight rows a thread, without a tile, in registers; a block's threads are neighbours in a row.
extern "C" __global__ void matmul_eight_rows(const float* a, const float* b, float* c, int n) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * 8;
  float sum[8] = {};
  for (int k = 0; k < n; ++k) {
    const float other = b[k * n + column];
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] += a[(row + i) * n + k] * other;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) c[(row + i) * n + column] = sum[i];
}

// A warp a row of at most 1,024 elements, which stay in registers.
extern "C" __global__ void softmax_registers(const float* in, float* out, int columns) {
  const size_t row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  const float* from = in + row * columns;
  float* to = out + row * columns;
  float own[32], most = -3.402823466e38f, sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    own[k] = lane + 32 * k < columns ? from[lane + 32 * k] : -3.402823466e38f;
    most = fmaxf(most, own[k]);
  }
  for (int offset = 16; offset > 0; offset /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
#pragma unroll
  for (int k = 0; k < 32; ++k) sum += own[k] = expf(own[k] - most);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  const float scale = 1.0f / sum;
#pragma unroll
  for (int k = 0; k < 32; ++k)
    if (lane + 32 * k < columns) to[lane + 32 * k] = own[k] * scale;
}

__constant__ float filter[49] = {
    1, 2, 3, 4,  3, 2, 1, 2, 5, 7,  8, 6, 4, 2, 3, 7, 9, 12, 10, 6, 3, 4, 9, 13, 16,
    13, 8, 4, 3, 6, 11, 12, 9, 7, 3, 2, 4, 6, 8,  7, 5, 2, 1, 2, 3, 4, 3, 2, 1,
};

// A thread a point, without a tile; at the rim with a test of each element.
extern "C" __global__ void convolve_plain(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  if (x >= 3 && x < width - 3 && y >= 3 && y < height - 3) {
#pragma unroll
    for (int j = 0; j < 7; ++j)
#pragma unroll
      for (int i = 0; i < 7; ++i) sum += filter[j * 7 + i] * in[(y + j - 3) * width + x + i - 3];
  } else {
    for (int j = 0; j < 7; ++j)
      for (int i = 0; i < 7; ++i) {
        const int from_x = x + i - 3, from_y = y + j - 3;
        if (from_x >= 0 && from_x < width && from_y >= 0 && from_y < height) sum += filter[j * 7 + i] * in[from_y * width + from_x];
      }
  }
  out[y * width + x] = sum;
}
