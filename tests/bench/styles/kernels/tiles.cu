// SPDX-License-Identifier: Apache-2.0
// Tiles in shared memory: transpose, matrix product, n bodies, a 7 x 7 filter; and a stencil without one.

extern "C" __global__ void transpose(const float* in, float* out, int side) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * side + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * side + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[16][16];
  __shared__ float tile_b[16][16];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += 16) {
    tile_a[ty][tx] = a[row * n + k0 + tx];
    tile_b[ty][tx] = b[(k0 + ty) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += tile_a[ty][k] * tile_b[k][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void stencil(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
    const int i = y * width + x;
    out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
  }
}

extern "C" __global__ void nbody(const float4* position, float4* acceleration, int n, float softening) {
  __shared__ float4 tile[256];
  const float4 own = position[blockIdx.x * 256 + threadIdx.x];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int first = 0; first < n; first += 256) {
    tile[threadIdx.x] = position[first + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 256; ++j) {
      const float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      const float pull = tile[j].w * inverse * inverse * inverse;
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    __syncthreads();
  }
  acceleration[blockIdx.x * 256 + threadIdx.x] = make_float4(ax, ay, az, 0.0f);
}

__constant__ float filter[49] = {
    1, 2, 3, 4,  3, 2, 1, 2, 5, 7,  8, 6, 4, 2, 3, 7, 9, 12, 10, 6, 3, 4, 9, 13, 16,
    13, 8, 4, 3, 6, 11, 12, 9, 7, 3, 2, 4, 6, 8,  7, 5, 2, 1, 2, 3, 4, 3, 2, 1,
};

// Blocks of 16 x 16 threads load a tile with a rim of three; outside the image are zeros.
extern "C" __global__ void convolve(const float* in, float* out, int width, int height) {
  __shared__ float tile[22][22];
  const int left = blockIdx.x * 16 - 3, top = blockIdx.y * 16 - 3;
  for (int j = threadIdx.y; j < 22; j += 16)
    for (int i = threadIdx.x; i < 22; i += 16) {
      const int x = left + i, y = top + j;
      tile[j][i] = x >= 0 && x < width && y >= 0 && y < height ? in[y * width + x] : 0.0f;
    }
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 7; ++j)
#pragma unroll
    for (int i = 0; i < 7; ++i) sum += filter[j * 7 + i] * tile[threadIdx.y + j][threadIdx.x + i];
  out[(blockIdx.y * 16 + threadIdx.y) * width + blockIdx.x * 16 + threadIdx.x] = sum;
}
