// SPDX-License-Identifier: Apache-2.0
// Capture of streams into graphs.
#include <atomic>
#include <functional>
#include <thread>

#include "kernels.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

struct CaptureFixture : Fixture {
  CUstream on = stream();
  CUdeviceptr words = upload(std::vector<std::uint32_t>(64, 0));

  void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED) const {
    REQUIRE(CU(cuStreamBeginCapture_v2)(on, mode) == CUDA_SUCCESS);
  }
  CUgraph end() const {
    CUgraph graph = nullptr;
    REQUIRE(CU(cuStreamEndCapture)(on, &graph) == CUDA_SUCCESS);
    REQUIRE(graph != nullptr);
    return graph;
  }
  /// The result of an end that fails.
  CUresult fail() const {
    CUgraph graph = reinterpret_cast<CUgraph>(1);
    const CUresult result = CU(cuStreamEndCapture)(on, &graph);
    CHECK(graph == nullptr);
    return result;
  }
  CUstreamCaptureStatus status(CUstream of) const {
    CUstreamCaptureStatus found{};
    REQUIRE(CU(cuStreamIsCapturing)(of, &found) == CUDA_SUCCESS);
    return found;
  }
  void replay(CUgraph graph, int times = 1) const {
    CUgraphExec exec = nullptr;
    REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_SUCCESS);
    for (int i = 0; i < times; ++i) REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
    REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
    REQUIRE(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
  }
  static std::size_t node_count(CUgraph graph) {
    std::size_t count = 0;
    REQUIRE(CU(cuGraphGetNodes)(graph, nullptr, &count) == CUDA_SUCCESS);
    return count;
  }
  std::uint32_t word(std::size_t index) const { return download<std::uint32_t>(words + 4 * index, 1)[0]; }
};

}  // namespace

TEST_CASE_FIXTURE(CaptureFixture, "a captured stream runs nothing; its graph runs it any number of times") {
  static std::atomic<int> calls;
  calls = 0;
  begin();
  CHECK(status(on) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  REQUIRE(launch("count", 1, 32, on, words) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemcpyDtoDAsync_v2(words + 4, words, 4, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemsetD32Async(words + 8, 17, 2, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuLaunchHostFunc(on, [](void*) { ++calls; }, nullptr) == CUDA_SUCCESS);
  const CUgraph graph = end();
  CHECK(status(on) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(node_count(graph) == 4);
  CHECK(word(0) == 0);
  CHECK(calls == 0);
  replay(graph, 3);
  CHECK(word(0) == 96);
  CHECK(word(1) == 96);
  CHECK(word(3) == 17);
  CHECK(calls == 3);
}

TEST_CASE_FIXTURE(CaptureFixture, "events fork a capture to other streams and join them") {
  const CUstream other = stream();
  const CUevent forked = event(), joined = event();
  begin();
  REQUIRE(launch("count", 1, 1, on, words) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(forked, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamWaitEvent(other, forked, 0) == CUDA_SUCCESS);
  CHECK(status(other) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  REQUIRE(cu().cuMemcpyDtoDAsync_v2(words + 4, words, 4, other) == CUDA_SUCCESS);
  REQUIRE(launch("count", 1, 1, on, words + 8) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(joined, other) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamWaitEvent(on, joined, 0) == CUDA_SUCCESS);
  REQUIRE(launch("count", 1, 1, on, words + 4) == CUDA_SUCCESS);
  const CUgraph graph = end();
  CHECK(status(other) == CU_STREAM_CAPTURE_STATUS_NONE);
  std::size_t edges = 0;
  REQUIRE(CU(cuGraphGetEdges)(graph, nullptr, nullptr, &edges) == CUDA_SUCCESS);
  CHECK(edges == 4);
  replay(graph);
  CHECK(download<std::uint32_t>(words, 3) == std::vector<std::uint32_t>{1, 2, 1});
  CHECK(cu().cuEventQuery(forked) == CUDA_ERROR_INVALID_VALUE);  // its capture has ended
  REQUIRE(cu().cuEventRecord(forked, on) == CUDA_SUCCESS);
  CHECK(cu().cuEventSynchronize(forked) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(CaptureFixture, "a stream that was forked and not joined is an error") {
  const CUstream other = stream();
  const CUevent forked = event();
  begin();
  REQUIRE(cu().cuEventRecord(forked, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamWaitEvent(other, forked, 0) == CUDA_SUCCESS);
  REQUIRE(launch("count", 1, 1, other, words) == CUDA_SUCCESS);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(status(on) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(status(other) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(cu().cuStreamSynchronize(other) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(CaptureFixture, "the end of a capture by a forked stream invalidates it") {
  const CUstream other = stream();
  const CUevent forked = event();
  begin();
  REQUIRE(cu().cuEventRecord(forked, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamWaitEvent(other, forked, 0) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(CU(cuStreamEndCapture)(other, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE_FIXTURE(CaptureFixture, "an event of a capture that has ended is of no use") {
  const CUstream other = stream();
  const CUevent recorded = event(), later = event();
  begin();
  REQUIRE(cu().cuEventRecord(recorded, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(later, on) == CUDA_SUCCESS);
  CHECK(node_count(end()) == 0);
  float milliseconds = 0;
  CHECK(cu().cuEventQuery(recorded) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuStreamWaitEvent(other, recorded, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuEventElapsedTime_v2(&milliseconds, recorded, later) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cu().cuEventRecord(recorded, other) == CUDA_SUCCESS);
  CHECK(cu().cuEventSynchronize(recorded) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(CaptureFixture, "captures begin and end as pairs") {
  CUgraph graph = nullptr;
  CHECK(CU(cuStreamEndCapture)(on, &graph) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(CU(cuStreamBeginCapture_v2)(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(CU(cuStreamBeginCapture_v2)(on, static_cast<CUstreamCaptureMode>(3)) == CUDA_ERROR_INVALID_VALUE);
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(CU(cuStreamBeginCapture_v2)(on, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_ILLEGAL_STATE);
  CUresult elsewhere = CUDA_SUCCESS;
  std::thread([&] {
    cu().cuCtxSetCurrent(context);
    elsewhere = CU(cuStreamEndCapture)(on, &graph);
  }).join();
  CHECK(elsewhere == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);  // and the capture is lost
  CHECK(fail() == CUDA_ERROR_ILLEGAL_STATE);
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  std::thread([&] {  // what another thread has invalidated it may end, too
    cu().cuCtxSetCurrent(context);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    elsewhere = CU(cuStreamEndCapture)(on, &graph);
  })
      .join();
  CHECK(elsewhere == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(CU(cuStreamEndCapture)(on, &graph) == CUDA_ERROR_ILLEGAL_STATE);
}

TEST_CASE_FIXTURE(CaptureFixture, "waiting for a capture invalidates it") {
  begin();
  CHECK(cu().cuStreamSynchronize(on) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(status(on) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(launch("count", 1, 1, on, words) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  CHECK(cu().cuStreamQuery(on) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  const CUevent recorded = event();
  REQUIRE(cu().cuEventRecord(recorded, on) == CUDA_SUCCESS);
  CHECK(cu().cuEventSynchronize(recorded) == CUDA_ERROR_CAPTURED_EVENT);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  REQUIRE(cu().cuEventRecord(recorded, on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamWaitEvent(CU_STREAM_LEGACY, recorded, 0) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE_FIXTURE(CaptureFixture, "captures do not depend on work outside of them, nor on each other") {
  const CUstream other = stream();
  const CUevent outside = event(), inside = event();
  REQUIRE(cu().cuEventRecord(outside, other) == CUDA_SUCCESS);
  begin();
  CHECK(cu().cuStreamWaitEvent(on, outside, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  REQUIRE(cu().cuStreamWaitEvent(on, outside, CU_EVENT_WAIT_EXTERNAL) == CUDA_SUCCESS);
  CHECK(CU(cuEventRecordWithFlags)(inside, on, CU_EVENT_RECORD_EXTERNAL) == CUDA_SUCCESS);
  const CUgraph graph = end();
  CHECK(node_count(graph) == 2);
  replay(graph);
  CHECK(cu().cuEventQuery(inside) == CUDA_SUCCESS);
  begin();
  REQUIRE(CU(cuStreamBeginCapture_v2)(other, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(inside, other) == CUDA_SUCCESS);
  CHECK(cu().cuStreamWaitEvent(on, inside, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUgraph none = nullptr;
  CHECK(CU(cuStreamEndCapture)(other, &none) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE_FIXTURE(CaptureFixture, "the legacy stream cannot be used while a blocking stream captures") {
  on = stream(CU_STREAM_DEFAULT);
  begin();
  CUstreamCaptureStatus found{};
  CHECK(CU(cuStreamIsCapturing)(CU_STREAM_LEGACY, &found) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(status(on) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(launch("count", 1, 1, nullptr, words) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  std::uint32_t host = 0;
  CHECK(cu().cuMemcpyDtoH_v2(&host, words, 4) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(launch("count", 1, 1, nullptr, words) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(CaptureFixture, "a capture's mode says which calls threads may make meanwhile") {
  const auto allocates = [&] {
    CUdeviceptr pointer = 0;
    const CUresult result = cu().cuMemAlloc_v2(&pointer, 64);
    if (result == CUDA_SUCCESS) cu().cuMemFree_v2(pointer);
    return result;
  };
  const auto allocates_elsewhere = [&] {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      cu().cuCtxSetCurrent(context);
      result = allocates();
    }).join();
    return result;
  };
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(allocates() == CUDA_SUCCESS);
  end();
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(allocates_elsewhere() == CUDA_SUCCESS);
  CHECK(allocates() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(allocates_elsewhere() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  REQUIRE(CU(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
  CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(allocates() == CUDA_SUCCESS);
  REQUIRE(CU(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
  CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  end();
  mode = static_cast<CUstreamCaptureMode>(3);  // taken, but no capture has it
  CHECK(CU(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
  CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(CU(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
  CHECK(mode == 3);
  CHECK(CU(cuStreamBeginCapture_v2)(on, mode) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuThreadExchangeStreamCaptureMode)(nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(CaptureFixture, "waiting and the like are unsafe meanwhile, ordinary copies are not") {
  const CUstream other = stream();
  const CUevent before = event();
  REQUIRE(cu().cuEventRecord(before, other) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(other) == CUDA_SUCCESS);
  CUmodule loaded = nullptr;
  REQUIRE(cu().cuModuleLoadData(&loaded, kEmptyModule) == CUDA_SUCCESS);
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuDeviceGetDefaultMemPool)(&pool, 0) == CUDA_SUCCESS);
  CUdeviceptr managed = 0, allocated = 0;
  REQUIRE(cu().cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  const unsigned yes = 1;
  std::uint64_t value = 0;
  CUgraph graph = nullptr;
  REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access{here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemAccess_flags flags{};
  const std::function<CUresult()> unsafe[] = {
      [&] { return cu().cuEventQuery(before); },
      [&] { return CU(cuMemPoolTrimTo)(pool, 0); },
      [&] { return CU(cuDeviceSetMemPool)(0, pool); },
      [&] { return CU(cuMemPoolSetAccess)(pool, &access, 1); },
      [&] { return CU(cuMemPoolGetAccess)(&flags, pool, &here); },
      [&] { return CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value); },
      [&] { return CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value); },
      [&] { return CU(cuMemAllocAsync)(&allocated, 64, other); },
      [&] { return CU(cuPointerSetAttribute)(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, words); },
      [&] { return CU(cuMemAdvise_v2)(managed, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, here); },
      [&] { return CU(cuMemPrefetchAsync_v2)(managed, 4096, here, 0, other); },
      [&] { return CU(cuGraphInstantiateWithFlags)(&exec, graph, 0); },
      [&] { return cu().cuEventSynchronize(before); },
      [&] { return cu().cuStreamQuery(other); },
      [&] { return cu().cuStreamSynchronize(other); },
      [&] { return cu().cuStreamSynchronize(CU_STREAM_LEGACY); },
      [&] { return cu().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048); },
      [&] { return cu().cuModuleUnload(loaded); }};
  for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL})
    for (const auto& call : unsafe) {
      begin(mode);
      CHECK(call() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  for (const auto& call : unsafe) CHECK(call() == CUDA_SUCCESS);
  end();
  begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  std::uint32_t host = 0;
  CHECK(cu().cuMemcpyDtoH_v2(&host, words, 4) == CUDA_SUCCESS);
  CHECK(cu().cuMemsetD8_v2(words, 0, 4) == CUDA_SUCCESS);
  end();
}

TEST_CASE_FIXTURE(CaptureFixture, "calls that a stream does not capture invalidate its capture") {
  CUgraph graph = nullptr;
  REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
  CUdeviceptr to = words + 64, from = words;
  std::size_t bytes = 4, first = 0;
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  unsigned long long id = 0;
  int priority = 0;
  CUcontext its_context = nullptr;
  const std::function<CUresult()> refused[] = {
      [&] { return CU(cuStreamGetId)(on, &id); },
      [&] { return cu().cuStreamQuery(on); },
      [&] { return CU(cuMemcpyPeerAsync)(to, context, from, context, 4, on); },
      [&] { return CU(cuMemcpyBatchAsync_v2)(&to, &from, &bytes, 1, &attributes, &first, 1, on); },
      [&] { return CU(cuGraphLaunch)(nullptr, on); },
      [&] { return CU(cuStreamAttachMemAsync)(on, 0, 0, CU_MEM_ATTACH_GLOBAL); }};
  for (const auto& call : refused) {
    begin();
    CHECK(call() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(status(on) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(call() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);  // now as before
    CHECK(CU(cuStreamGetCtx)(on, &its_context) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(CU(cuStreamCopyAttributes)(on, on) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(cu().cuStreamGetPriority(on, &priority) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  // The stream is looked at before the graph and the nodes.
  const CUgraphNode none = nullptr;
  CHECK(CU(cuStreamUpdateCaptureDependencies)(on, const_cast<CUgraphNode*>(&none), 1, 7) ==
        CUDA_ERROR_ILLEGAL_STATE);
  CHECK(CU(cuStreamBeginCaptureToGraph)(on, graph, &none, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED) ==
        CUDA_ERROR_INVALID_VALUE);
  begin();
  CHECK(CU(cuStreamBeginCaptureToGraph)(on, graph, &none, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED) ==
        CUDA_ERROR_ILLEGAL_STATE);
  end();
}

TEST_CASE_FIXTURE(CaptureFixture,
                  "a capture tells its id, its graph and its last nodes, and they can be changed") {
  begin();
  REQUIRE(launch("count", 1, 1, on, words) == CUDA_SUCCESS);
  CUstreamCaptureStatus found{};
  cuuint64_t id = 0, same_id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  REQUIRE(CU(cuStreamGetCaptureInfo_v3)(on, &found, &id, &graph, &nodes, &edges, &count) == CUDA_SUCCESS);
  CHECK(found == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(count == 1);
  CHECK(node_count(graph) == 1);
  const CUgraphNode first = nodes[0];
  REQUIRE(CU(cuStreamGetCaptureInfo)(on, &found, &same_id) == CUDA_SUCCESS);
  CHECK(same_id == id);
  CUgraphNode added = nullptr;
  REQUIRE(CU(cuGraphAddEmptyNode)(&added, graph, nullptr, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamUpdateCaptureDependencies)(on, &added, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES) ==
          CUDA_SUCCESS);
  REQUIRE(CU(cuStreamGetCaptureInfo_v2)(on, &found, nullptr, nullptr, &nodes, &count) == CUDA_SUCCESS);
  CHECK(count == 2);
  REQUIRE(CU(cuStreamUpdateCaptureDependencies_v2)(on, &added, nullptr, 1,
                                                   CU_STREAM_SET_CAPTURE_DEPENDENCIES) == CUDA_SUCCESS);
  REQUIRE(launch("count", 1, 1, on, words) == CUDA_SUCCESS);
  const CUgraph done = end();
  CHECK(done == graph);
  std::size_t dependents = 9;
  REQUIRE(CU(cuGraphNodeGetDependentNodes)(first, nullptr, &dependents) == CUDA_SUCCESS);
  CHECK(dependents == 0);
  replay(done);
  CHECK(word(0) == 2);
  REQUIRE(CU(cuStreamGetCaptureInfo)(on, &found, nullptr) == CUDA_SUCCESS);
  CHECK(found == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(CU(cuStreamUpdateCaptureDependencies)(on, &added, 1, 0) == CUDA_ERROR_ILLEGAL_STATE);
}

TEST_CASE_FIXTURE(CaptureFixture, "a capture adds to a graph that there is") {
  CUgraph graph = nullptr;
  CUgraphNode before = nullptr;
  REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphAddEmptyNode)(&before, graph, nullptr, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamBeginCaptureToGraph)(on, graph, &before, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED) ==
          CUDA_SUCCESS);
  REQUIRE(launch("count", 1, 3, on, words) == CUDA_SUCCESS);
  CHECK(end() == graph);
  std::size_t dependents = 0;
  REQUIRE(CU(cuGraphNodeGetDependentNodes)(before, nullptr, &dependents) == CUDA_SUCCESS);
  CHECK(dependents == 1);
  replay(graph);
  CHECK(word(0) == 3);
}

TEST_CASE_FIXTURE(
    CaptureFixture,
    "memory that a captured stream allocates is the graph's; launches of graphs are not captured") {
  begin();
  CUdeviceptr temporary = 0;
  REQUIRE(cu().cuMemAllocAsync(&temporary, 256, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemsetD32Async(temporary, 21, 64, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemcpyDtoDAsync_v2(words, temporary, 4, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemFreeAsync(temporary, on) == CUDA_SUCCESS);
  const CUgraph graph = end();
  CHECK(node_count(graph) == 4);
  replay(graph, 2);
  CHECK(word(0) == 21);
  begin();
  REQUIRE(launch("count", 1, 1, on, words) == CUDA_SUCCESS);
  const CUgraph inner = end();
  CUgraphExec exec = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, inner, 0) == CUDA_SUCCESS);
  begin();
  CHECK(CU(cuGraphLaunch)(exec, on) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(fail() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE_FIXTURE(CaptureFixture, "a forked stream may be destroyed before the end, but must be joined") {
  const CUevent fork = event(CU_EVENT_DISABLE_TIMING), join = event(CU_EVENT_DISABLE_TIMING);
  for (const bool joins : {true, false}) {
    CUstream branch = nullptr;
    REQUIRE(cu().cuStreamCreate(&branch, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    begin();
    REQUIRE(cu().cuEventRecord(fork, on) == CUDA_SUCCESS);
    REQUIRE(cu().cuStreamWaitEvent(branch, fork, 0) == CUDA_SUCCESS);
    REQUIRE(launch("count", 1, 1, branch, words) == CUDA_SUCCESS);
    if (joins) {
      REQUIRE(cu().cuEventRecord(join, branch) == CUDA_SUCCESS);
      REQUIRE(cu().cuStreamWaitEvent(on, join, 0) == CUDA_SUCCESS);
    }
    CHECK(cu().cuStreamDestroy_v2(branch) == CUDA_SUCCESS);
    CUgraph graph = nullptr;
    CHECK(CU(cuStreamEndCapture)(on, &graph) == (joins ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED));
    if (!joins) continue;
    CHECK(node_count(graph) == 1);
    CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  }
}

TEST_CASE_FIXTURE(CaptureFixture, "a stream that is destroyed while it captures ends the capture") {
  begin();
  REQUIRE(launch("count", 1, 1, on, words) == CUDA_SUCCESS);
  CHECK(cu().cuStreamDestroy_v2(on) == CUDA_SUCCESS);
  CHECK(launch("count", 1, 1, nullptr, words) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}
