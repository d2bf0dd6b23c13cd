// SPDX-License-Identifier: Apache-2.0
// Warp and block reductions, votes, matches, dynamic shared memory.
template <class T>
__device__ T warp_sum(T value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void block_sum(const float* in, float* out, int n) {
  extern __shared__ float partial[];
  float value = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += in[i];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    value = warp_sum(value);
    if (threadIdx.x == 0) atomicAdd(out, value);
  }
}

extern "C" __global__ void warp_words(const int* in, unsigned* out) {
  const int value = in[threadIdx.x];
  unsigned result = __ballot_sync(0xffffffffu, value > 0);
  result += __any_sync(0xffffffffu, value == 7) + __all_sync(0xffffffffu, value != 3) + __uni_sync(0xffffffffu, value);
  result += __match_any_sync(0xffffffffu, value);
  int all = 0;
  result += __match_all_sync(0xffffffffu, value, &all) + all;
  result += __activemask() + __reduce_add_sync(0xffffffffu, result) + __reduce_max_sync(0xffffffffu, value);
  result += __shfl_xor_sync(0xffffffffu, value, 5) + __shfl_up_sync(0xffffffffu, value, 1, 8) + __shfl_sync(0xffffffffu, value, 3);
  result += __syncthreads_count(value) + __syncthreads_and(value) + __syncthreads_or(value);
  __syncwarp();
  out[threadIdx.x] = result;
}
