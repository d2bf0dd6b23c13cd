// SPDX-License-Identifier: Apache-2.0
// Rows of matrices: softmax by a block a row, layer norm by a warp a row, sparse products by a thread and by a warp a row.

__device__ float warp_max(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
  return v;
}
__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

// Three sweeps over a row by 256 threads.
extern "C" __global__ void softmax(const float* in, float* out, int columns) {
  __shared__ float partial[8];
  const float* row = in + (size_t)blockIdx.x * columns;
  float* to = out + (size_t)blockIdx.x * columns;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  float most = -3.402823466e38f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
  most = warp_max(most);
  if (lane == 0) partial[warp] = most;
  __syncthreads();
  most = partial[0];
  for (int w = 1; w < 8; ++w) most = fmaxf(most, partial[w]);
  __syncthreads();

  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const float e = expf(row[i] - most);
    to[i] = e;
    sum += e;
  }
  sum = warp_sum(sum);
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int w = 0; w < 8; ++w) sum += partial[w];

  const float scale = 1.0f / sum;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) to[i] *= scale;
}

extern "C" __global__ void layer_norm(const float* in, const float* gain, const float* bias, float* out, int columns, float epsilon) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const float* from = in + (size_t)row * columns;
  float sum = 0.0f, squares = 0.0f;
  for (int i = lane; i < columns; i += 32) {
    const float v = from[i];
    sum += v;
    squares += v * v;
  }
  sum = warp_sum(sum);
  squares = warp_sum(squares);
  const float mean = sum / columns;
  const float scale = rsqrtf(squares / columns - mean * mean + epsilon);
  for (int i = lane; i < columns; i += 32) out[(size_t)row * columns + i] = (from[i] - mean) * scale * gain[i] + bias[i];
}

extern "C" __global__ void csr_scalar(int rows, const int* begin, const int* column, const float* value, const float* x, float* y) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = begin[row]; i < begin[row + 1]; ++i) sum += value[i] * x[column[i]];
  y[row] = sum;
}

extern "C" __global__ void csr_vector(int rows, const int* begin, const int* column, const float* value, const float* x, float* y) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = begin[row] + lane; i < begin[row + 1]; i += 32) sum += value[i] * x[column[i]];
  sum = warp_sum(sum);
  if (lane == 0) y[row] = sum;
}
