// SPDX-License-Identifier: Apache-2.0
// Builds a graph by hand (a fill, two kernels, a copy to the host), runs it twice, and changes a node of the executable graph.
#include "program.h"

int main(void) {
  CUmodule module = NULL;
  CUcontext context = begin();
  CUgraph graph;
  CUgraphExec executable;
  CUgraphNode fill, first, second, copy;
  CUdeviceptr cell;
  unsigned result = 0;
  CHECK(cuMemAlloc(&cell, 4));
  CHECK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS zero = {.dst = cell, .value = 40, .elementSize = 4, .width = 1, .height = 1};
  CHECK(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &zero, context));
  void* arguments[] = {&cell};
  CUDA_KERNEL_NODE_PARAMS kernel = {.func = function(&module, "increment"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                    .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = arguments};
  CHECK(cuGraphAddKernelNode(&first, graph, &fill, 1, &kernel));
  CHECK(cuGraphAddKernelNode(&second, graph, &first, 1, &kernel));
  CUDA_MEMCPY3D to_host = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = cell, .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = &result, .WidthInBytes = 4, .Height = 1, .Depth = 1};
  CHECK(cuGraphAddMemcpyNode(&copy, graph, &second, 1, &to_host, context));
  CHECK(cuGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; ++i) {
    result = 0;
    CHECK(cuGraphLaunch(executable, NULL));
    CHECK(cuCtxSynchronize());
    REQUIRE(result == 42);
  }
  zero.value = 1;
  CHECK(cuGraphExecMemsetNodeSetParams(executable, fill, &zero, context));
  CHECK(cuGraphLaunch(executable, NULL));
  CHECK(cuCtxSynchronize());
  REQUIRE(result == 3);
  CHECK(cuGraphExecDestroy(executable));
  CHECK(cuGraphDestroy(graph));
  return 0;
}
