// SPDX-License-Identifier: Apache-2.0
// kernels/physics/nbody.py by hand: bodies as rows of four numbers, and a root and a division where nbody.cu has rsqrtf.

constexpr int kTile = 256;

extern "C" __global__ void nbody(const float* bodies, float* acceleration, int n, float softening) {
  __shared__ float tile[kTile][4];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  const float x = bodies[4 * i], y = bodies[4 * i + 1], z = bodies[4 * i + 2];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int first = 0; first < n; first += kTile) {
    for (int k = 0; k < 4; ++k) tile[t][k] = bodies[4 * (first + t) + k];
    __syncthreads();
    for (int j = 0; j < kTile; ++j) {
      const float dx = tile[j][0] - x, dy = tile[j][1] - y, dz = tile[j][2] - z;
      const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening);
      const float pull = tile[j][3] * inverse * inverse * inverse;
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    __syncthreads();
  }
  acceleration[4 * i] = ax;
  acceleration[4 * i + 1] = ay;
  acceleration[4 * i + 2] = az;
}
