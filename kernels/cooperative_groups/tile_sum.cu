// SPDX-License-Identifier: Apache-2.0
// out[t] = the sum of the 8 numbers of tile t: a tile of eight threads adds them up by shuffles of its own.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tile_sum(const int* in, int* out) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const unsigned i = block.group_index().x * block.size() + block.thread_rank();
  int sum = in[i];
  for (unsigned half = tile.size() / 2; half > 0; half /= 2) sum += tile.shfl_down(sum, half);
  if (tile.thread_rank() == 0) out[i / 8] = sum;
  block.sync();
}
