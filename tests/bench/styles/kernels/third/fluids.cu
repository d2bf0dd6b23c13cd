// SPDX-License-Identifier: Apache-2.0
// A step of the lattice Boltzmann method, and rays that march through a distance field.

__constant__ float kWeight[9] = {4.0f / 9.0f,  1.0f / 9.0f,  1.0f / 9.0f,  1.0f / 9.0f, 1.0f / 9.0f,
                                 1.0f / 36.0f, 1.0f / 36.0f, 1.0f / 36.0f, 1.0f / 36.0f};
__constant__ int kCx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int kCy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ int kOpposite[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};

// D2Q9: pulls the populations, relaxes them at fluid cells, turns them round at solid ones. Periodic.
extern "C" __global__ void lbm_step(const float* __restrict__ f, const unsigned char* __restrict__ solid,
                                    float* __restrict__ g, int width, int height, float omega) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int cells = width * height, cell = y * width + x;
  float p[9];
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    int from_x = x - kCx[k], from_y = y - kCy[k];
    if (from_x < 0) from_x += width;
    if (from_x >= width) from_x -= width;
    if (from_y < 0) from_y += height;
    if (from_y >= height) from_y -= height;
    p[k] = f[k * cells + from_y * width + from_x];
  }
  if (solid[cell]) {
#pragma unroll
    for (int k = 0; k < 9; ++k) g[k * cells + cell] = p[kOpposite[k]];
    return;
  }
  float rho = 0.0f, ux = 0.0f, uy = 0.0f;
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    rho += p[k];
    ux += kCx[k] * p[k];
    uy += kCy[k] * p[k];
  }
  ux /= rho;
  uy /= rho;
  const float square = 1.5f * (ux * ux + uy * uy);
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    const float along = 3.0f * (kCx[k] * ux + kCy[k] * uy);
    const float equilibrium = kWeight[k] * rho * (1.0f + along + 0.5f * along * along - square);
    g[k * cells + cell] = p[k] + omega * (equilibrium - p[k]);
  }
}

__device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
__device__ float3 operator*(float3 a, float s) { return make_float3(a.x * s, a.y * s, a.z * s); }
__device__ float length(float3 a) { return sqrtf(a.x * a.x + a.y * a.y + a.z * a.z); }
__device__ float length(float x, float y) { return sqrtf(x * x + y * y); }

__device__ float sphere(float3 p, float radius) { return length(p) - radius; }
__device__ float torus(float3 p, float ring, float tube) { return length(length(p.x, p.z) - ring, p.y) - tube; }
__device__ float box(float3 p, float half) {
  const float3 q = make_float3(fabsf(p.x) - half, fabsf(p.y) - half, fabsf(p.z) - half);
  const float3 beyond = make_float3(fmaxf(q.x, 0.0f), fmaxf(q.y, 0.0f), fmaxf(q.z, 0.0f));
  return length(beyond) + fminf(fmaxf(q.x, fmaxf(q.y, q.z)), 0.0f);
}
__device__ float blend(float a, float b, float radius) {
  const float h = fmaxf(radius - fabsf(a - b), 0.0f) / radius;
  return fminf(a, b) - h * h * radius * 0.25f;
}
__device__ float scene(float3 p) {
  const float round = blend(sphere(p + make_float3(0.9f, 0.0f, 0.3f), 0.7f),
                            torus(p + make_float3(-0.5f, 0.1f, 0.0f), 0.8f, 0.25f), 0.3f);
  return fminf(fminf(round, box(p + make_float3(-0.2f, -0.9f, -0.6f), 0.35f)), p.y + 1.0f);
}

// How far the ray of each pixel goes until it hits, -1 if it does not; and the steps that it took.
extern "C" __global__ void ray_march(float* distance, int* steps, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float scale = 2.0f / height;
  float3 direction = make_float3((x + 0.5f - 0.5f * width) * scale, (0.5f * height - y - 0.5f) * scale, 1.8f);
  direction = direction * (1.0f / length(direction));
  const float3 eye = make_float3(0.0f, 0.4f, -4.0f);
  float t = 0.0f, hit = -1.0f;
  int step = 0;
  for (; step < 96; ++step) {
    const float d = scene(eye + direction * t);
    if (d < 1e-3f * t) {
      hit = t;
      break;
    }
    t += d;
    if (t > 20.0f) break;
  }
  distance[y * width + x] = hit;
  steps[y * width + x] = step;
}
