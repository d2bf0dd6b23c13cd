// SPDX-License-Identifier: Apache-2.0
// counts[b] += how many of the n bytes are b: every byte is an atomic addition to global memory.

extern "C" __global__ void global_histogram(const unsigned char* data, int n, unsigned int* counts) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[data[i]], 1u);
}
