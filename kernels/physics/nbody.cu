// SPDX-License-Identifier: Apache-2.0
// Gravitation between n bodies, each with each: tiles of bodies go through shared memory. position: x, y, z, mass of each body;
// the number of bodies is a multiple of the block.

constexpr int kTile = 256;

extern "C" __global__ void nbody(const float4* position, float4* acceleration, int n, float softening) {
  __shared__ float4 tile[kTile];
  const float4 own = position[blockIdx.x * kTile + threadIdx.x];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int first = 0; first < n; first += kTile) {
    tile[threadIdx.x] = position[first + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < kTile; ++j) {
      const float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      const float pull = tile[j].w * inverse * inverse * inverse;
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    __syncthreads();
  }
  acceleration[blockIdx.x * kTile + threadIdx.x] = make_float4(ax, ay, az, 0.0f);
}
