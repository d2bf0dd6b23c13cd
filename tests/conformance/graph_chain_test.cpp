// SPDX-License-Identifier: Apache-2.0
// Rows of small kernels, in graphs and on streams: many of them after each other, with what may come between
// them. No kernel here takes long unless it says so: what is tested is that each runs once, in its turn, with
// its own contents.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "chain_fixture.hpp"

using namespace quern::conformance;

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
  then_in(graph, function("recurse_from"), 1, 32, sum, depth);
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
