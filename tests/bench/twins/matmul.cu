// SPDX-License-Identifier: Apache-2.0
// kernels/linear_algebra/matmul.py by hand: matrices of any shapes, as matmul.cu beside it does not take them.

constexpr int kTile = 16;

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int rows, int inner, int columns) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * blockDim.y + ty;
  const int column = blockIdx.x * blockDim.x + tx;

  float sum = 0.0f;
  for (int k = 0; k < inner; k += kTile) {
    left[ty][tx] = row < rows && k + tx < inner ? a[row * inner + k + tx] : 0.0f;
    right[ty][tx] = k + ty < inner && column < columns ? b[(k + ty) * columns + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += left[ty][i] * right[i][tx];
    __syncthreads();
  }
  if (row < rows && column < columns) c[row * columns + column] = sum;
}
