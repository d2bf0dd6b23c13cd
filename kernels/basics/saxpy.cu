// SPDX-License-Identifier: Apache-2.0
// y = a * x + y, one element a thread; threads beyond n do nothing.

extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
