// SPDX-License-Identifier: Apache-2.0
// Running sums of each block's 256 integers: shuffles within warps, the warps' totals through shared memory.

extern "C" __global__ void block_scan(const int* in, int* out, int n) {
  __shared__ int totals[8];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = i < n ? in[i] : 0;
  for (int distance = 1; distance < 32; distance *= 2) {
    const int below = __shfl_up_sync(0xffffffffu, sum, distance);
    if (lane >= distance) sum += below;
  }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  for (int before = 0; before < warp; ++before) sum += totals[before];
  if (i < n) out[i] = sum;
}
