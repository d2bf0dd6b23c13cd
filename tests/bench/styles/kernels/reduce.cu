// SPDX-License-Identifier: Apache-2.0
// Sums of blocks: by a tree in shared memory, by shuffles and eight partial sums, by cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

// Two elements a thread, 256 threads a block, one store a block.
extern "C" __global__ void reduce_tree(const float* x, float* sums) {
  extern __shared__ float part[];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * (blockDim.x * 2) + t;
  part[t] = x[i] + x[i + blockDim.x];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = part[0];
}

__inline__ __device__ float warp_sum(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void reduce_shuffle(const float* x, float* sums) {
  __shared__ float partial[8];
  const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
  const unsigned i = blockIdx.x * 512 + t;
  float value = warp_sum(x[i] + x[i + 256]);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = t < 8 ? partial[lane] : 0.0f;
  if (warp == 0) value = warp_sum(value);
  if (t == 0) sums[blockIdx.x] = value;
}

extern "C" __global__ void reduce_groups(const float* x, float* sums) {
  __shared__ float partial[8];
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const unsigned i = block.group_index().x * 512 + block.thread_rank();
  const float value = cg::reduce(warp, x[i] + x[i + 256], cg::plus<float>());
  if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = value;
  block.sync();
  if (warp.meta_group_rank() == 0) {
    const float all = cg::reduce(warp, warp.thread_rank() < warp.meta_group_size() ? partial[warp.thread_rank()] : 0.0f, cg::plus<float>());
    if (warp.thread_rank() == 0) sums[block.group_index().x] = all;
  }
}
