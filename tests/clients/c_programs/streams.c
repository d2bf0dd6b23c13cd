// SPDX-License-Identifier: Apache-2.0
// Orders kernels of two streams by an event, and sees their result in a host function.
#include "program.h"

static unsigned seen;

static void CUDA_CB look(void* cell) { seen = *(const unsigned*)cell; }

int main(void) {
  CUmodule module = NULL;
  CUstream first, second;
  CUevent between;
  void* host;
  CUdeviceptr cell;
  unsigned value = 10;
  begin();
  CHECK(cuMemHostAlloc(&host, 4, CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK(cuMemHostGetDevicePointer(&cell, host, 0));
  CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&between, CU_EVENT_DISABLE_TIMING));
  void* set[] = {&cell, &value};
  void* increment[] = {&cell};
  for (unsigned round = 0; round < 100; ++round) {
    value = 10 * round;
    CHECK(cuLaunchKernel(function(&module, "set"), 1, 1, 1, 1, 1, 1, 0, first, set, NULL));
    CHECK(cuEventRecord(between, first));
    CHECK(cuStreamWaitEvent(second, between, 0));
    CHECK(cuLaunchKernel(function(&module, "increment"), 1, 1, 1, 1, 1, 1, 0, second, increment, NULL));
    CHECK(cuLaunchHostFunc(second, look, host));
    CHECK(cuStreamSynchronize(second));
    REQUIRE(seen == 10 * round + 1);
  }
  CHECK(cuStreamDestroy(first));
  CHECK(cuStreamDestroy(second));
  CHECK(cuEventDestroy(between));
  CHECK(cuMemFreeHost(host));
  return 0;
}
