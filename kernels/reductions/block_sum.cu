// SPDX-License-Identifier: Apache-2.0
// total += the sum of x: a grid-stride loop, a tree in shared memory, one atomic addition a block of 256 threads.

extern "C" __global__ void block_sum(const float* x, int n, float* total) {
  __shared__ float part[256];
  float mine = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(total, part[0]);
}
