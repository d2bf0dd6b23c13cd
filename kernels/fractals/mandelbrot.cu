// SPDX-License-Identifier: Apache-2.0
// How many steps z = z * z + c takes to leave the circle of radius 2, for each point c of the picture: the classic of
// divergent loops. Launch it with two-dimensional blocks; threads beyond the picture do nothing.

extern "C" __global__ void mandelbrot(int* image, int width, int height, int limit) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;

  const float cx = -2.0f + 3.0f * column / width;
  const float cy = -1.0f + 2.0f * row / height;
  float x = 0.0f, y = 0.0f;
  int steps = 0;
  while (steps < limit && x * x + y * y < 4.0f) {
    const float next = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = next;
    ++steps;
  }
  image[row * width + column] = steps;
}
