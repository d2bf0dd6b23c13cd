// SPDX-License-Identifier: Apache-2.0
// c = a @ b for square matrices whose size n is a multiple of 16: each block of 16 x 16 threads makes one tile of c and
// stages tiles of a and b in shared memory.

constexpr int kTile = 16;

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * kTile + ty;
  const int column = blockIdx.x * kTile + tx;

  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += kTile) {
    tile_a[ty][tx] = a[row * n + k0 + tx];
    tile_b[ty][tx] = b[(k0 + ty) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tile_a[ty][k] * tile_b[k][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
