// SPDX-License-Identifier: Apache-2.0
// Graphs: how they may be nested, who owns references, and what a change means for launches under way.
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "graph_fixture.hpp"

using namespace quern::conformance;

namespace {

struct RulesFixture : GraphFixture {
  static CUgraph make_graph() {
    CUgraph made = nullptr;
    REQUIRE(CU(cuGraphCreate)(&made, 0) == CUDA_SUCCESS);
    return made;
  }
  static CUresult add_child(CUgraph into, CUgraph child, CUgraphChildGraphNodeOwnership ownership,
                            CUgraphNode* node) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = child;
    params.graph.ownership = ownership;
    return CU(cuGraphAddNode)(node, into, nullptr, 0, &params);
  }
  /// The body of a new "if" node.
  CUgraph add_if(CUgraph into, CUgraphConditionalHandle handle, CUgraphNode* node) const {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional = {handle, CU_GRAPH_COND_TYPE_IF, 1, nullptr, context};
    REQUIRE(CU(cuGraphAddNode)(node, into, nullptr, 0, &params) == CUDA_SUCCESS);
    return params.conditional.phGraph_out[0];
  }

  CUdeviceptr words = upload(std::vector<std::uint32_t>(4, 0));
  CUgraphNode added = nullptr;
};

}  // namespace

TEST_CASE_FIXTURE(RulesFixture, "a graph is not moved into itself, nor into a graph that is in it") {
  const CUgraph child = make_graph();
  CHECK(add_child(graph, graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &added) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(add_child(graph, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &added) == CUDA_SUCCESS);
  CHECK(add_child(child, graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &added) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add_child(graph, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &added) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphDestroy)(child) == CUDA_ERROR_INVALID_VALUE);
  const CUgraph body = add_if(graph, condition(1), &added);
  CHECK(add_child(body, graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &added) == CUDA_ERROR_INVALID_VALUE);
  count_in(child, words, 3);
  count_in(body, words, 4);
  const CUgraphExec exec = instantiate();
  REQUIRE(CU(cuGraphLaunch)(exec, stream()) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(word(words) == 7);
  REQUIRE(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  std::size_t nodes = 0;
  CHECK(CU(cuGraphGetNodes)(child, nullptr, &nodes) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphGetNodes)(body, nullptr, &nodes) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(RulesFixture, "null handles of graphs, nodes and user objects are invalid values") {
  const CUgraphNode none = nullptr;
  CUgraphNodeType type{};
  std::size_t count = 1;
  CHECK(CU(cuGraphAddEmptyNode)(&added, graph, &none, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphAddDependencies)(graph, &none, &none, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphRemoveDependencies)(graph, &none, &none, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphNodeGetType)(none, &type) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphNodeGetDependencies)(none, nullptr, &count) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphNodeFindInClone)(&added, none, graph) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphEventRecordNodeSetEvent)(none, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuUserObjectRetain)(nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphRetainUserObject)(graph, nullptr, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphAddEventRecordNode)(&added, graph, nullptr, 0, nullptr) != CUDA_SUCCESS);
  CUipcEventHandle handle{};
  CHECK(CU(cuIpcGetEventHandle)(&handle, nullptr) == CUDA_ERROR_INVALID_VALUE);
  // Lists have room for something, or are not asked for.
  REQUIRE(CU(cuGraphAddEmptyNode)(&added, graph, nullptr, 0) == CUDA_SUCCESS);
  CUgraphNode found = nullptr;
  count = 0;
  CHECK(CU(cuGraphGetNodes)(graph, &found, &count) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphGetRootNodes)(graph, &found, &count) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphGetEdges)(graph, &found, &found, &count) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphNodeGetDependencies)(added, &found, &count) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphGetNodes)(graph, nullptr, &count) == CUDA_SUCCESS);
  CHECK(count == 1);
}

TEST_CASE_FIXTURE(RulesFixture, "graphs are instantiated with an upload only where a stream is given") {
  CUgraphExec exec = nullptr;
  CHECK(CU(cuGraphInstantiateWithFlags)(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) ==
        CUDA_ERROR_INVALID_VALUE);
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  params.hUploadStream = stream();
  CHECK(CU(cuGraphInstantiateWithParams)(&exec, graph, &params) == CUDA_SUCCESS);
  // A handle for conditions keeps a graph from being copied, also without a conditional node.
  CUgraph copied = nullptr;
  REQUIRE(CU(cuGraphClone)(&copied, graph) == CUDA_SUCCESS);
  condition(1);
  CHECK(CU(cuGraphClone)(&copied, graph) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE_FIXTURE(RulesFixture, "nodes copy something") {
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = words;
  box.dstDevice = words + 8;
  box.WidthInBytes = 4;
  box.Height = box.Depth = 1;
  for (std::size_t* const extent : {&box.WidthInBytes, &box.Height, &box.Depth}) {
    const std::size_t before = std::exchange(*extent, 0);
    CHECK(CU(cuGraphAddMemcpyNode)(&added, graph, nullptr, 0, &box, context) == CUDA_ERROR_INVALID_VALUE);
    box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    CHECK(CU(cuMemcpy3D_v2)(&box) == CUDA_SUCCESS);  // nothing to copy, whatever the sides are
    box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    *extent = before;
  }
  // Without a height, slices follow each other.
  box.Depth = 2;
  box.srcPitch = box.dstPitch = 4;
  REQUIRE(CU(cuGraphAddMemcpyNode)(&added, graph, nullptr, 0, &box, context) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemcpyHtoD_v2(words, std::array<std::uint32_t, 4>{5, 6, 0, 0}.data(), 16) == CUDA_SUCCESS);
  run(instantiate(), stream());
  CHECK(word(words + 8) == 5);
  CHECK(word(words + 12) == 6);
}

TEST_CASE_FIXTURE(RulesFixture, "the client gives away only the references that it owns") {
  static std::atomic<int> destroyed;
  destroyed = 0;
  const CUhostFn destroy = [](void*) { ++destroyed; };
  CUuserObject object = nullptr;
  REQUIRE(CU(cuUserObjectCreate)(&object, nullptr, destroy, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) ==
          CUDA_SUCCESS);
  CHECK(CU(cuGraphRetainUserObject)(graph, object, 3, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuGraphRetainUserObject)(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphRetainUserObject)(graph, object, 4, 0) == CUDA_SUCCESS);
  CHECK(CU(cuUserObjectRelease)(object, 2) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuUserObjectRelease)(object, 1) == CUDA_SUCCESS);
  CHECK(CU(cuUserObjectRelease)(object, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphReleaseUserObject)(graph, object, 6) == CUDA_ERROR_INVALID_VALUE);
  CHECK(destroyed == 0);
  REQUIRE(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  CHECK(destroyed == 1);
  CHECK(CU(cuUserObjectRetain)(object, 1) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE_FIXTURE(RulesFixture, "a graph with conditional nodes is not copied, and has one instance") {
  const CUgraph body = add_if(graph, condition(1), &added);
  count_in(body, words, 1);
  CUgraph clone = nullptr;
  CHECK(CU(cuGraphClone)(&clone, graph) == CUDA_ERROR_NOT_SUPPORTED);
  const CUgraph outer = make_graph();
  CHECK(CU(cuGraphAddChildGraphNode)(&added, outer, nullptr, 0, graph) == CUDA_ERROR_NOT_SUPPORTED);
  const CUgraphExec exec = instantiate();
  CUgraphExec second = nullptr;
  CHECK(CU(cuGraphInstantiateWithFlags)(&second, graph, 0) == CUDA_ERROR_NOT_SUPPORTED);
  REQUIRE(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
  CHECK(CU(cuGraphInstantiateWithFlags)(&second, graph, 0) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(RulesFixture,
                  "bodies of conditional nodes have kernels, copies, fills, graphs and conditions") {
  const CUgraph body = add_if(graph, condition(1), &added);
  const CUDA_HOST_NODE_PARAMS_v1 host{[](void*) {}, nullptr};
  CUgraphExec none = nullptr;
  const auto is_refused = [&](CUresult added_to_body) {  // not when it is added
    CHECK(added_to_body == CUDA_SUCCESS);
    CHECK(CU(cuGraphInstantiateWithFlags)(&none, graph, 0) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE(CU(cuGraphDestroyNode)(added) == CUDA_SUCCESS);
  };
  is_refused(CU(cuGraphAddHostNode)(&added, body, nullptr, 0, &host));
  is_refused(CU(cuGraphAddEventRecordNode)(&added, body, nullptr, 0, event()));
  is_refused(CU(cuGraphAddEventWaitNode)(&added, body, nullptr, 0, event()));
  const CUgraph with_host = make_graph();
  REQUIRE(CU(cuGraphAddHostNode)(&added, with_host, nullptr, 0, &host) == CUDA_SUCCESS);
  is_refused(CU(cuGraphAddChildGraphNode)(&added, body, nullptr, 0, with_host));
  const CUDA_MEMSET_NODE_PARAMS_v1 fill{words, 0, 5, 4, 1, 1};
  REQUIRE(CU(cuGraphAddMemsetNode)(&added, body, nullptr, 0, &fill, context) == CUDA_SUCCESS);
  const CUgraph child = make_graph();
  REQUIRE(CU(cuGraphAddChildGraphNode)(&added, body, &added, 1, child) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphChildGraphNodeGetGraph)(added, const_cast<CUgraph*>(&child)) == CUDA_SUCCESS);
  is_refused(CU(cuGraphAddHostNode)(&added, child, nullptr, 0, &host));
  count_in(child, words, 2);
  // A handle of the whole graph, for a node in a body.
  const CUgraph inner = add_if(body, condition(1), &added);
  count_in(inner, words + 4, 3);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(word(words) == 7);
  CHECK(word(words + 4) == 3);
}

TEST_CASE_FIXTURE(RulesFixture, "a change of an executable graph is for later launches, in bodies too") {
  const CUgraph body = add_if(graph, condition(1), &added);
  const CUgraphNode counted = count_in(body, words, 2);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  static std::atomic<bool> released;
  released = false;
  const CUhostFn hold = [](void*) {
    while (!released) std::this_thread::yield();
  };
  REQUIRE(cu().cuLaunchHostFunc(on, hold, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
  void* parameters[] = {&words};
  const CUDA_KERNEL_NODE_PARAMS params = kernel("count", 1, 16, parameters);
  CHECK(CU(cuGraphExecKernelNodeSetParams_v2)(exec, counted, &params) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
  CHECK(CU(cuGraphNodeSetEnabled)(exec, counted, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
  released = true;
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(word(words) == 18);
  CHECK(CU(cuGraphNodeSetEnabled)(exec, counted, 1) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(word(words) == 34);
}

TEST_CASE_FIXTURE(RulesFixture, "a graph into which a stream captures is not destroyed, nor what it is in") {
  const CUgraph body = add_if(graph, condition(1), &added);
  const CUstream on = stream();
  REQUIRE(CU(cuStreamBeginCaptureToGraph)(on, body, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED) ==
          CUDA_SUCCESS);
  CHECK(CU(cuGraphDestroy)(graph) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphDestroyNode)(added) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(launch("count", 1, 5, on, words) == CUDA_SUCCESS);
  CUgraph captured = nullptr;
  REQUIRE(CU(cuStreamEndCapture)(on, &captured) == CUDA_SUCCESS);
  CHECK(captured == body);
  const CUgraphExec exec = instantiate();
  REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(word(words) == 5);
  CHECK(CU(cuGraphDestroyNode)(added) == CUDA_SUCCESS);
  CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(RulesFixture, "captures end with their context") {
  CUcontext other = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&other, nullptr, 0, 0) == CUDA_SUCCESS);
  CUstream captured = nullptr;
  REQUIRE(cu().cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamBeginCapture_v2)(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxDestroy_v2(other) == CUDA_SUCCESS);
  CHECK(word(allocate(4)) == 0);  // a capture in this mode would forbid it
}
