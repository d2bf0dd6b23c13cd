// SPDX-License-Identifier: Apache-2.0
// kernels/fractals/mandelbrot.py by hand: the steps of a point as a function of their own, where mandelbrot.cu has them
// in the kernel.

static __device__ int steps(float cx, float cy, int limit) {
  float x = 0.0f, y = 0.0f;
  for (int i = 0; i < limit; ++i) {
    if (x * x + y * y >= 4.0f) return i;
    const float next = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = next;
  }
  return limit;
}

extern "C" __global__ void mandelbrot(int* image, int width, int height, int limit) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= height || column >= width) return;
  const float cx = -2.0f + 3.0f * float(column) / float(width);
  const float cy = -1.0f + 2.0f * float(row) / float(height);
  image[row * width + column] = steps(cx, cy, limit);
}
