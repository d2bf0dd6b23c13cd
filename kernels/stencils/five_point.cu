// SPDX-License-Identifier: Apache-2.0
// One step of Jacobi's iteration on a grid of `height` x `width`: each inner point becomes the mean of its four neighbours; the rim stays.

extern "C" __global__ void five_point(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int i = y * width + x;
  const bool rim = x == 0 || y == 0 || x == width - 1 || y == height - 1;
  out[i] = rim ? in[i] : 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}
