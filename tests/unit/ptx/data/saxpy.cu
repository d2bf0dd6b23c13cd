// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void __launch_bounds__(256, 2) saxpy4(int n, double a, const double2* __restrict__ x, double2* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const double2 v = x[i];
    y[i] = make_double2(fma(a, v.x, y[i].x), a * v.y - 0.5);
  }
}
