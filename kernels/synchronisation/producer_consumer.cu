// SPDX-License-Identifier: Apache-2.0
// Two warps load tiles, two warps work on them, with two buffers between: while one tile is summed the next is
// fetched. Each buffer has a barrier that says "full" and one that says "empty"; whoever need not wait only arrives.

constexpr int kTile = 64;
constexpr int kFull = 1;   // barriers 1 and 2, by buffer
constexpr int kEmpty = 3;  // barriers 3 and 4

__device__ void wait_at(int barrier) { asm volatile("barrier.sync %0, 128;" ::"r"(barrier) : "memory"); }
__device__ void arrive_at(int barrier) { asm volatile("barrier.arrive %0, 128;" ::"r"(barrier) : "memory"); }

// out[block * 64 + t] = the sum over the block's tiles of (element t of the tile) * (number of the tile + 1).
extern "C" __global__ void producer_consumer(const int* in, int* out, int tiles) {
  __shared__ int buffer[2][kTile];
  const int t = threadIdx.x % kTile;
  const int* mine = in + blockIdx.x * tiles * kTile;
  if (threadIdx.x < kTile) {  // warps 0 and 1 load
    for (int tile = 0; tile < tiles; ++tile) {
      const int b = tile % 2;
      if (tile >= 2) wait_at(kEmpty + b);
      buffer[b][t] = mine[tile * kTile + t];
      arrive_at(kFull + b);
    }
  } else {  // warps 2 and 3 add
    int sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      const int b = tile % 2;
      wait_at(kFull + b);
      sum += buffer[b][t] * (tile + 1);
      if (tile + 2 < tiles) arrive_at(kEmpty + b);
    }
    out[blockIdx.x * kTile + t] = sum;
  }
}
