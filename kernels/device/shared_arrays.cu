// SPDX-License-Identifier: Apache-2.0
// quern::shared::array: of several dimensions, of one, and of as many elements as the launch gives.
#include <quern/device.cuh>

/// out = in transposed, for a square matrix whose side is a multiple of 16; blocks of 16 x 16.
extern "C" __global__ void transpose_tiles(const float* in, float* out, int side) {
  auto tile = quern::shared::array<float, 16, 17>([] {});  // 17: columns lie in different banks
  const auto [x, y] = quern::grid<2>();
  tile(threadIdx.y, threadIdx.x) = in[y * side + x];
  quern::syncthreads();
  const int u = blockIdx.y * 16 + threadIdx.x, v = blockIdx.x * 16 + threadIdx.y;
  out[v * side + u] = tile[threadIdx.x][threadIdx.y];
}

/// Each block of 64: what it holds, rotated by one, from two arrays that must not be one.
extern "C" __global__ void rotate_and_sum(const int* in, int* rotated, int* sums) {
  auto values = quern::shared::array<int, 64>([] {});
  auto parts = quern::shared::array<int, 64>([] {});
  const int i = quern::grid<1>(), here = threadIdx.x;
  values[here] = in[i];
  parts[here] = in[i];
  for (int half = 32; half > 0; half /= 2) {
    quern::syncthreads();
    if (here < half) parts[here] += parts[here + half];
  }
  quern::syncthreads();
  rotated[i] = values((here + 1) % values.extent(0));
  if (here == 0) sums[blockIdx.x] = parts[0];
}

/// Each block backwards, whatever its size; the launch gives 4 bytes a thread.
extern "C" __global__ void reverse_blocks(int* values) {
  auto part = quern::shared::array<int, 0>([] {});
  const int i = quern::grid<1>();
  part[threadIdx.x] = values[i];
  quern::syncthreads();
  values[i] = part[part.size() - 1 - threadIdx.x];
}
