// SPDX-License-Identifier: Apache-2.0
// out = in transposed, for a matrix of `rows` x `columns`: each block of 32 x 8 threads turns a tile of 32 x 32 in shared memory, whose
// rows are one word longer so that columns lie in different banks.

constexpr int kTile = 32, kRows = 8;

extern "C" __global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[kTile][kTile + 1];
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  for (int j = 0; j < kTile; j += kRows)
    if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads();
  const int u = blockIdx.y * kTile + threadIdx.x, v = blockIdx.x * kTile + threadIdx.y;
  for (int j = 0; j < kTile; j += kRows)
    if (u < rows && v + j < columns) out[(v + j) * rows + u] = tile[threadIdx.x][threadIdx.y + j];
}
