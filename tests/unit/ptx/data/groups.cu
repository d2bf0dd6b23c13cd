// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void groups(int* data) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<16>(block);
  int value = data[block.thread_rank()];
  for (int step = 8; step > 0; step /= 2) value += tile.shfl_down(value, step);
  block.sync();
  if (value > 3) {
    const cg::coalesced_group active = cg::coalesced_threads();
    value += static_cast<int>(active.size()) + active.shfl(value, 0);
  }
  data[cg::this_grid().thread_rank()] = value + tile.shfl_xor(value, 1);
  cg::this_grid().sync();
}
