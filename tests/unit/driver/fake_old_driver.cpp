// SPDX-License-Identifier: Apache-2.0
// A driver that has three functions.
#pragma GCC visibility push(default)
#include <cuda.h>

extern "C" {
CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = 4020;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "FAKE_ERROR";
  return CUDA_SUCCESS;
}
}
