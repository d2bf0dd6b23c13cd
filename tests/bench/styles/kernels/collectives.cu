// SPDX-License-Identifier: Apache-2.0
// CUB's collectives: the sum of a block, the running sums of a block, the sum of a warp.
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>

// Four elements a thread.
extern "C" __global__ void cub_block_reduce(const float* x, float* sums) {
  using Load = cub::BlockLoad<float, 256, 4, cub::BLOCK_LOAD_VECTORIZE>;
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  float items[4];
  Load().Load(x + blockIdx.x * 1024, items);
  const float sum = Reduce(storage).Sum(items);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void cub_block_scan(const int* in, int* out) {
  using Load = cub::BlockLoad<int, 256, 4, cub::BLOCK_LOAD_TRANSPOSE>;
  using Store = cub::BlockStore<int, 256, 4, cub::BLOCK_STORE_TRANSPOSE>;
  using Scan = cub::BlockScan<int, 256>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } storage;
  int items[4];
  Load(storage.load).Load(in + blockIdx.x * 1024, items);
  __syncthreads();
  Scan(storage.scan).InclusiveSum(items, items);
  __syncthreads();
  Store(storage.store).Store(out + blockIdx.x * 1024, items);
}

extern "C" __global__ void cub_warp_reduce(const int* in, int* sums) {
  using Reduce = cub::WarpReduce<int>;
  __shared__ typename Reduce::TempStorage storage[8];
  const int warp = threadIdx.x / 32;
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int sum = Reduce(storage[warp]).Sum(in[i]);
  if (threadIdx.x % 32 == 0) sums[i / 32] = sum;
}
