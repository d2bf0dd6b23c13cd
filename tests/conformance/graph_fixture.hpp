// SPDX-License-Identifier: Apache-2.0
// The fixture of tests of graphs: an empty graph, and nodes for it.
#pragma once

#include <vector>

#include "kernels.hpp"
#include "suite.hpp"

namespace quern::conformance {

/// A loop goes on while --*left is not 0. As NVRTC compiles code that calls cudaGraphSetConditional().
inline const char* const kCountDownModule = R"ptx(
.version 8.0
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count_down(.param .u64 handle, .param .u64 left)
{
  .reg .b32 %r<3>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [handle];
  ld.param.u64 %rd2, [left];
  ld.global.u32 %r1, [%rd2];
  sub.u32 %r1, %r1, 1;
  st.global.u32 [%rd2], %r1;
  {
    .param .b64 p0; .param .b32 p1;
    st.param.b64 [p0], %rd1;
    st.param.b32 [p1], %r1;
    call.uni cudaGraphSetConditional, (p0, p1);
  }
  ret;
}
)ptx";

struct GraphFixture : Fixture {
  GraphFixture() { REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS); }

  /// fill(out, n, value) of one block
  CUgraphNode fill(CUdeviceptr out, unsigned n, unsigned value, const std::vector<CUgraphNode>& after = {}) {
    void* parameters[] = {&out, &n, &value};
    const CUDA_KERNEL_NODE_PARAMS params = kernel("fill", 1, n, parameters);
    CUgraphNode node = nullptr;
    REQUIRE(CU(cuGraphAddKernelNode_v2)(&node, graph, after.data(), after.size(), &params) == CUDA_SUCCESS);
    return node;
  }
  /// count(counter) of `threads` threads
  CUgraphNode count(CUdeviceptr counter, unsigned threads, const std::vector<CUgraphNode>& after = {}) {
    return count_in(graph, counter, threads, after);
  }
  CUgraphNode count_in(CUgraph into, CUdeviceptr counter, unsigned threads,
                       const std::vector<CUgraphNode>& after = {}) const {
    void* parameters[] = {&counter};
    const CUDA_KERNEL_NODE_PARAMS params = kernel("count", 1, threads, parameters);
    CUgraphNode node = nullptr;
    REQUIRE(CU(cuGraphAddKernelNode_v2)(&node, into, after.data(), after.size(), &params) == CUDA_SUCCESS);
    return node;
  }
  CUgraphNode empty(const std::vector<CUgraphNode>& after = {}) {
    CUgraphNode node = nullptr;
    REQUIRE(CU(cuGraphAddEmptyNode)(&node, graph, after.data(), after.size()) == CUDA_SUCCESS);
    return node;
  }
  CUDA_KERNEL_NODE_PARAMS kernel(const char* name, unsigned grid, unsigned block, void** parameters) const {
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = function(name);
    params.gridDimX = grid;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = block;
    params.kernelParams = parameters;
    return params;
  }
  static CUDA_MEMCPY3D copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    CUDA_MEMCPY3D box{};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = from;
    box.dstDevice = to;
    box.WidthInBytes = bytes;
    box.Height = box.Depth = 1;
    return box;
  }
  CUgraphConditionalHandle condition(unsigned initial) const {
    CUgraphConditionalHandle handle = 0;
    REQUIRE(CU(cuGraphConditionalHandleCreate)(&handle, graph, context, initial,
                                               CU_GRAPH_COND_ASSIGN_DEFAULT) == CUDA_SUCCESS);
    return handle;
  }
  CUgraphExec instantiate() const {
    CUgraphExec exec = nullptr;
    REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_SUCCESS);
    return exec;
  }
  static void run(CUgraphExec exec, CUstream on) {
    REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
    REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  }
  std::uint32_t word(CUdeviceptr at) const { return download<std::uint32_t>(at, 1)[0]; }

  CUgraph graph = nullptr;
};

}  // namespace quern::conformance
