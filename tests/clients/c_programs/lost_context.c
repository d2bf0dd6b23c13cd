// SPDX-License-Identifier: Apache-2.0
// A kernel that stops with an error takes its context with it. After a reset of the primary context the device works again.
#include "program.h"

int main(void) {
  CUmodule module = NULL;
  CUdeviceptr cell;
  unsigned value = 5, result = 0;
  begin();
  CHECK(cuLaunchKernel(function(&module, "stop"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  const CUresult lost = cuCtxSynchronize();
  REQUIRE(lost == CUDA_ERROR_LAUNCH_FAILED || lost == CUDA_ERROR_ILLEGAL_INSTRUCTION);
  REQUIRE(cuMemAlloc(&cell, 4) == lost);
  CHECK(cuDevicePrimaryCtxReset(0));

  module = NULL;
  begin();
  CHECK(cuMemAlloc(&cell, 4));
  void* arguments[] = {&cell, &value};
  CHECK(cuLaunchKernel(function(&module, "set"), 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(&result, cell, 4));
  REQUIRE(result == 5);
  return 0;
}
