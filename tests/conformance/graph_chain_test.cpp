// SPDX-License-Identifier: Apache-2.0
// Rows of small kernels, in graphs and on streams: many of them after each other, with what may come between
// them. No kernel here takes long unless it says so: what is tested is that each runs once, in its turn, with
// its own contents.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "graph_fixture.hpp"

using namespace quern::conformance;

namespace {

using Word = std::uint32_t;
using Words = std::vector<Word>;

const char* const kSteps = R"ptx(
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

// *out = 0 + 1 + ... + *n, by recursion with local memory in every call
.func (.param .b32 r) deep(.param .b32 n)
{
  .local .align 4 .b8 word[4];
  .reg .pred %p<2>; .reg .b32 %r<4>;
  ld.param.u32 %r1, [n];
  st.local.u32 [word], %r1;
  st.param.b32 [r], 0;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 ret;
  sub.u32 %r2, %r1, 1;
  {
    .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r2;
    call.uni (b), deep, (a);
    ld.param.b32 %r2, [b];
  }
  ld.local.u32 %r3, [word];
  add.u32 %r2, %r2, %r3;
  st.param.b32 [r], %r2;
  ret;
}
.visible .entry recurse_from(.param .u64 out, .param .u64 n)
{
  .reg .b32 %r<3>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [n];
  ld.u32 %r1, [%rd2];
  {
    .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call.uni (b), deep, (a);
    ld.param.b32 %r2, [b];
  }
  st.u32 [%rd1], %r2;
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

bool within_20_s(const std::function<bool()>& done) {
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

}  // namespace

TEST_CASE_FIXTURE(ChainFixture, "kernels of a graph and of its stream run in order, each once") {
  constexpr unsigned kThreads = 128;
  const CUdeviceptr x = zeros(kThreads), snapshots = zeros(50 * kThreads);
  Model model{Words(kThreads, 0)};
  const auto in_graph = [](Word at, const auto& one, const auto& wide) {
    at % 10 == 9 ? wide(at * 7919 + 1) : one(at * 7919 + 1);
  };
  for (Word at = 0; at < 300; ++at)
    in_graph(at, [&](Word i) { then("step", x, i); }, [&](Word i) { then_in(graph, "step", 4, 32, x, i); });
  const auto run_model = [&] {
    for (Word at = 0; at < 300; ++at)
      in_graph(at, [&](Word i) { model.step(i); }, [&](Word i) { model.step(i, kThreads); });
  };
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  for (int launch = 0; launch < 50; ++launch) {
    replay(exec, on);
    run_model();
  }
  synchronize(on);
  CHECK(download<Word>(x, kThreads) == model.words);

  std::vector<Words> expected;
  for (Word launch = 0; launch < 50; ++launch) {
    for (Word i = 0; i < launch % 4; ++i) {
      step(on, x, launch + i);
      model.step(launch + i);
    }
    if (launch % 7 == 3) {
      REQUIRE(cu().cuMemsetD32Async(x + 20, launch, 9, on) == CUDA_SUCCESS);
      std::fill_n(model.words.begin() + 5, 9, launch);
    }
    replay(exec, on);
    run_model();
    if (launch % 5 == 1) {
      step(on, x, launch, 4, 32);
      model.step(launch, kThreads);
    }
    REQUIRE(cu().cuMemcpyDtoDAsync_v2(snapshots + launch * kThreads * 4, x, kThreads * 4, on) ==
            CUDA_SUCCESS);
    expected.push_back(model.words);
  }
  synchronize(on);
  for (std::size_t launch = 0; launch < expected.size(); ++launch) {
    CAPTURE(launch);
    REQUIRE(download<Word>(snapshots + launch * kThreads * 4, kThreads) == expected[launch]);
  }
}

TEST_CASE_FIXTURE(ChainFixture, "rows of kernels on blocking streams keep to the order of the default one") {
  const CUdeviceptr x = zeros(1);
  Model model{Words(1, 0)};
  for (Word i = 1; i <= 30; ++i) then("step", x, i);
  const CUgraphExec exec = instantiate();
  const CUstream blocking[] = {stream(CU_STREAM_DEFAULT), stream(CU_STREAM_DEFAULT)};
  for (Word round = 0; round < 60; ++round) {
    const CUstream on = round % 2 == 0 ? CU_STREAM_LEGACY : blocking[round / 2 % 2];
    for (Word i = 0; i < 1 + round % 5; ++i) {
      step(on, x, round + i);
      model.step(round + i);
    }
    if (round % 3 != 0) continue;
    replay(exec, on);
    for (Word i = 1; i <= 30; ++i) model.step(i);
  }
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(word(x) == model.words[0]);
}

TEST_CASE_FIXTURE(ChainFixture, "a launch keeps the contents that its nodes had when it was queued") {
  const CUdeviceptr x = zeros(1), snapshots = zeros(32), unused = zeros(1);
  const auto made = [&](Word first) {  // five steps and a child graph of two
    std::vector<CUgraphNode> nodes;
    for (Word i = first; i < first + 5; ++i) nodes.push_back(then("step", x, i));
    return nodes;
  };
  const auto child_of = [&](Word first) {
    CUgraph child = nullptr;
    REQUIRE(CU(cuGraphCreate)(&child, 0) == CUDA_SUCCESS);
    then_in(child, "step", 1, 1, x, first);
    then_in(child, "step", 1, 1, x, first + 1);
    return child;
  };
  const auto add_child = [&](CUgraphNode after, CUgraph child) {
    CUgraphNode node = nullptr;
    REQUIRE(CU(cuGraphAddChildGraphNode)(&node, graph, &after, 1, child) == CUDA_SUCCESS);
    return node;
  };
  const CUgraph child = child_of(50), other_child = child_of(60);
  const std::vector<CUgraphNode> nodes = made(1);
  const CUgraphNode child_node = add_child(nodes.back(), child);
  const CUgraphExec exec = instantiate();
  const CUgraph original = graph;
  REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
  add_child(made(11).back(), child_of(70));

  const CUstream on = stream();
  Model model{Words(1, 0)};
  Words expected;
  const auto enable = [&](std::size_t at, unsigned enabled) {
    REQUIRE(CU(cuGraphNodeSetEnabled)(exec, nodes[at], enabled) == CUDA_SUCCESS);
  };
  const auto launch_as = [&](const Words& numbers) {
    replay(exec, on);
    const CUdeviceptr to = snapshots + 4 * expected.size();
    REQUIRE(cu().cuMemcpyDtoDAsync_v2(to, x, 4, on) == CUDA_SUCCESS);
    model.steps(numbers);
    expected.push_back(model.words[0]);
  };
  CUgraphExecUpdateResultInfo info{};
  for (const bool held : {true, false}) {
    if (held) hold(on, unused);
    launch_as({1, 2, 3, 4, 5, 50, 51});
    set_step(exec, nodes[2], x, 100);
    launch_as({1, 2, 100, 4, 5, 50, 51});
    enable(1, 0);
    launch_as({1, 100, 4, 5, 50, 51});
    set_step(exec, nodes[1], x, 200);  // shows when it is enabled
    launch_as({1, 100, 4, 5, 50, 51});
    enable(1, 1);
    launch_as({1, 200, 100, 4, 5, 50, 51});
    for (std::size_t at = 0; at < 5; ++at) enable(at, 0);
    launch_as({50, 51});
    enable(4, 1);
    REQUIRE(CU(cuGraphExecChildGraphNodeSetParams)(exec, child_node, other_child) == CUDA_SUCCESS);
    launch_as({5, 60, 61});
    for (std::size_t at = 0; at < 5; ++at) enable(at, 1);
    REQUIRE(CU(cuGraphExecUpdate_v2)(exec, graph, &info) == CUDA_SUCCESS);
    launch_as({11, 12, 13, 14, 15, 70, 71});
    REQUIRE(CU(cuGraphExecUpdate_v2)(exec, original, &info) == CUDA_SUCCESS);
    launch_as({1, 2, 3, 4, 5, 50, 51});
  }
  synchronize(on);
  CHECK(download<Word>(snapshots, expected.size()) == expected);
}

TEST_CASE_FIXTURE(ChainFixture, "kernels among nodes of other kinds run in order") {
  const CUdeviceptr x = zeros(1), y = zeros(1), snapshots = zeros(200);
  std::atomic<int> calls{0};
  CUDA_HOST_NODE_PARAMS_v1 host{[](void* user) { ++*static_cast<std::atomic<int>*>(user); }, &calls};
  Model model{Words(1, 0)};
  Words expected(200, 0);
  for (Word at = 0; at < 200; ++at) {
    for (Word i = 0; i < at % 3; ++i) {
      then("step", x, at + i);
      model.step(at + i);
    }
    const std::vector<CUgraphNode> after = behind(graph);
    CUgraphNode node = nullptr;
    if (at % 4 == 0) {
      const CUDA_MEMSET_NODE_PARAMS_v1 set{snapshots + 4 * at, 0, at, 4, 1, 1};
      REQUIRE(CU(cuGraphAddMemsetNode)(&node, graph, after.data(), after.size(), &set, context) ==
              CUDA_SUCCESS);
      expected[at] = at;
    } else if (at % 4 == 1) {
      const CUDA_MEMCPY3D box = copy(snapshots + 4 * at, x, 4);
      REQUIRE(CU(cuGraphAddMemcpyNode)(&node, graph, after.data(), after.size(), &box, context) ==
              CUDA_SUCCESS);
      expected[at] = model.words[0];
    } else if (at % 4 == 2) {
      REQUIRE(CU(cuGraphAddHostNode)(&node, graph, after.data(), after.size(), &host) == CUDA_SUCCESS);
    } else {
      node = then("step", y, at);
    }
    last_in(graph, node);
  }
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  run(exec, on);
  CHECK(download<Word>(snapshots, 200) == expected);
  CHECK(word(x) == model.words[0]);
  Model other{Words(1, 0)};
  for (Word at = 3; at < 200; at += 4) other.step(at);
  CHECK(word(y) == other.words[0]);
  run(exec, on);
  CHECK(calls == 2 * 50);
}

TEST_CASE_FIXTURE(ChainFixture, "an executable graph whose kernels are all disabled still is in the order") {
  const CUdeviceptr x = zeros(1);
  const CUgraphNode nodes[] = {then("step", x, Word{1}), then("step", x, Word{2})};
  const CUgraphExec exec = instantiate();
  for (const CUgraphNode node : nodes) REQUIRE(CU(cuGraphNodeSetEnabled)(exec, node, 0) == CUDA_SUCCESS);
  const CUstream on = stream(), other = stream();
  Model model{Words(1, 0)};
  for (int i = 0; i < 20; ++i) {
    step(on, x, 7);
    replay(exec, on);
    const CUevent passed = event();
    REQUIRE(cu().cuEventRecord(passed, on) == CUDA_SUCCESS);
    REQUIRE(cu().cuStreamWaitEvent(other, passed, 0) == CUDA_SUCCESS);
    step(other, x, 8);
    synchronize(other);
    model.steps({7, 8});
  }
  CHECK(word(x) == model.words[0]);
}

TEST_CASE_FIXTURE(ChainFixture, "launches of one executable graph never overlap") {
  constexpr Word kLaunches = 200;
  const CUdeviceptr words = zeros(4), x = zeros(1), others = zeros(3);
  then("enter", words);
  for (Word i = 0; i < 20; ++i) then("step", x, i);
  then_in(graph, function("report"), 1, 1, others + 8, std::uint64_t{50'000});
  for (Word i = 20; i < 40; ++i) then("step", x, i);
  then("leave", words);
  const CUgraphExec exec = instantiate();
  const CUstream streams[] = {stream(), stream()};
  Model model{Words(1, 0)}, other{Words(1, 0)};
  for (Word launch = 0; launch < kLaunches; ++launch) {
    // Rows of launches of the streams' own, so that they get to the graph at different times.
    for (Word i = 0; i < launch % 3; ++i) step(streams[launch % 2], others + 4 * (launch % 2), i);
    if (launch % 2 == 0)
      for (Word i = 0; i < launch % 3; ++i) other.step(i);
    replay(exec, streams[launch % 2]);
    for (Word i = 0; i < 40; ++i) model.step(i);
  }
  for (const CUstream each : streams) synchronize(each);
  CHECK(download<Word>(words, 3) == Words{0, kLaunches, 0});
  CHECK(word(x) == model.words[0]);
  CHECK(word(others) == other.words[0]);
}

TEST_CASE_FIXTURE(ChainFixture, "each grid has a number of its own") {
  if (!is_cpu()) return;  // a number for debuggers: it is not specified what a GPU's graphs do with it
  constexpr std::size_t kLaunches = 30, kNodes = 40, kEager = 5;
  constexpr std::size_t kAll = kLaunches * (2 * kNodes + kEager);
  const CUdeviceptr counter = zeros(1), ids = upload(std::vector<std::uint64_t>(kAll, ~std::uint64_t{0}));
  for (std::size_t i = 0; i < kNodes; ++i) then("note_grid", counter, ids);
  const CUgraphExec first = instantiate(), second = instantiate();
  const CUfunction note = function_of(steps, "note_grid");
  const CUstream streams[] = {stream(), stream()};
  for (std::size_t launch = 0; launch < kLaunches; ++launch) {
    replay(first, streams[launch % 2]);
    replay(second, streams[0]);
    for (std::size_t i = 0; i < kEager; ++i)
      REQUIRE(start(streams[1], note, 1, 1, counter, ids) == CUDA_SUCCESS);
  }
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(word(counter) == kAll);
  const auto found = download<std::uint64_t>(ids, kAll);
  CHECK(std::set(found.begin(), found.end()).size() == kAll);
}

TEST_CASE_FIXTURE(ChainFixture, "the stack's limit of a launch is the context's at that time") {
  // With the dispatcher the stack's size is compiled in.
  const char* const dispatched = std::getenv("QUERN_CPU_DISPATCH");
  if (is_cpu() && dispatched != nullptr && *dispatched == '1') return;
  const CUdeviceptr x = zeros(1), sum = zeros(1), depth = zeros(1);
  then("step", x, Word{1});
  then_in(graph, "recurse_from", 1, 32, sum, depth);
  then("step", x, Word{2});
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  Model model{Words(1, 0)};
  struct Round {
    std::size_t limit;
    Word depth;
  };
  // A GPU needs more than the 16 bytes a call, and with few addresses a block has less of the host's stack.
  const char* const addresses = std::getenv("QUERN_CPU_ADDRESSES");
  const bool few = addresses != nullptr && std::string(addresses) == "compact";
  const Round small{1024, 4}, large{std::size_t{400} << 10, is_cpu() && !few ? Word{20'000} : Word{5000}};
  for (const Round& round : {small, large, small, large}) {
    CAPTURE(round.limit);
    REQUIRE(cu().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, round.limit) == CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i) {
      REQUIRE(cu().cuMemsetD32Async(depth, round.depth, 1, on) == CUDA_SUCCESS);
      replay(exec, on);
      model.steps({1, 2});
    }
    REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
    CHECK(word(sum) == round.depth * (round.depth + 1) / 2);
  }
  CHECK(word(x) == model.words[0]);
}

TEST_CASE_FIXTURE(ChainFixture, "the heap's limit of a launch is the context's at that time") {
  if (!is_cpu()) return;  // a GPU's heap keeps its size once a kernel that uses it is loaded
  const CUmodule heap = load(R"ptx(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 n);
// *out = malloc(n)
.visible .entry take(.param .u64 out, .param .u64 n)
{
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [n];
  {
    .param .b64 a; .param .b64 b;
    st.param.b64 [a], %rd2;
    call.uni (b), malloc, (a);
    ld.param.b64 %rd3, [b];
  }
  st.u64 [%rd1], %rd3;
  ret;
}
)ptx");
  const CUfunction take = function_of(heap, "take");
  const CUdeviceptr x = zeros(1), out = zeros(2), eager_out = zeros(2);
  then("step", x, Word{1});
  then_in(graph, take, 1, 1, out, std::uint64_t{100'000});
  then("step", x, Word{2});
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  struct Round {
    std::size_t limit;
    bool fits;
  };
  const Round rounds[] = {{8 << 20, true}, {4096, false}, {16 << 20, true}, {50'000, false}, {8 << 20, true}};
  Model model{Words(1, 0)};
  for (const Round& round : rounds) {
    CAPTURE(round.limit);
    REQUIRE(cu().cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, round.limit) == CUDA_SUCCESS);
    replay(exec, on);
    REQUIRE(start(on, take, 1, 1, eager_out, std::uint64_t{100'000}) == CUDA_SUCCESS);
    synchronize(on);
    model.steps({1, 2});
    CHECK((download<std::uint64_t>(out, 1)[0] != 0) == round.fits);
    CHECK((download<std::uint64_t>(eager_out, 1)[0] != 0) == round.fits);
  }
  CHECK(word(x) == model.words[0]);
}

TEST_CASE("a fault ends a row of kernels: those before it have run, none after it") {
  constexpr Word kAll = 100, kBad = 40;
  bool in_graph = false;
  const char* faulty = "store_to";
  CUresult expected = CUDA_ERROR_ILLEGAL_ADDRESS;
  unsigned blocks = 1;
  SUBCASE("in a graph") { in_graph = true; }
  SUBCASE("in a graph, in one of several blocks") {
    in_graph = true;
    blocks = 4;
  }
  SUBCASE("in a graph, by a trap") {
    in_graph = true;
    faulty = "trap_here";
    expected = CUDA_ERROR_LAUNCH_FAILED;
  }
  SUBCASE("on a stream") {}
  SUBCASE("on a stream, by a trap") {
    faulty = "trap_here";
    expected = CUDA_ERROR_LAUNCH_FAILED;
  }
  {
    ChainFixture fixture;
    const Mapped marks(4 * kAll);
    const CUstream on = fixture.stream();
    const CUdeviceptr nowhere = 8;
    const CUfunction bad = fixture.function(faulty);
    if (in_graph) {
      for (Word at = 0; at < kAll; ++at) {
        if (at == kBad)
          fixture.then_in(fixture.graph, bad, blocks, 1, nowhere);
        else
          fixture.then("step", marks.device + 4 * at, at + 1);
      }
      const CUgraphExec exec = fixture.instantiate();
      REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
      const CUresult again = CU(cuGraphLaunch)(exec, on);  // the fault may be known already
      CHECK((again == CUDA_SUCCESS || again == expected));
      CHECK(cu().cuStreamSynchronize(on) == expected);
      CHECK(CU(cuGraphLaunch)(exec, on) == expected);
    } else {
      for (Word at = 0; at < kAll; ++at) {
        const CUresult launched =
            at == kBad ? fixture.start(on, bad, blocks, 1, nowhere)
                       : fixture.start(on, fixture.step_function, 1, 1, marks.device + 4 * at, at + 1);
        CHECK((launched == CUDA_SUCCESS || (at > kBad && launched == expected)));
      }
      CHECK(cu().cuStreamSynchronize(on) == expected);
    }
    CHECK(cu().cuStreamSynchronize(on) == expected);
    CHECK(cu().cuCtxSynchronize() == expected);
    CHECK(cu().cuStreamQuery(on) == expected);
    CUdeviceptr pointer = 0;
    CHECK(cu().cuMemAlloc_v2(&pointer, 16) == expected);
    CHECK(fixture.start(on, fixture.step_function, 1, 1, marks.device, Word{1}) == expected);
    for (Word at = 0; at < kAll; ++at) {
      CAPTURE(at);
      CHECK(marks[at] == (at < kBad ? at + 1 : 0));
    }
  }
  ChainFixture fresh;
  const CUdeviceptr x = fresh.zeros(1);
  for (Word i = 0; i < 3; ++i) fresh.then("step", x, i);
  fresh.run(fresh.instantiate(), fresh.stream());
  CHECK(fresh.word(x) == (0 * 3 + 1) * 3 + 2);
}

TEST_CASE_FIXTURE(ChainFixture, "a loop's body of small kernels runs as often as its condition says") {
  const CUmodule loop = load(R"ptx(
.version 8.0
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
// the loop goes on while --*left is not 0
.visible .entry count_down(.param .u64 handle, .param .u64 left)
{
  .reg .b32 %r<2>; .reg .b64 %rd<3>;
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
)ptx");
  const CUdeviceptr x = zeros(64), left = zeros(1), counter = zeros(1), snapshots = zeros(8),
                    unused = zeros(1);
  constexpr std::size_t kRuns = 4 + 1 + 3 + 2 + 6;  // of the body, by all launches
  const CUdeviceptr ids = upload(std::vector<std::uint64_t>(2 * kRuns, ~std::uint64_t{0}));
  const CUgraphNode before = then("step", x, Word{1});
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = condition(1);
  params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  params.conditional.size = 1;
  params.conditional.ctx = context;
  CUgraphNode node = nullptr;
  REQUIRE(CU(cuGraphAddNode)(&node, graph, &before, 1, &params) == CUDA_SUCCESS);
  const CUgraph body = params.conditional.phGraph_out[0];
  then_in(body, "step", 1, 1, x, Word{10});
  then_in(body, "note_grid", 1, 1, counter, ids);
  then_in(body, "step", 2, 32, x, Word{20});
  then_in(body, "note_grid", 1, 1, counter, ids);
  then_in(body, function_of(loop, "count_down"), 1, 1, params.conditional.handle, left);
  last_in(graph, node);
  then("step", x, Word{30});
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  Model model{Words(64, 0)};
  Words expected;
  Word first = 1;
  const auto launch_with = [&](Word runs) {
    REQUIRE(cu().cuMemsetD32Async(left, runs, 1, on) == CUDA_SUCCESS);
    replay(exec, on);
    const CUdeviceptr to = snapshots + 4 * expected.size();
    REQUIRE(cu().cuMemcpyDtoDAsync_v2(to, x, 4, on) == CUDA_SUCCESS);
    model.step(first);
    for (Word run = 0; run < runs; ++run) {
      model.step(10);
      model.step(20, 64);
    }
    model.step(30);
    expected.push_back(model.words[0]);
  };
  launch_with(4);
  launch_with(1);
  synchronize(on);
  hold(on, unused);
  launch_with(3);
  set_step(exec, before, x, first = 77);  // while a launch is queued that has not begun its loop
  launch_with(2);
  launch_with(6);
  synchronize(on);
  CHECK(download<Word>(snapshots, expected.size()) == expected);
  CHECK(download<Word>(x, 64) == model.words);
  CHECK(word(counter) == 2 * kRuns);
  const auto found = download<std::uint64_t>(ids, 2 * kRuns);
  if (is_cpu()) CHECK(std::set(found.begin(), found.end()).size() == 2 * kRuns);
}

TEST_CASE_FIXTURE(ChainFixture, "the host sees what a graph writes to memory mapped after its first launch") {
  const CUdeviceptr x = upload<Word>({1}), place = upload<CUdeviceptr>({x});
  then("step", x, Word{5});
  then("step_at", place, Word{1});
  then("step_at", place, Word{2});
  then("step", x, Word{6});
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  run(exec, on);
  Model own{{1}};
  own.steps({5, 1, 2, 6});
  CHECK(word(x) == own.words[0]);
  const auto at = [&](CUdeviceptr pointer) {
    REQUIRE(cu().cuMemcpyHtoDAsync_v2(place, &pointer, 8, on) == CUDA_SUCCESS);
    synchronize(on);
  };

  const Mapped allocated(64);
  at(allocated.device);
  for (Word i = 0; i < 3; ++i) {
    allocated[0] = 1000 + i;
    run(exec, on);
    CHECK(allocated[0] == ((1000 + i) * 3 + 1) * 3 + 2);
    own.steps({5, 6});
  }
  alignas(4096) static std::atomic<Word> mine[2048];
  for (int round = 0; round < 2; ++round) {
    REQUIRE(cu().cuMemHostRegister_v2(mine, sizeof mine, CU_MEMHOSTREGISTER_DEVICEMAP) == CUDA_SUCCESS);
    CUdeviceptr device = 0;
    REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, mine, 0) == CUDA_SUCCESS);
    at(device + 4 * 1500);
    for (Word i = 0; i < 3; ++i) {
      mine[1500] = 2000 + i;
      run(exec, on);
      CHECK(mine[1500] == ((2000 + i) * 3 + 1) * 3 + 2);
      own.steps({5, 6});
    }
    // The same by launches on the stream, with others before and after them.
    mine[1] = 9;
    for (Word i = 0; i < 20; ++i) step(on, i % 2 == 0 ? x : device + 4, i);
    synchronize(on);
    Model registered{{9}};
    for (Word i = 0; i < 20; ++i) (i % 2 == 0 ? own : registered).step(i);
    CHECK(mine[1] == registered.words[0]);
    at(x);
    REQUIRE(cu().cuMemHostUnregister(mine) == CUDA_SUCCESS);
    run(exec, on);
    own.steps({5, 1, 2, 6});
  }
  CHECK(word(x) == own.words[0]);
}

TEST_CASE_FIXTURE(ChainFixture, "threads run rows of kernels on streams of one context at once") {
  constexpr Word kLaunches = 200, kRow = 40;
  struct Part {
    CUstream on = nullptr;
    CUdeviceptr x = 0;
    CUgraphExec exec = nullptr;  // null: launches on the stream
    CUresult failure = CUDA_SUCCESS;
  };
  std::vector<Part> parts(4);
  for (std::size_t at = 0; at < parts.size(); ++at) {
    Part& part = parts[at];
    part.on = stream();
    part.x = zeros(1);
    if (at >= 2) continue;
    // One from nodes, one captured.
    CUgraph its = graph;
    if (at == 0) {
      for (Word i = 0; i < kRow; ++i) then("step", part.x, i);
    } else {
      REQUIRE(CU(cuStreamBeginCapture_v2)(part.on, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
      for (Word i = 0; i < kRow; ++i) step(part.on, part.x, i);
      REQUIRE(CU(cuStreamEndCapture)(part.on, &its) == CUDA_SUCCESS);
    }
    REQUIRE(CU(cuGraphInstantiateWithFlags)(&part.exec, its, 0) == CUDA_SUCCESS);
  }
  const auto graph_launch = CU(cuGraphLaunch);
  const auto work = [&](Part& part) {
    const auto good = [&](CUresult result) {
      if (result != CUDA_SUCCESS) part.failure = result;
      return result == CUDA_SUCCESS;
    };
    if (!good(cu().cuCtxSetCurrent(context))) return;
    for (Word launch = 0; launch < kLaunches; ++launch) {
      if (part.exec != nullptr && !good(graph_launch(part.exec, part.on))) return;
      for (Word i = 0; part.exec == nullptr && i < kRow; ++i)
        if (!good(start(part.on, step_function, 1, 1, part.x, i))) return;
      if (launch % 16 == 7 && !good(cu().cuStreamSynchronize(part.on))) return;
    }
    good(cu().cuStreamSynchronize(part.on));
  };
  std::vector<std::thread> threads;
  threads.reserve(parts.size());
  for (Part& part : parts) threads.emplace_back(work, std::ref(part));
  for (std::thread& thread : threads) thread.join();
  Model model{Words(1, 0)};
  for (Word launch = 0; launch < kLaunches; ++launch)
    for (Word i = 0; i < kRow; ++i) model.step(i);
  for (std::size_t at = 0; at < parts.size(); ++at) {
    CAPTURE(at);
    CHECK(parts[at].failure == CUDA_SUCCESS);
    CHECK(word(parts[at].x) == model.words[0]);
  }
}

TEST_CASE_FIXTURE(ChainFixture,
                  "events between rows of kernels come while a later kernel waits for the host") {
  const CUdeviceptr x = zeros(1);
  const CUstream on = stream();
  Model model{Words(1, 0)};
  const auto row = [&] {
    for (Word i = 0; i < 100; ++i) {
      step(on, x, i);
      model.step(i);
    }
  };
  for (const char* const waiting : {"spin_volatile", "spin_acquire", "spin_exchange"}) {
    CAPTURE(std::string(waiting));
    const Mapped flag(64);
    const CUfunction spin = function_of(steps, waiting);
    const CUevent first = event(), second = event(CU_EVENT_BLOCKING_SYNC), last_event = event();
    row();
    REQUIRE(cu().cuEventRecord(first, on) == CUDA_SUCCESS);
    row();
    REQUIRE(cu().cuEventRecord(second, on) == CUDA_SUCCESS);
    step(on, x, 5);
    model.step(5);
    REQUIRE(start(on, spin, 1, 1, flag.device) == CUDA_SUCCESS);
    row();
    REQUIRE(cu().cuEventRecord(last_event, on) == CUDA_SUCCESS);
    CHECK(within_20_s([&] { return cu().cuEventQuery(first) == CUDA_SUCCESS; }));
    CHECK(cu().cuEventSynchronize(first) == CUDA_SUCCESS);
    CHECK(cu().cuEventSynchronize(second) == CUDA_SUCCESS);
    CHECK(cu().cuEventQuery(last_event) == CUDA_ERROR_NOT_READY);
    CHECK(cu().cuStreamQuery(on) == CUDA_ERROR_NOT_READY);
    flag[0] = 1;
    CHECK(cu().cuEventSynchronize(last_event) == CUDA_SUCCESS);
    synchronize(on);
    CHECK(word(x) == model.words[0]);
  }
}

TEST_CASE_FIXTURE(ChainFixture, "a graph's events and writes come while its next kernel waits for the host") {
  const CUdeviceptr x = zeros(1);
  const Mapped flag(64), told(64);
  const CUevent first = event(), second = event();
  for (Word i = 0; i < 20; ++i) then("step", x, i);
  then_record(first);
  for (Word i = 0; i < 20; ++i) then("step", x, i);
  then("publish", told.device, Word{3});
  then("spin_volatile", flag.device);
  for (Word i = 0; i < 20; ++i) then("step", x, i);
  then("publish", told.device, Word{4});
  then_record(second);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  Model model{Words(1, 0)};
  for (int launch = 0; launch < 5; ++launch) {
    flag[0] = told[0] = 0;
    replay(exec, on);
    CHECK(within_20_s([&] { return told[0] != 0; }));
    CHECK(told[0] == 3);
    CHECK(cu().cuEventSynchronize(first) == CUDA_SUCCESS);
    CHECK(cu().cuStreamQuery(on) == CUDA_ERROR_NOT_READY);
    flag[0] = 1;
    CHECK(cu().cuEventSynchronize(second) == CUDA_SUCCESS);
    CHECK(told[0] == 4);
    for (int part = 0; part < 3; ++part)
      for (Word i = 0; i < 20; ++i) model.step(i);
  }
  synchronize(on);
  CHECK(word(x) == model.words[0]);
}

namespace {

/// Of `poll`: enough for the host to come meanwhile, about a second. A GPU asks the host over its bus.
Word many_tries() { return is_cpu() ? Word{1} << 28 : Word{1} << 20; }

}  // namespace

TEST_CASE_FIXTURE(ChainFixture, "an event of the context comes while a later kernel asks the host") {
  const CUdeviceptr x = zeros(1), unused = zeros(1), seen = zeros(1);
  const Mapped flag(64);
  const CUstream on = stream();
  const CUfunction poll = function_of(steps, "poll");
  REQUIRE(start(on, poll, 1, 1, flag.device, seen, Word{1}) == CUDA_SUCCESS);  // so that it is there
  synchronize(on);
  const CUevent all = event();
  hold(on, unused);
  for (Word i = 0; i < 10; ++i) step(on, x, i);
  REQUIRE(CU(cuCtxRecordEvent)(context, all) == CUDA_SUCCESS);
  REQUIRE(start(on, poll, 1, 1, flag.device, seen, many_tries()) == CUDA_SUCCESS);
  CHECK(within_20_s([&] { return cu().cuEventQuery(all) == CUDA_SUCCESS; }));
  flag[0] = 7;
  synchronize(on);
  CHECK(word(seen) == 7);
}

TEST_CASE_FIXTURE(ChainFixture, "a thread that waits for the context does not wait for a later kernel") {
  const CUdeviceptr x = zeros(1), unused = zeros(2), seen = zeros(1);
  const Mapped flag(64);
  const CUstream first = stream(), second = stream();
  const CUfunction poll = function_of(steps, "poll");
  REQUIRE(start(second, poll, 1, 1, flag.device, seen, Word{1}) == CUDA_SUCCESS);
  synchronize(second);
  for (int i = 0; i < 4; ++i) hold(first, unused);
  for (int i = 0; i < 2; ++i) hold(second, unused + 4);
  for (Word i = 0; i < 10; ++i) step(second, x, i);
  std::atomic<CUresult> waited{CUDA_ERROR_UNKNOWN};
  std::atomic<bool> begun{false};
  std::thread waiter([&] {
    const CUresult current = cu().cuCtxSetCurrent(context);
    begun = true;
    waited = current == CUDA_SUCCESS ? cu().cuCtxSynchronize() : current;
    flag[0] = 7;
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // it waits now
  const CUresult launched = start(second, poll, 1, 1, flag.device, seen, many_tries());
  waiter.join();
  REQUIRE(launched == CUDA_SUCCESS);
  CHECK(waited == CUDA_SUCCESS);
  synchronize(second);
  CHECK(word(seen) == 7);
}

TEST_CASE_FIXTURE(ChainFixture, "what was launched runs though its graph, stream and module are gone") {
  const CUdeviceptr x = zeros(1);
  Model model{Words(1, 0)};
  for (int round = 0; round < 5; ++round) {
    const CUmodule own = load(kSteps);
    const CUfunction kernel = function_of(own, "step");
    const CUstream on = stream();
    REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
    last_graph = nullptr;
    for (Word i = 0; i < 100; ++i) then_in(graph, kernel, 1, 1, x, i);
    const CUgraphExec exec = instantiate();
    CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
    for (int launch = 0; launch < 10; ++launch) {
      replay(exec, on);
      for (Word i = 0; i < 100; ++i) model.step(i);
      for (Word i = 0; i < 10; ++i) {
        REQUIRE(start(on, kernel, 1, 1, x, i) == CUDA_SUCCESS);
        model.step(i);
      }
    }
    CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
    CHECK(cu().cuStreamDestroy_v2(on) == CUDA_SUCCESS);
    CHECK(cu().cuModuleUnload(own) == CUDA_SUCCESS);
    REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(word(x) == model.words[0]);
  }
}

TEST_CASE("a context with rows of kernels queued is destroyed, and the next one works") {
  for (int round = 0; round < 20; ++round) {
    ChainFixture fixture;
    const CUdeviceptr x = fixture.zeros(2);
    for (Word i = 0; i < 100; ++i) fixture.then("step", x, i);
    const CUgraphExec exec = fixture.instantiate();
    const CUstream on = fixture.stream(), other = fixture.stream();
    fixture.run(exec, on);
    Model model{Words(1, 0)};
    for (Word i = 0; i < 100; ++i) model.step(i);
    CHECK(fixture.word(x) == model.words[0]);
    for (int launch = 0; launch < 20; ++launch) {
      fixture.replay(exec, on);
      for (Word i = 0; i < 30; ++i) fixture.step(other, x + 4, i);
    }
  }
}

TEST_CASE_FIXTURE(ChainFixture, "launches in a row have their own parameters, few and many") {
  // fold<n>(out, n words): out = the words as digits to the base 3
  const auto kernel_of = [](unsigned count) {
    std::string text = ".visible .entry fold" + std::to_string(count) + "(.param .u64 out, .param .b32 w[" +
                       std::to_string(count) + "])\n{ .reg .b32 %r<3>; .reg .b64 %rd; mov.u32 %r1, 0;\n";
    for (unsigned at = 0; at < count; ++at)
      text += "ld.param.u32 %r2, [w+" + std::to_string(4 * at) + "]; mad.lo.u32 %r1, %r1, 3, %r2;\n";
    return text + "ld.param.u64 %rd, [out]; st.u32 [%rd], %r1; ret; }\n";
  };
  std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n";
  std::vector<unsigned> counts{1, 2, 1000};  // 1000: 4008 bytes
  for (unsigned count = 25; count <= 50; ++count) counts.push_back(count);
  for (const unsigned count : counts) text += kernel_of(count);
  const CUmodule folds = load(text);
  constexpr unsigned kRounds = 6;
  const CUdeviceptr out = zeros(kRounds * counts.size());
  const CUstream on = stream();
  Words expected, words(1000);
  for (unsigned round = 0; round < kRounds; ++round)
    for (const unsigned count : counts) {
      const CUfunction fold = function_of(folds, ("fold" + std::to_string(count)).c_str());
      Word folded = 0;
      for (unsigned at = 0; at < count; ++at)
        folded = folded * 3 + (words[at] = (round + 1) * 1'000'003 * (at + count));
      CUdeviceptr to = out + 4 * expected.size();
      void* parameters[] = {&to, words.data()};
      REQUIRE(cu().cuLaunchKernel(fold, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr) == CUDA_SUCCESS);
      expected.push_back(folded);
      std::fill(words.begin(), words.end(), 99);  // the launch has its copy
    }
  synchronize(on);
  CHECK(download<Word>(out, expected.size()) == expected);
}
