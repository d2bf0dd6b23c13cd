// SPDX-License-Identifier: Apache-2.0
// Adds two vectors, with a grid that is larger than they are.
#include "program.h"

enum { kCount = 100003, kBlock = 256 };

int main(void) {
  static float a[kCount], b[kCount], out[kCount];
  CUmodule module = NULL;
  CUdeviceptr memory[3];
  unsigned count = kCount;
  begin();
  for (unsigned i = 0; i < kCount; ++i) a[i] = (float)i, b[i] = 0.5f * (float)i;
  for (int i = 0; i < 3; ++i) CHECK(cuMemAlloc(&memory[i], sizeof a));
  CHECK(cuMemcpyHtoD(memory[0], a, sizeof a));
  CHECK(cuMemcpyHtoD(memory[1], b, sizeof b));
  void* arguments[] = {&memory[0], &memory[1], &memory[2], &count};
  CHECK(cuLaunchKernel(function(&module, "add"), (kCount + kBlock - 1) / kBlock, 1, 1, kBlock, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(out, memory[2], sizeof out));
  for (unsigned i = 0; i < kCount; ++i) REQUIRE(out[i] == a[i] + b[i]);
  for (int i = 0; i < 3; ++i) CHECK(cuMemFree(memory[i]));
  CHECK(cuModuleUnload(module));
  return 0;
}
