// SPDX-License-Identifier: Apache-2.0
// Lists: run lengths with CUB, the largest of each row with cooperative groups, keys counted in a hash table.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/std/functional>

namespace cg = cooperative_groups;

// Each block encodes its 2,048 elements: the values of the runs, their lengths, and how many there are.
extern "C" __global__ void run_lengths(const int* in, int* values, int* lengths, int* counts) {
  using Load = cub::BlockLoad<int, 256, 8, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Heads = cub::BlockDiscontinuity<int, 256>;
  using Scan = cub::BlockScan<int, 256>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Heads::TempStorage heads;
    typename Scan::TempStorage scan;
  } storage;
  __shared__ int begins[2048 + 1];
  const int first = blockIdx.x * 2048;
  int items[8], heads[8], places[8], runs;
  Load(storage.load).Load(in + first, items);
  __syncthreads();
  Heads(storage.heads).FlagHeads(heads, items, cuda::std::not_equal_to<int>());
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(heads, places, runs);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (heads[i]) {
      begins[places[i]] = threadIdx.x * 8 + i;
      values[first + places[i]] = items[i];
    }
  if (threadIdx.x == 0) {
    begins[runs] = 2048;
    counts[blockIdx.x] = runs;
  }
  __syncthreads();
  for (int run = threadIdx.x; run < runs; run += 256) lengths[first + run] = begins[run + 1] - begins[run];
}

struct Best {
  float value;
  int column;
};

__device__ Best better(const Best& a, const Best& b) {
  return b.value > a.value || (b.value == a.value && b.column < a.column) ? b : a;
}

// A warp a row; of equal elements the first.
extern "C" __global__ void arg_max(const float4* __restrict__ in, float* __restrict__ values,
                                   int* __restrict__ columns, int width) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  const float4* from = in + (size_t)row * (width / 4);
  Best best{-INFINITY, 0};
  for (int i = warp.thread_rank(); i < width / 4; i += warp.size()) {
    const float4 four = from[i];
    best = better(best, {four.x, 4 * i});
    best = better(best, {four.y, 4 * i + 1});
    best = better(best, {four.z, 4 * i + 2});
    best = better(best, {four.w, 4 * i + 3});
  }
  best = cg::reduce(warp, best, [](const Best& a, const Best& b) { return better(a, b); });
  if (warp.thread_rank() == 0) {
    values[row] = best.value;
    columns[row] = best.column;
  }
}

__device__ unsigned scrambled(unsigned key) {
  key = (key ^ key >> 16) * 0x85ebca6bu;
  key = (key ^ key >> 13) * 0xc2b2ae35u;
  return key ^ key >> 16;
}

// Open addressing, linear probing; 0 is a free place and no key.
extern "C" __global__ void hash_count(const unsigned* __restrict__ keys, unsigned* table, unsigned* counts, int n,
                                      unsigned mask) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned key = keys[i];
  for (unsigned place = scrambled(key) & mask;; place = (place + 1) & mask) {
    const unsigned before = atomicCAS(&table[place], 0u, key);
    if (before == 0u || before == key) {
      atomicAdd(&counts[place], 1u);
      return;
    }
  }
}
