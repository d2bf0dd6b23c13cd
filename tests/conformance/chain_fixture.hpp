// SPDX-License-Identifier: Apache-2.0
// The fixture of tests of rows of small kernels, in graphs and on streams, and the kernels.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "graph_fixture.hpp"

namespace quern::conformance {

using Word = std::uint32_t;
using Words = std::vector<Word>;

inline const char* const kSteps = R"ptx(
.version 7.0
.target sm_70
.address_size 64

// x[thread] = x[thread] * 3 + i, of all threads of the grid
.visible .entry step(.param .u64 x, .param .u32 i)
{
  .reg .b32 %r<6>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [i];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.u32 %r2, [%rd3];
  mad.lo.u32 %r2, %r2, 3, %r1;
  st.u32 [%rd3], %r2;
  ret;
}

// the same for the word whose address is in memory
.visible .entry step_at(.param .u64 place, .param .u32 i)
{
  .reg .b32 %r<3>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [place];
  ld.param.u32 %r1, [i];
  ld.u64 %rd2, [%rd1];
  ld.u32 %r2, [%rd2];
  mad.lo.u32 %r2, %r2, 3, %r1;
  st.u32 [%rd2], %r2;
  ret;
}

// Those that are between the two: words[0]. enter counts itself in words[1]; both count in words[2] that they
// found another number there than they must.
.visible .entry enter(.param .u64 words)
{
  .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p;
  ld.param.u64 %rd1, [words];
  atom.add.u32 %r1, [%rd1], 1;
  atom.add.u32 %r2, [%rd1+4], 1;
  setp.ne.u32 %p, %r1, 0;
  @%p red.add.u32 [%rd1+8], 1;
  ret;
}
.visible .entry leave(.param .u64 words)
{
  .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p;
  ld.param.u64 %rd1, [words];
  atom.add.u32 %r1, [%rd1], -1;
  setp.ne.u32 %p, %r1, 1;
  @%p red.add.u32 [%rd1+8], 1;
  ret;
}

// ids[(*counter)++] = the grid's number
.visible .entry note_grid(.param .u64 counter, .param .u64 ids)
{
  .reg .b32 %r<2>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [counter];
  ld.param.u64 %rd2, [ids];
  atom.add.u32 %r1, [%rd1], 1;
  mul.wide.u32 %rd3, %r1, 8;
  add.u64 %rd4, %rd2, %rd3;
  mov.u64 %rd5, %gridid;
  st.u64 [%rd4], %rd5;
  ret;
}

// *word = value, which the host sees before the kernel's end
.visible .entry publish(.param .u64 word, .param .u32 value)
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [word];
  ld.param.u32 %r1, [value];
  st.volatile.u32 [%rd1], %r1;
  membar.sys;
  ret;
}

// They wait until *flag is not 0, and read it in different ways.
.visible .entry spin_volatile(.param .u64 flag)
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p;
  ld.param.u64 %rd1, [flag];
again:
  ld.volatile.u32 %r1, [%rd1];
  setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  ret;
}
.visible .entry spin_acquire(.param .u64 flag)
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p;
  ld.param.u64 %rd1, [flag];
again:
  ld.acquire.sys.u32 %r1, [%rd1];
  setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  ret;
}
.visible .entry spin_exchange(.param .u64 flag)
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p;
  ld.param.u64 %rd1, [flag];
again:
  atom.sys.cas.b32 %r1, [%rd1], 0, 0;
  setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  ret;
}

// *seen = *flag, as soon as that is not 0, or after so many tries
.visible .entry poll(.param .u64 flag, .param .u64 seen, .param .u32 tries)
{
  .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [flag];
  ld.param.u64 %rd2, [seen];
  ld.param.u32 %r3, [tries];
  mov.u32 %r2, 0;
again:
  ld.volatile.u32 %r1, [%rd1];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra found;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %r3;
  @%p2 bra again;
found:
  st.u32 [%rd2], %r1;
  ret;
}
)ptx";

/// What `step` does to memory.
struct Model {
  Words words;
  void step(Word i, std::size_t threads = 1) {
    for (std::size_t at = 0; at < threads; ++at) words[at] = words[at] * 3 + i;
  }
  void steps(const Words& numbers) {
    for (const Word i : numbers) step(i);
  }
};

/// Memory that host and device see.
struct Mapped {
  explicit Mapped(std::size_t bytes) {
    REQUIRE(cu().cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
    REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, memory, 0) == CUDA_SUCCESS);
    for (std::size_t at = 0; at < bytes / sizeof(Word); ++at) (*this)[at] = 0;
  }
  std::atomic<Word>& operator[](std::size_t at) const { return static_cast<std::atomic<Word>*>(memory)[at]; }
  void* memory = nullptr;
  CUdeviceptr device = 0;
};

inline bool within_20_s(const std::function<bool()>& done) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < limit) {
    if (done()) return true;
    std::this_thread::yield();
  }
  return false;
}

struct ChainFixture : GraphFixture {
  ChainFixture() : steps(load(kSteps)) {}

  static CUmodule load(const std::string& text) {
    CUmodule loaded = nullptr;
    REQUIRE(cu().cuModuleLoadData(&loaded, text.c_str()) == CUDA_SUCCESS);
    return loaded;
  }
  static CUfunction function_of(CUmodule from, const char* name) {
    CUfunction found = nullptr;
    REQUIRE(cu().cuModuleGetFunction(&found, from, name) == CUDA_SUCCESS);
    return found;
  }
  CUdeviceptr zeros(std::size_t count) const { return upload(Words(count, 0)); }

  /// Adds a kernel of `steps` behind the last one that was added to the same graph.
  template <class... Args>
  CUgraphNode then_in(CUgraph into, const char* name, unsigned grid, unsigned block, Args... args) {
    return then_in(into, function_of(steps, name), grid, block, args...);
  }
  template <class... Args>
  CUgraphNode then_in(CUgraph into, CUfunction kernel, unsigned grid, unsigned block, Args... args) {
    void* parameters[] = {&args..., nullptr};
    const CUDA_KERNEL_NODE_PARAMS params = node_of(kernel, grid, block, parameters);
    const std::vector<CUgraphNode> after = behind(into);
    CUgraphNode node = nullptr;
    REQUIRE(CU(cuGraphAddKernelNode_v2)(&node, into, after.data(), after.size(), &params) == CUDA_SUCCESS);
    return last_in(into, node);
  }
  template <class... Args>
  CUgraphNode then(const char* name, Args... args) {
    return then_in(graph, name, 1, 1, args...);
  }
  std::vector<CUgraphNode> behind(CUgraph into) const {
    return into == last_graph ? std::vector{last} : std::vector<CUgraphNode>{};
  }
  CUgraphNode last_in(CUgraph into, CUgraphNode node) {
    last_graph = into;
    return last = node;
  }
  CUgraphNode then_record(CUevent event) {
    const std::vector<CUgraphNode> after = behind(graph);
    CUgraphNode node = nullptr;
    REQUIRE(CU(cuGraphAddEventRecordNode)(&node, graph, after.data(), after.size(), event) == CUDA_SUCCESS);
    return last_in(graph, node);
  }
  void set_step(CUgraphExec exec, CUgraphNode node, CUdeviceptr x, Word i) const {
    void* parameters[] = {&x, &i};
    const CUDA_KERNEL_NODE_PARAMS params = node_of(function_of(steps, "step"), 1, 1, parameters);
    REQUIRE(CU(cuGraphExecKernelNodeSetParams_v2)(exec, node, &params) == CUDA_SUCCESS);
  }
  static CUDA_KERNEL_NODE_PARAMS node_of(CUfunction kernel, unsigned grid, unsigned block,
                                         void** parameters) {
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = kernel;
    params.gridDimX = grid;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = block;
    params.kernelParams = parameters;
    return params;
  }

  template <class... Args>
  CUresult start(CUstream on, CUfunction kernel, unsigned grid, unsigned block, Args... args) const {
    void* parameters[] = {&args..., nullptr};
    return cu().cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, on, parameters, nullptr);
  }
  /// Each of these is queued, and not waited for.
  void step(CUstream on, CUdeviceptr x, Word i, unsigned grid = 1, unsigned block = 1) const {
    REQUIRE(start(on, step_function, grid, block, x, i) == CUDA_SUCCESS);
  }
  static void replay(CUgraphExec exec, CUstream on) { REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS); }
  static void synchronize(CUstream on) { REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS); }
  /// Holds up what follows on the stream for a while.
  void hold(CUstream on, CUdeviceptr unused) const {
    REQUIRE(launch("report", 1, 1, on, unused, std::uint64_t{20'000'000}) == CUDA_SUCCESS);
  }

  CUmodule steps = nullptr;
  CUfunction step_function = function_of(steps, "step");
  CUgraph last_graph = nullptr;
  CUgraphNode last = nullptr;
};

}  // namespace quern::conformance
