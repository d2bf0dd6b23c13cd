// SPDX-License-Identifier: Apache-2.0
// counts[b] += how many of the n bytes are b: each block counts in shared memory first.

extern "C" __global__ void shared_histogram(const unsigned char* data, int n, unsigned int* counts) {
  __shared__ unsigned int own[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&counts[i], own[i]);
}
