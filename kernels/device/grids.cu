// SPDX-License-Identifier: Apache-2.0
// quern::grid and gridsize in one, two and three dimensions, and strided arrays as arguments.
#include <quern/device.cuh>

/// Each element is written by the thread whose place it is; the grid may be smaller than the array.
extern "C" __global__ void fill_line(long long* out, int n) {
  for (long long i = quern::grid<1, long long>(); i < n; i += quern::gridsize<1>()) out[i] = i * i;
}

extern "C" __global__ void fill_plane(int* out, int rows, int columns) {
  const auto [x, y] = quern::grid<2>();
  const auto size = quern::gridsize<2>();
  for (int row = y; row < rows; row += size.y)
    for (int column = x; column < columns; column += size.x) out[row * columns + column] = row * 1000 + column;
}

extern "C" __global__ void fill_space(int* out, int depth, int rows, int columns) {
  const auto [x, y, z] = quern::grid<3>();
  if (x < columns && y < rows && z < depth) out[(z * rows + y) * columns + x] = z * 10000 + y * 100 + x;
}

/// out[row] = sum of a row of a strided array.
extern "C" __global__ void row_sums(quern::array<const float, 2> in, quern::array<float, 1> out) {
  const int row = quern::grid<1>();
  if (row >= in.extent(0)) return;
  float sum = 0;
  for (int column = 0; column < in.extent(1); ++column) sum += in(row, column);
  out[row] = sum;
}
