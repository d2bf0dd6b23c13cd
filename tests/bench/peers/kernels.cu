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
