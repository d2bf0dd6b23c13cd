// SPDX-License-Identifier: Apache-2.0
// quern::syncthreads and its _count, _and and _or; quern::syncwarp and the fences.
#include <quern/device.cuh>

/// For each block: how many of its values are negative, whether all are, whether any is.
extern "C" __global__ void judge_blocks(const int* values, int n, int* negative, int* all, int* any) {
  const int i = quern::grid<1>();
  const bool is_negative = i < n && values[i] < 0;
  const int count = quern::syncthreads_count(is_negative);
  const int every = quern::syncthreads_and(i >= n || is_negative);
  const int some = quern::syncthreads_or(is_negative);
  if (threadIdx.x != 0) return;
  negative[blockIdx.x] = count;
  all[blockIdx.x] = every != 0;
  any[blockIdx.x] = some != 0;
}

/// Running sums over each warp, without shuffles: what a lane writes others read after the warp's barrier.
extern "C" __global__ void sum_warps(const int* in, int* out) {
  auto line = quern::shared::array<int, 256>([] {});
  const int i = quern::grid<1>(), here = threadIdx.x, lane = here % 32;
  int sum = in[i];
  for (int distance = 1; distance < 32; distance *= 2) {
    line[here] = sum;
    quern::syncwarp();
    const int before = lane >= distance ? line[here - distance] : 0;
    quern::syncwarp();
    sum += before;
  }
  out[i] = sum;
}

/// The last block to come adds up what the others left: a fence between their sums and the counter.
extern "C" __global__ void sum_by_last(const int* in, int* sums, unsigned* counter, int* total) {
  const int sum = quern::syncthreads_count(in[quern::grid<1>()] > 0);
  if (threadIdx.x != 0) return;
  sums[blockIdx.x] = sum;
  quern::threadfence();
  if (atomicAdd(counter, 1u) + 1 != gridDim.x) return;
  quern::threadfence();
  int all = 0;
  for (int block = 0; block < static_cast<int>(gridDim.x); ++block) all += static_cast<volatile int*>(sums)[block];
  *total = all;
}
