// SPDX-License-Identifier: Apache-2.0
// Threads that use one context at once: each has objects of its own, and all share some.
#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "kernels.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

constexpr unsigned kThreads = 8;
constexpr unsigned kRounds = 24;

/// The objects that all threads use.
struct Shared {
  CUcontext context = nullptr;
  CUfunction count = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmemoryPool pool = nullptr;
  CUdeviceptr counters = 0;  ///< of the graph, and of the stream
};

/// The work of one thread. Its first failure is its result: doctest's checks are for one thread.
struct Caller {
  const Shared& shared;
  unsigned number = 0;
  std::string failure{};
  CUstream stream = nullptr;
  CUstream side = nullptr;
  CUevent event = nullptr;

  bool good(CUresult result, const char* call) {
    if (result != CUDA_SUCCESS && failure.empty())
      failure = std::string(call) + " of thread " + std::to_string(number) + ": " + std::to_string(result);
    return result == CUDA_SUCCESS;
  }
#define GOOD(symbol, ...) good(CU(symbol)(__VA_ARGS__), #symbol)

  CUresult count(CUdeviceptr counter, unsigned threads, CUstream on) const {
    void* parameters[] = {&counter};
    return cu().cuLaunchKernel(shared.count, 1, 1, 1, threads, 1, 1, 0, on, parameters, nullptr);
  }

  void run() {
    if (!good(cu().cuCtxSetCurrent(shared.context), "cuCtxSetCurrent")) return;
    // Only this thread's captures are its concern, and nobody's calls are unsafe to them.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    GOOD(cuThreadExchangeStreamCaptureMode, &mode);
    GOOD(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    GOOD(cuStreamCreate, &side, CU_STREAM_NON_BLOCKING);
    GOOD(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    for (unsigned round = 0; round < kRounds && failure.empty(); ++round) {
      launch_captured(round);
      use_pools(round);
      change_graphs();
      share();
    }
    GOOD(cuEventDestroy_v2, event);
    GOOD(cuStreamDestroy_v2, side);
    GOOD(cuStreamDestroy_v2, stream);
    cu().cuCtxSetCurrent(nullptr);
  }

  /// A capture over two streams, launched twice, updated, launched once more.
  void launch_captured(unsigned round) {
    CUdeviceptr words = 0;
    if (!good(cu().cuMemAlloc_v2(&words, 64), "cuMemAlloc")) return;
    CUgraph graph = capture(words, 2);
    CUgraph wider = capture(words, 3);
    CUgraphExec exec = nullptr;
    GOOD(cuGraphInstantiateWithFlags, &exec, graph, 0);
    GOOD(cuGraphLaunch, exec, stream);
    GOOD(cuGraphLaunch, exec, side);
    CUgraphExecUpdateResultInfo info{};
    GOOD(cuGraphExecUpdate_v2, exec, wider, &info);
    GOOD(cuGraphLaunch, exec, stream);
    GOOD(cuGraphExecDestroy, exec);  // its launches go on
    GOOD(cuGraphDestroy, graph);
    GOOD(cuGraphDestroy, wider);
    good(cu().cuStreamSynchronize(side), "cuStreamSynchronize");
    good(cu().cuStreamSynchronize(stream), "cuStreamSynchronize");
    std::uint32_t word = 0;
    good(cu().cuMemcpyDtoHAsync_v2(&word, words, 4, stream), "cuMemcpyDtoHAsync");
    good(cu().cuStreamSynchronize(stream), "cuStreamSynchronize");
    // The fill begins each launch anew: only the last counts.
    if (word != 100 + 1 + 3 && failure.empty())
      failure = "round " + std::to_string(round) + ": counted to " + std::to_string(word);
    good(cu().cuMemFree_v2(words), "cuMemFree");
  }

  CUgraph capture(CUdeviceptr words, unsigned threads) {
    CUgraph graph = nullptr;
    GOOD(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    good(cu().cuMemsetD32Async(words, 100, 16, stream), "cuMemsetD32Async");
    good(cu().cuEventRecord(event, stream), "cuEventRecord");
    good(cu().cuStreamWaitEvent(side, event, 0), "cuStreamWaitEvent");
    good(count(words, threads, side), "cuLaunchKernel");
    good(count(words, 1, stream), "cuLaunchKernel");
    good(cu().cuEventRecord(event, side), "cuEventRecord");
    good(cu().cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
    GOOD(cuStreamEndCapture, stream, &graph);
    return graph;
  }

  /// Memory of the shared pool and of one of the thread's own.
  void use_pools(unsigned round) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool own = nullptr;
    GOOD(cuMemPoolCreate, &own, &properties);
    CUdeviceptr a = 0, b = 0;
    GOOD(cuMemAllocFromPoolAsync, &a, 512 * (1 + round % 4), shared.pool, stream);
    GOOD(cuMemAllocFromPoolAsync, &b, 4096, own, stream);
    good(cu().cuMemsetD32Async(a, number, 64, stream), "cuMemsetD32Async");
    good(cu().cuMemcpyDtoDAsync_v2(b, a, 256, stream), "cuMemcpyDtoDAsync");
    std::array<std::uint32_t, 64> words{};
    good(cu().cuMemcpyDtoHAsync_v2(words.data(), b, 256, stream), "cuMemcpyDtoHAsync");
    GOOD(cuMemFreeAsync, a, stream);
    GOOD(cuMemFreeAsync, b, stream);
    good(cu().cuStreamSynchronize(stream), "cuStreamSynchronize");
    GOOD(cuMemPoolDestroy, own);
    for (const std::uint32_t word : words)
      if (word != number && failure.empty()) failure = "memory of a pool is another thread's";
  }

  /// Copies of the shared graph, changed and destroyed.
  void change_graphs() {
    CUgraph copy = nullptr;
    CUgraphNode node = nullptr, added = nullptr;
    GOOD(cuGraphClone, &copy, shared.graph);
    GOOD(cuGraphNodeFindInClone, &node, shared.node, copy);
    GOOD(cuGraphAddEmptyNode, &added, copy, &node, 1);
    GOOD(cuGraphAddEventRecordNode, &added, copy, &added, 1, shared.event);
    GOOD(cuGraphAddChildGraphNode, &added, copy, &added, 1, shared.graph);
    std::size_t nodes = 0;
    GOOD(cuGraphGetNodes, copy, nullptr, &nodes);
    if (nodes != 4 && failure.empty()) failure = "nodes of a copy are missing";
    GOOD(cuGraphDestroyNode, node);
    GOOD(cuGraphDestroy, copy);
  }

  void share() {
    GOOD(cuGraphLaunch, shared.exec, number % 2 == 0 ? stream : shared.stream);
    good(cu().cuEventRecord(shared.event, stream), "cuEventRecord");
    good(cu().cuStreamWaitEvent(side, shared.event, 0), "cuStreamWaitEvent");
    good(count(shared.counters + 4, 1, shared.stream), "cuLaunchKernel");
    const CUresult done = cu().cuEventQuery(shared.event);
    if (done != CUDA_ERROR_NOT_READY) good(done, "cuEventQuery");
    good(cu().cuStreamSynchronize(side), "cuStreamSynchronize");
  }
#undef GOOD
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "eight threads use streams, events, pools, captures and graphs at once") {
  Shared shared;
  shared.context = context;
  shared.count = function("count");
  shared.counters = upload(std::vector<std::uint32_t>(2, 0));
  shared.stream = stream();
  shared.event = event(CU_EVENT_DISABLE_TIMING);
  REQUIRE(CU(cuDeviceGetDefaultMemPool)(&shared.pool, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphCreate)(&shared.graph, 0) == CUDA_SUCCESS);
  void* parameters[] = {&shared.counters};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = shared.count;
  params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.blockDimX = 2;
  params.kernelParams = parameters;
  REQUIRE(CU(cuGraphAddKernelNode_v2)(&shared.node, shared.graph, nullptr, 0, &params) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&shared.exec, shared.graph, 0) == CUDA_SUCCESS);
  std::vector<Caller> callers;
  for (unsigned i = 0; i < kThreads; ++i) callers.push_back({.shared = shared, .number = i});
  std::vector<std::thread> threads;
  for (Caller& caller : callers) threads.emplace_back([&caller] { caller.run(); });
  for (std::thread& thread : threads) thread.join();
  for (const Caller& caller : callers) CHECK(caller.failure == "");
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  const auto counted = download<std::uint32_t>(shared.counters, 2);
  CHECK(counted[0] == 2 * kThreads * kRounds);
  CHECK(counted[1] == kThreads * kRounds);
  CHECK(CU(cuGraphExecDestroy)(shared.exec) == CUDA_SUCCESS);
  CHECK(CU(cuGraphDestroy)(shared.graph) == CUDA_SUCCESS);
}
