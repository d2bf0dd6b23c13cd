// SPDX-License-Identifier: Apache-2.0
// total += the sum of x: a grid-stride loop, a warp shuffle tree, one atomic addition a warp. Blocks are whole warps.

extern "C" __global__ void sum(const float* x, int n, float* total) {
  float mine = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(0xffffffffu, mine, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(total, mine);
}
