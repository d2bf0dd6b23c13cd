// SPDX-License-Identifier: Apache-2.0
// Four threads, each with a context, a module and a stream of its own, work at the same time.
#include <pthread.h>

#include "program.h"

enum { kThreads = 4, kRounds = 50 };

static void* work(void* number) {
  const unsigned start = 1000 * (unsigned)(size_t)number;
  CUmodule module = NULL;
  CUcontext context;
  CUstream stream;
  CUdeviceptr cell;
  unsigned value = start, result = 0;
#if CUDA_VERSION >= 13000
  CHECK(cuCtxCreate(&context, NULL, 0, 0));
#else
  CHECK(cuCtxCreate(&context, 0, 0));
#endif
  CHECK(cuStreamCreate(&stream, 0));
  CHECK(cuMemAlloc(&cell, 4));
  CHECK(cuMemcpyHtoD(cell, &value, 4));
  void* arguments[] = {&cell};
  for (int i = 0; i < kRounds; ++i)
    CHECK(cuLaunchKernel(function(&module, "increment"), 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuMemcpyDtoH(&result, cell, 4));
  REQUIRE(result == start + kRounds);
  CHECK(cuCtxDestroy(context));
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  CHECK(cuInit(0));
  for (size_t i = 0; i < kThreads; ++i) REQUIRE(pthread_create(&threads[i], NULL, work, (void*)i) == 0);
  for (size_t i = 0; i < kThreads; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  return 0;
}
