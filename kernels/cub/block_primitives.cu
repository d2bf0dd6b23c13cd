// SPDX-License-Identifier: Apache-2.0
// CUB's block-wide primitives: the sum of a block's numbers, and their running sums.
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

constexpr int kThreads = 128;

extern "C" __global__ void block_primitives(const int* in, int* running, int* totals) {
  using Reduce = cub::BlockReduce<int, kThreads>;
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ union {
    Reduce::TempStorage reduce;
    Scan::TempStorage scan;
  } storage;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int total = Reduce(storage.reduce).Sum(in[i]);
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
  __syncthreads();
  int sum = 0;
  Scan(storage.scan).InclusiveSum(in[i], sum);
  running[i] = sum;
}
