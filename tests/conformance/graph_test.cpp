// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes, edges, executable graphs, user objects and memory nodes.
#include <sys/resource.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "graph_fixture.hpp"

using namespace quern::conformance;

namespace {

std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(CU(cuGraphGetNodes)(graph, nullptr, &count) == CUDA_SUCCESS);
  std::vector<CUgraphNode> nodes(count);
  REQUIRE(CU(cuGraphGetNodes)(graph, nodes.data(), &count) == CUDA_SUCCESS);
  return nodes;
}

}  // namespace

TEST_CASE_FIXTURE(GraphFixture, "a graph runs its nodes in the order of their dependencies, each time") {
  const CUdeviceptr a = upload(std::vector<std::uint32_t>(64, 0)),
                    b = upload(std::vector<std::uint32_t>(64, 0));
  const CUgraphNode first = fill(a, 64, 7);
  const CUDA_MEMCPY3D box = copy(b, a, 256);
  CUgraphNode copied = nullptr;
  REQUIRE(CU(cuGraphAddMemcpyNode)(&copied, graph, &first, 1, &box, context) == CUDA_SUCCESS);
  count(b, 32, {copied});
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(cu().cuMemsetD8_v2(a, 0, 256) == CUDA_SUCCESS);
    run(exec, on);
    CHECK(word(b) == 7 + 32);
    CHECK(word(b + 4) == 7);
  }
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
  CHECK(CU(cuGraphLaunch)(exec, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  CHECK(CU(cuGraphDestroy)(graph) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(GraphFixture, "launches of one executable graph run one after another, on any streams") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(2, 0));
  CUgraphNode last = nullptr;
  for (int i = 0; i < 20; ++i)
    last = count(words, 1, last == nullptr ? std::vector<CUgraphNode>{} : std::vector{last});
  const CUgraphExec exec = instantiate();
  const CUstream streams[] = {stream(), stream(), stream()};
  for (int i = 0; i < 30; ++i) REQUIRE(CU(cuGraphLaunch)(exec, streams[i % 3]) == CUDA_SUCCESS);
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);  // what is queued still runs
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(word(words) == 600);
}

TEST_CASE_FIXTURE(GraphFixture, "nodes and edges are listed, added and removed") {
  const CUgraphNode a = empty(), b = empty({a}), c = empty({a, b});
  CHECK(nodes_of(graph) == std::vector<CUgraphNode>{a, b, c});
  std::size_t count = 3;
  CUgraphNode found[3] = {a, a, a};
  REQUIRE(CU(cuGraphGetRootNodes)(graph, found, &count) == CUDA_SUCCESS);
  CHECK(count == 1);
  CHECK(found[0] == a);
  CHECK(found[1] == nullptr);
  CUgraphNode from[4], to[4];
  count = 4;
  REQUIRE(CU(cuGraphGetEdges)(graph, from, to, &count) == CUDA_SUCCESS);
  CHECK(count == 3);
  CHECK(CU(cuGraphGetEdges)(graph, from, nullptr, &count) == CUDA_ERROR_INVALID_VALUE);
  count = 0;
  REQUIRE(CU(cuGraphNodeGetDependencies)(c, nullptr, &count) == CUDA_SUCCESS);
  CHECK(count == 2);
  count = 1;
  REQUIRE(CU(cuGraphNodeGetDependentNodes)(b, found, &count) == CUDA_SUCCESS);
  CHECK(found[0] == c);
  CHECK(CU(cuGraphAddDependencies)(graph, &a, &b, 1) == CUDA_ERROR_INVALID_VALUE);  // there is one
  CHECK(CU(cuGraphAddDependencies)(graph, &a, &a, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphRemoveDependencies)(graph, &a, &b, 1) == CUDA_SUCCESS);
  CHECK(CU(cuGraphRemoveDependencies)(graph, &a, &b, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphAddDependencies)(graph, &b, &a, 1) == CUDA_SUCCESS);
  CHECK(CU(cuGraphDestroyNode)(b) == CUDA_SUCCESS);
  CHECK(nodes_of(graph) == std::vector<CUgraphNode>{a, c});
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  CHECK(CU(cuGraphNodeGetType)(a, &type) == CUDA_SUCCESS);
  CHECK(type == CU_GRAPH_NODE_TYPE_EMPTY);
  CHECK(CU(cuGraphNodeGetType)(b, &type) == CUDA_ERROR_INVALID_HANDLE);
  CUgraph other = nullptr;
  REQUIRE(CU(cuGraphCreate)(&other, 0) == CUDA_SUCCESS);
  CUgraphNode node = nullptr;
  CHECK(CU(cuGraphAddEmptyNode)(&node, other, &a, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphAddEmptyNode)(&node, other, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode twice[] = {a, a};
  CHECK(CU(cuGraphAddEmptyNode)(&node, graph, twice, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphAddEmptyNode)(nullptr, graph, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphCreate)(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphCreate)(&other, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(GraphFixture, "edges carry data, which queries without it do not lose silently") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(2, 0));
  const CUgraphNode first = count(words, 1), second = count(words, 1);
  CUgraphEdgeData data{};
  data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  REQUIRE(CU(cuGraphAddDependencies_v2)(graph, &first, &second, &data, 1) == CUDA_SUCCESS);
  CUgraphNode from = nullptr, to = nullptr;
  CUgraphEdgeData told{};
  std::size_t count_of_edges = 1;
  CHECK(CU(cuGraphGetEdges)(graph, &from, &to, &count_of_edges) == CUDA_ERROR_LOSSY_QUERY);
  REQUIRE(CU(cuGraphGetEdges_v2)(graph, &from, &to, &told, &count_of_edges) == CUDA_SUCCESS);
  CHECK(from == first);
  CHECK(to == second);
  CHECK(told.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  CHECK(told.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  SUBCASE("removed without data") {
    CHECK(CU(cuGraphRemoveDependencies)(graph, &first, &second, 1) == CUDA_SUCCESS);
  }
  SUBCASE("removed with other data, which are not read") {
    const CUgraphEdgeData none{};
    CHECK(CU(cuGraphRemoveDependencies_v2)(graph, &first, &second, &none, 1) == CUDA_SUCCESS);
  }
  CHECK(CU(cuGraphRemoveDependencies_v2)(graph, &first, &second, &data, 1) == CUDA_ERROR_INVALID_VALUE);
  run(instantiate(), stream());
  CHECK(word(words) == 2);
}

TEST_CASE_FIXTURE(GraphFixture, "a graph with a cycle is not instantiated") {
  const CUgraphNode a = empty(), b = empty({a});
  REQUIRE(CU(cuGraphAddDependencies)(graph, &b, &a, 1) == CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  CHECK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_ERROR_INVALID_VALUE);
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  CHECK(CU(cuGraphInstantiateWithParams)(&exec, graph, &params) == CUDA_ERROR_INVALID_VALUE);
  CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  CHECK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 1u << 20) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(GraphFixture, "parameters of nodes come back as they were given, and are replaced") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(64, 0)), other = allocate(256);
  const CUgraphNode kernel_node = fill(words, 16, 5);
  CUDA_KERNEL_NODE_PARAMS params{};
  REQUIRE(CU(cuGraphKernelNodeGetParams_v2)(kernel_node, &params) == CUDA_SUCCESS);
  CHECK(params.func == function("fill"));
  CHECK(params.blockDimX == 16);
  CHECK(*static_cast<CUdeviceptr*>(params.kernelParams[0]) == words);
  CHECK(*static_cast<unsigned*>(params.kernelParams[2]) == 5);
  unsigned value = 9, n = 64;
  CUdeviceptr out = words;
  void* replaced[] = {&out, &n, &value};
  params.kernelParams = replaced;
  params.blockDimX = 64;
  REQUIRE(CU(cuGraphKernelNodeSetParams_v2)(kernel_node, &params) == CUDA_SUCCESS);
  run(instantiate(), stream());
  CHECK(download<std::uint32_t>(words, 64) == std::vector<std::uint32_t>(64, 9));
  params.blockDimX = 4096;
  CHECK(CU(cuGraphKernelNodeSetParams_v2)(kernel_node, &params) == CUDA_ERROR_INVALID_VALUE);

  CUDA_MEMSET_NODE_PARAMS_v1 set{words, 0, 0xab, 1, 16, 1};
  CUgraphNode set_node = nullptr;
  REQUIRE(CU(cuGraphAddMemsetNode)(&set_node, graph, &kernel_node, 1, &set, context) == CUDA_SUCCESS);
  CUDA_MEMSET_NODE_PARAMS_v1 told{};
  REQUIRE(CU(cuGraphMemsetNodeGetParams)(set_node, &told) == CUDA_SUCCESS);
  CHECK(told.dst == words);
  CHECK(told.value == 0xab);
  CHECK(told.width == 16);
  set.elementSize = 3;
  CHECK(CU(cuGraphMemsetNodeSetParams)(set_node, &set) == CUDA_ERROR_INVALID_VALUE);
  set.elementSize = 4;
  set.width = 1u << 20;
  CHECK(CU(cuGraphMemsetNodeSetParams)(set_node, &set) == CUDA_ERROR_INVALID_VALUE);
  set.width = 0;
  CHECK(CU(cuGraphMemsetNodeSetParams)(set_node, &set) == CUDA_ERROR_INVALID_VALUE);

  CUDA_MEMCPY3D box = copy(other, words, 64);
  CUgraphNode copy_node = nullptr;
  REQUIRE(CU(cuGraphAddMemcpyNode)(&copy_node, graph, &set_node, 1, &box, context) == CUDA_SUCCESS);
  CUDA_MEMCPY3D told_box{};
  REQUIRE(CU(cuGraphMemcpyNodeGetParams)(copy_node, &told_box) == CUDA_SUCCESS);
  CHECK(told_box.dstDevice == other);
  CHECK(told_box.WidthInBytes == 64);
  box.dstDevice = 8;
  CHECK(CU(cuGraphMemcpyNodeSetParams)(copy_node, &box) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphMemcpyNodeGetParams)(kernel_node, &told_box) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphAddMemcpyNode)(&copy_node, graph, nullptr, 0, nullptr, context) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(GraphFixture, "host nodes, events and child graphs run") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(2, 0));
  static std::atomic<int> calls;
  calls = 0;
  const CUgraphNode first = count(words, 4);
  CUDA_HOST_NODE_PARAMS_v1 host{[](void* user) { static_cast<std::atomic<int>*>(user)->fetch_add(1); },
                                &calls};
  CUgraphNode host_node = nullptr;
  REQUIRE(CU(cuGraphAddHostNode)(&host_node, graph, &first, 1, &host) == CUDA_SUCCESS);
  CUDA_HOST_NODE_PARAMS_v1 told{};
  REQUIRE(CU(cuGraphHostNodeGetParams)(host_node, &told) == CUDA_SUCCESS);
  CHECK(told.userData == &calls);
  const CUevent recorded = event();
  CUgraphNode record_node = nullptr, wait_node = nullptr;
  REQUIRE(CU(cuGraphAddEventRecordNode)(&record_node, graph, &host_node, 1, recorded) == CUDA_SUCCESS);
  CUevent told_event = nullptr;
  REQUIRE(CU(cuGraphEventRecordNodeGetEvent)(record_node, &told_event) == CUDA_SUCCESS);
  CHECK(told_event == recorded);
  REQUIRE(CU(cuGraphAddEventWaitNode)(&wait_node, graph, &record_node, 1, recorded) == CUDA_SUCCESS);

  CUgraph outer = nullptr;
  REQUIRE(CU(cuGraphCreate)(&outer, 0) == CUDA_SUCCESS);
  CUgraphNode child = nullptr, again = nullptr;
  REQUIRE(CU(cuGraphAddChildGraphNode)(&child, outer, nullptr, 0, graph) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphAddChildGraphNode)(&again, outer, &child, 1, graph) == CUDA_SUCCESS);
  CUgraph inner = nullptr;
  REQUIRE(CU(cuGraphChildGraphNodeGetGraph)(child, &inner) == CUDA_SUCCESS);
  CHECK(inner != graph);
  CHECK(nodes_of(inner).size() == 4);
  CHECK(CU(cuGraphDestroy)(inner) == CUDA_ERROR_INVALID_VALUE);  // it is the node's
  CUgraphExec exec = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, outer, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphDestroy)(outer) == CUDA_SUCCESS);
  const CUstream on = stream();
  run(exec, on);
  CHECK(word(words) == 8);
  CHECK(calls == 2);
  CHECK(cu().cuEventQuery(recorded) == CUDA_SUCCESS);
  std::size_t count_of_nodes = 0;
  CHECK(CU(cuGraphGetNodes)(inner, nullptr, &count_of_nodes) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphAddHostNode)(&host_node, graph, nullptr, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphAddChildGraphNode)(&child, graph, nullptr, 0, graph) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(GraphFixture, "nodes are made from one struct for all kinds") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(2, 0));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  CUdeviceptr counter = words;
  void* parameters[] = {&counter};
  params.kernel.func = function("count");
  params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = 3;
  params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.kernelParams = parameters;
  CUgraphNode node = nullptr, second = nullptr;
  REQUIRE(CU(cuGraphAddNode)(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphAddNode_v2)(&second, graph, &node, nullptr, 1, &params) == CUDA_SUCCESS);
  params.kernel.blockDimX = 10;
  REQUIRE(CU(cuGraphNodeSetParams)(second, &params) == CUDA_SUCCESS);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  run(exec, on);
  CHECK(word(words) == 13);
  params.kernel.blockDimX = 100;
  REQUIRE(CU(cuGraphExecNodeSetParams)(exec, second, &params) == CUDA_SUCCESS);
  run(exec, on);
  CHECK(word(words) == 13 + 103);
  CUDA_KERNEL_NODE_PARAMS told{};
  REQUIRE(CU(cuGraphKernelNodeGetParams_v2)(second, &told) == CUDA_SUCCESS);
  CHECK(told.blockDimX == 10);  // the graph itself did not change
  params.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
  CHECK(CU(cuGraphAddNode)(&node, graph, nullptr, 0, &params) == CUDA_ERROR_NOT_SUPPORTED);
  params.type = static_cast<CUgraphNodeType>(15);
  CHECK(CU(cuGraphAddNode)(&node, graph, nullptr, 0, &params) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphAddNode)(&node, graph, nullptr, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(GraphFixture, "a clone is independent, and its nodes are found by those of the original") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(2, 0));
  const CUgraphNode original = count(words, 2);
  CUgraph copy_of_graph = nullptr;
  REQUIRE(CU(cuGraphClone)(&copy_of_graph, graph) == CUDA_SUCCESS);
  CUgraphNode found = nullptr;
  REQUIRE(CU(cuGraphNodeFindInClone)(&found, original, copy_of_graph) == CUDA_SUCCESS);
  CHECK(nodes_of(copy_of_graph) == std::vector<CUgraphNode>{found});
  const CUgraphNode late = count(words, 5);
  CHECK(CU(cuGraphNodeFindInClone)(&found, late, copy_of_graph) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  graph = copy_of_graph;
  run(instantiate(), stream());
  CHECK(word(words) == 2);
}

TEST_CASE_FIXTURE(GraphFixture, "an executable graph takes over the nodes of a graph of the same shape") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(2, 0));
  const CUgraphNode first = count(words, 1);
  count(words, 10, {first});
  const CUgraphExec exec = instantiate();
  const CUgraph before = graph;
  REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
  const CUgraphNode changed = count(words, 100);
  const CUgraphNode last = count(words, 1000, {changed});
  CUgraphExecUpdateResultInfo info{};
  REQUIRE(CU(cuGraphExecUpdate_v2)(exec, graph, &info) == CUDA_SUCCESS);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  const CUstream on = stream();
  run(exec, on);
  CHECK(word(words) == 1100);
  REQUIRE(CU(cuGraphRemoveDependencies)(graph, &changed, &last, 1) == CUDA_SUCCESS);
  CUgraphNode error_node = nullptr;
  CUgraphExecUpdateResult result{};
  CHECK(CU(cuGraphExecUpdate)(exec, graph, &error_node, &result) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CHECK(error_node == changed);  // nothing depends on it any more
  REQUIRE(CU(cuGraphDestroyNode)(last) == CUDA_SUCCESS);
  empty({changed});
  CHECK(CU(cuGraphExecUpdate_v2)(exec, graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  run(exec, on);
  CHECK(word(words) == 2200);
  CHECK(CU(cuGraphDestroy)(before) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(GraphFixture, "nodes of an executable graph are changed, disabled and enabled") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(64, 0)),
                    other = upload(std::vector<std::uint32_t>(64, 3));
  const CUgraphNode counted = count(words, 1);
  const CUDA_MEMSET_NODE_PARAMS_v1 set{words + 4, 0, 0x11, 4, 1, 1};
  CUgraphNode set_node = nullptr, copy_node = nullptr, empty_node = empty();
  REQUIRE(CU(cuGraphAddMemsetNode)(&set_node, graph, nullptr, 0, &set, context) == CUDA_SUCCESS);
  const CUDA_MEMCPY3D box = copy(words + 8, other, 4);
  REQUIRE(CU(cuGraphAddMemcpyNode)(&copy_node, graph, nullptr, 0, &box, context) == CUDA_SUCCESS);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  run(exec, on);
  CHECK(download<std::uint32_t>(words, 4) == std::vector<std::uint32_t>{1, 0x11, 3, 0});
  const CUDA_MEMSET_NODE_PARAMS_v1 changed_set{words + 4, 0, 0x22, 4, 1, 1};
  REQUIRE(CU(cuGraphExecMemsetNodeSetParams)(exec, set_node, &changed_set, context) == CUDA_SUCCESS);
  const CUDA_MEMCPY3D changed_copy = copy(words + 12, other, 4);
  REQUIRE(CU(cuGraphExecMemcpyNodeSetParams)(exec, copy_node, &changed_copy, context) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphNodeSetEnabled)(exec, counted, 0) == CUDA_SUCCESS);
  unsigned enabled = 9;
  REQUIRE(CU(cuGraphNodeGetEnabled)(exec, counted, &enabled) == CUDA_SUCCESS);
  CHECK(enabled == 0);
  run(exec, on);
  CHECK(download<std::uint32_t>(words, 4) == std::vector<std::uint32_t>{1, 0x22, 3, 3});
  REQUIRE(CU(cuGraphNodeSetEnabled)(exec, counted, 1) == CUDA_SUCCESS);
  run(exec, on);
  CHECK(word(words) == 2);
  CHECK(CU(cuGraphNodeSetEnabled)(exec, empty_node, 0) == CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode late = count(words, 1);
  CHECK(CU(cuGraphNodeSetEnabled)(exec, late, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphExecMemsetNodeSetParams)(exec, copy_node, &changed_set, context) ==
        CUDA_ERROR_INVALID_VALUE);
  static std::uint32_t host = 0;
  CUDA_MEMCPY3D elsewhere = copy(words + 12, other, 4);  // from another place, of another kind, of two rows
  elsewhere.dstMemoryType = CU_MEMORYTYPE_HOST;
  elsewhere.dstHost = &host;
  CHECK(CU(cuGraphExecMemcpyNodeSetParams)(exec, copy_node, &elsewhere, context) == CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY3D rows = copy(words + 12, other, 4);
  rows.Height = 2;
  rows.srcPitch = rows.dstPitch = 8;
  CHECK(CU(cuGraphExecMemcpyNodeSetParams)(exec, copy_node, &rows, context) == CUDA_ERROR_INVALID_VALUE);
  const CUDA_MEMSET_NODE_PARAMS_v1 set_rows{words + 4, 16, 0x22, 4, 1, 2};
  CHECK(CU(cuGraphExecMemsetNodeSetParams)(exec, set_node, &set_rows, context) == CUDA_ERROR_INVALID_VALUE);
  cuuint64_t flags = 9;
  CHECK(CU(cuGraphExecGetFlags)(exec, &flags) == CUDA_SUCCESS);
  CHECK(flags == 0);
}

TEST_CASE_FIXTURE(GraphFixture, "kernel nodes have attributes") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(2, 0));
  const CUgraphNode node = count(words, 1), other = count(words, 1);
  CUkernelNodeAttrValue value{};
  value.cooperative = 1;
  REQUIRE(CU(cuGraphKernelNodeSetAttribute)(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS);
  CUkernelNodeAttrValue told{};
  REQUIRE(CU(cuGraphKernelNodeGetAttribute)(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &told) == CUDA_SUCCESS);
  CHECK(told.cooperative == 1);
  REQUIRE(CU(cuGraphKernelNodeCopyAttributes)(other, node) == CUDA_SUCCESS);
  told = {};
  REQUIRE(CU(cuGraphKernelNodeGetAttribute)(other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &told) == CUDA_SUCCESS);
  CHECK(told.cooperative == 1);
  run(instantiate(), stream());
  CHECK(word(words) == 2);
  CHECK(CU(cuGraphKernelNodeSetAttribute)(empty(), CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(GraphFixture, "user objects live as long as graphs and their launches need them") {
  static std::atomic<int> destroyed;
  destroyed = 0;
  CUuserObject object = nullptr;
  const CUhostFn destroy = [](void* user) { static_cast<std::atomic<int>*>(user)->fetch_add(1); };
  REQUIRE(CU(cuUserObjectCreate)(&object, &destroyed, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) ==
          CUDA_SUCCESS);
  REQUIRE(CU(cuUserObjectRetain)(object, 2) == CUDA_SUCCESS);
  REQUIRE(CU(cuUserObjectRelease)(object, 2) == CUDA_SUCCESS);
  CHECK(CU(cuUserObjectRelease)(object, 2) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuGraphRetainUserObject)(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS);
  CHECK(destroyed == 0);
  const CUgraphExec exec = instantiate();
  REQUIRE(CU(cuGraphReleaseUserObject)(graph, object, 1) == CUDA_SUCCESS);
  CHECK(CU(cuGraphReleaseUserObject)(graph, object, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(destroyed == 0);
  REQUIRE(CU(cuGraphLaunch)(exec, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  for (int i = 0; i < 2000 && destroyed == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(destroyed == 1);
  CHECK(CU(cuUserObjectRetain)(object, 1) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(CU(cuUserObjectCreate)(&object, nullptr, nullptr, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuUserObjectCreate)(&object, nullptr, destroy, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuUserObjectCreate)(&object, nullptr, destroy, 1, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(GraphFixture, "graphs allocate and free memory at the same addresses each time") {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = 256;
  CUgraphNode allocated = nullptr, copied = nullptr, freed = nullptr;
  REQUIRE(CU(cuGraphAddMemAllocNode)(&allocated, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  REQUIRE(params.dptr != 0);
  const CUgraphNode filled = fill(params.dptr, 64, 6, {allocated});
  const CUdeviceptr out = upload(std::vector<std::uint32_t>(64, 0));
  const CUDA_MEMCPY3D box = copy(out, params.dptr, 256);
  REQUIRE(CU(cuGraphAddMemcpyNode)(&copied, graph, &filled, 1, &box, context) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphAddMemFreeNode)(&freed, graph, &copied, 1, params.dptr) == CUDA_SUCCESS);
  CUdeviceptr told = 0;
  REQUIRE(CU(cuGraphMemFreeNodeGetParams)(freed, &told) == CUDA_SUCCESS);
  CHECK(told == params.dptr);
  CUDA_MEM_ALLOC_NODE_PARAMS told_params{};
  REQUIRE(CU(cuGraphMemAllocNodeGetParams)(allocated, &told_params) == CUDA_SUCCESS);
  CHECK(told_params.dptr == params.dptr);
  CHECK(told_params.bytesize == 256);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(cu().cuMemsetD8_v2(out, 0, 256) == CUDA_SUCCESS);
    run(exec, on);
    CHECK(word(out + 252) == 6);
  }
  CUgraph copy_of_graph = nullptr;
  CHECK(CU(cuGraphClone)(&copy_of_graph, graph) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(CU(cuGraphDestroyNode)(allocated) == CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExec second = nullptr;
  CHECK(CU(cuGraphInstantiateWithFlags)(&second, graph, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(CU(cuGraphAddMemFreeNode)(&freed, graph, nullptr, 0, out) == CUDA_ERROR_INVALID_VALUE);
  cuuint64_t used = 99;
  CHECK(CU(cuDeviceGetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used) == CUDA_SUCCESS);
  CHECK(used == 0);
  CHECK(CU(cuDeviceGraphMemTrim)(0) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(GraphFixture,
                  "memory of a graph that nothing frees lives on, and forbids the next launch") {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = 256;
  CUgraphNode allocated = nullptr;
  REQUIRE(CU(cuGraphAddMemAllocNode)(&allocated, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  fill(params.dptr, 64, 8, {allocated});
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  run(exec, on);
  CHECK(CU(cuGraphLaunch)(exec, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(download<std::uint32_t>(params.dptr, 64) == std::vector<std::uint32_t>(64, 8));
  CHECK(cu().cuMemFreeAsync(params.dptr, on) == CUDA_SUCCESS);
  run(exec, on);
  REQUIRE(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  CHECK(word(params.dptr) == 8);
  CHECK(cu().cuMemFreeAsync(params.dptr, on) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(GraphFixture, "an error of a node ends the context") {
  CUdeviceptr bad = 8;
  void* parameters[] = {&bad};
  const CUDA_KERNEL_NODE_PARAMS params = kernel("store_to", 1, 1, parameters);
  CUgraphNode node = nullptr;
  REQUIRE(CU(cuGraphAddKernelNode_v2)(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(on) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(CU(cuGraphLaunch)(exec, on) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(GraphFixture, "a graph is written for Graphviz") {
  const CUdeviceptr words = allocate(8);
  count(words, 1, {empty()});
  const char* const path = "graph_test.dot";
  REQUIRE(CU(cuGraphDebugDotPrint)(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE) == CUDA_SUCCESS);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str().find("digraph") != std::string::npos);
  CHECK(text.str().find("->") != std::string::npos);
  CHECK(text.str().find("count") != std::string::npos);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit limit = before;
  limit.rlim_cur = 16;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const CUresult written = CU(cuGraphDebugDotPrint)(graph, path, 0);
  ::setrlimit(RLIMIT_FSIZE, &before);
  if (is_cpu()) CHECK(written != CUDA_SUCCESS);  // and no SIGXFSZ ended the process
  std::remove(path);
  CHECK(CU(cuGraphDebugDotPrint)(graph, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGraphDebugDotPrint)(graph, "/nowhere/graph.dot", 0) != CUDA_SUCCESS);
}
