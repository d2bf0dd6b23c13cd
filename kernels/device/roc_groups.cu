// SPDX-License-Identifier: Apache-2.0
// The device side of ROC: the same device under other names, with fences of a scope.
#include <quern/device.cuh>

/// Each group backwards.
extern "C" __global__ void reverse_groups(float* values) {
  auto part = quern::roc::shared::array<float, 64>([] {});
  const unsigned here = quern::roc::get_local_id(0);
  const int at = quern::roc::get_global_id(0);
  part[here] = values[at];
  quern::roc::barrier(quern::roc::CLK_LOCAL_MEM_FENCE);
  values[at] = part[quern::roc::get_local_size(0) - 1 - here];
}

/// What the id functions say, eight numbers for each work-item of a two-dimensional launch.
extern "C" __global__ void describe(int* out) {
  using namespace quern::roc;
  const int x = get_global_id(0), y = get_global_id(1), at = (y * get_global_size(0) + x) * 8;
  out[at] = get_local_id(0) + 100 * get_local_id(1);
  out[at + 1] = get_group_id(0) + 100 * get_group_id(1);
  out[at + 2] = get_local_size(0) + 100 * get_local_size(1);
  out[at + 3] = get_num_groups(0) + 100 * get_num_groups(1);
  out[at + 4] = get_global_size(1);
  out[at + 5] = get_work_dim();
  out[at + 6] = get_local_id(7) + 10 * get_local_size(7);
  out[at + 7] = x * 1000 + y;
}

/// Sums of pairs through global memory: the barrier's fence is that of global memory; then through the wavefront.
extern "C" __global__ void add_neighbours(int* values, int* sums) {
  const int at = quern::roc::get_global_id(0);
  const unsigned here = quern::roc::get_local_id(0);
  values[at] *= 2;
  quern::roc::barrier(quern::roc::CLK_GLOBAL_MEM_FENCE);
  const int neighbour = values[at - here + (here + 1) % quern::roc::get_local_size(0)];
  auto line = quern::roc::shared::array<int, 64>([] {});
  line[here] = neighbour;
  quern::roc::wavebarrier();
  sums[at] = values[at] + line[here ^ 1];
}
