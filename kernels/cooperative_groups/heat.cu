// SPDX-License-Identifier: Apache-2.0
// Many steps of a heat equation in one cooperative launch: the whole grid meets between two steps, where otherwise
// a kernel would have to end. At the end the blocks add up what is left.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// rod[0] and rod[n - 1] keep their temperature. `other` is of the same size; the result is in rod after an even
// number of steps. total[0]: the sum of rod, in thousandths.
extern "C" __global__ void heat(float* rod, float* other, int n, int steps, unsigned long long* total) {
  const auto grid = cg::this_grid();
  float* from = rod;
  float* to = other;
  for (int step = 0; step < steps; ++step) {
    for (int i = static_cast<int>(grid.thread_rank()); i < n; i += static_cast<int>(grid.size()))
      to[i] = i == 0 || i == n - 1 ? from[i] : from[i] + 0.25f * (from[i - 1] - 2.0f * from[i] + from[i + 1]);
    grid.sync();
    float* const old = from;
    from = to;
    to = old;
  }
  for (int i = static_cast<int>(grid.thread_rank()); i < n; i += static_cast<int>(grid.size()))
    atomicAdd(total, static_cast<unsigned long long>(from[i] * 1000.0f));
  grid.sync();
  if (grid.thread_rank() == 0) total[1] = total[0] / static_cast<unsigned long long>(n);
}
