// SPDX-License-Identifier: Apache-2.0
// y = a x + y in half precision, two elements at a time, rounded once.
#include <cuda_fp16.h>

extern "C" __global__ void half_axpy(int pairs, float a, const __half2* x, __half2* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) y[i] = __hfma2(__float2half2_rn(a), x[i], y[i]);
}
