// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs: making them, and their parameters.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpu/device/graph/arguments.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/graph/exec.hpp"
#include "cpu/device/graph/graph.hpp"
#include "cpu/device/graph/node_params.hpp"

using namespace quern::cpu::device;
using quern::base::LockGuard;

namespace {

/// The dependencies of a new node, as its function gets them.
struct After {
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* data = nullptr;
  std::size_t count = 0;
};

/// Adds what `make` describes; the place for the handle is checked first.
template <class Make>
CUresult add(CUgraphNode* handle, CUgraph graph, const After& after, const Make& make) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(handle != nullptr);
    driver.find(graph);
    NodeContents contents = make(driver);
    const LockGuard lock(graph_mutex());
    const auto its_graph = driver.find(graph);
    *handle = add_node(driver, *its_graph, edges_of(driver, after.nodes, after.data, after.count),
                       std::move(contents))
                  .handle;
  });
}

/// Calls `use` with the contents of a node of that kind.
template <class Node, class Use>
CUresult with_node(CUgraphNode handle, const Use& use) {
  return entry([&] {
    Driver& driver = Driver::get();
    const LockGuard lock(graph_mutex());
    const auto node = driver.find(handle);
    Node* const contents = std::get_if<Node>(&node->contents);
    require(contents != nullptr);
    use(*contents);
  });
}

/// The attributes of a kernel node; none for a node of another kind.
KernelAttributes attributes_of(Driver& driver, CUgraphNode handle) {
  const LockGuard lock(graph_mutex());
  const auto node = driver.find(handle);
  const auto* const kernel = std::get_if<KernelNode>(&node->contents);
  return kernel == nullptr ? KernelAttributes{} : kernel->attributes;
}

/// Replaces the contents of a node by what `make` describes.
template <class Make>
CUresult set(CUgraphNode handle, const Make& make) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.find(handle);
    NodeContents contents = make(driver);  // destroyed after the lock
    const LockGuard lock(graph_mutex());
    const auto node = driver.find(handle);
    require(type_of(node->contents) == type_of(contents));
    std::swap(node->contents, contents);
  });
}

/// The same for the node's counterpart in an executable graph.
template <class Make>
CUresult set_in(CUgraphExec exec, CUgraphNode handle, const Make& make) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.find(exec);
    driver.find(handle);
    NodeContents contents = make(driver);  // destroyed after the lock
    Detached detached;
    const LockGuard lock(graph_mutex());
    const auto its_exec = driver.find(exec);
    const auto node = driver.find(handle);
    detached = detach_from_launch(driver, *its_exec);
    exchange(driver, counterpart(*its_exec, *node), contents);
  });
}

template <class Params>
const Params& known(const Params* params) {
  require(params != nullptr);
  return *params;
}

CUDA_KERNEL_NODE_PARAMS latest(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  CUDA_KERNEL_NODE_PARAMS made{};
  static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1));
  std::memcpy(&made, &params, sizeof params);  // the first members are the same
  return made;
}
CUDA_KERNEL_NODE_PARAMS latest(const CUDA_KERNEL_NODE_PARAMS_v3& params) {
  CUDA_KERNEL_NODE_PARAMS made{};
  static_assert(sizeof made == sizeof params);
  std::memcpy(&made, &params, sizeof made);
  return made;
}

auto kernel(const CUDA_KERNEL_NODE_PARAMS* params) {
  return [=](Driver& driver) { return kernel_contents(driver, known(params)); };
}
auto kernel(const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return [=](Driver& driver) { return kernel_contents(driver, latest(known(params))); };
}
/// With the attributes that the node has.
template <class Params>
auto kernel_of(CUgraphNode node, const Params* params) {
  return [=](Driver& driver) {
    if constexpr (std::is_same_v<Params, CUDA_KERNEL_NODE_PARAMS>)
      return kernel_contents(driver, known(params), attributes_of(driver, node));
    else
      return kernel_contents(driver, latest(known(params)), attributes_of(driver, node));
  };
}
auto copy(const CUDA_MEMCPY3D* box, CUcontext context) {
  return [=](Driver& driver) { return copy_contents(driver, known(box), context); };
}
auto fill(const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext context) {
  return [=](Driver& driver) {
    const CUDA_MEMSET_NODE_PARAMS_v1& given = known(params);
    return fill_contents(
        driver, {given.dst, given.pitch, given.value, given.elementSize, given.width, given.height, context});
  };
}
auto host(const CUDA_HOST_NODE_PARAMS_v1* params) {
  return [=](Driver&) {
    const CUDA_HOST_NODE_PARAMS_v1& given = known(params);
    CUDA_HOST_NODE_PARAMS_v2 latest_params{};
    latest_params.fn = given.fn;
    latest_params.userData = given.userData;
    return host_contents(latest_params);
  };
}
auto batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2* params) {
  return [=](Driver& driver) { return batch_contents(driver, known(params)); };
}
auto batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  return [=](Driver& driver) {
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& given = known(params);
    return batch_contents(driver, {given.ctx, given.count, given.paramArray, given.flags});
  };
}
auto record_event(CUevent event) {
  return [=](Driver& driver) { return event_contents<EventRecordNode>(driver, event); };
}
auto wait_event(CUevent event) {
  return [=](Driver& driver) { return event_contents<EventWaitNode>(driver, event); };
}

/// For a node of `parent`: a copy of the graph, or the graph itself, which then belongs to the node.
ChildNode child_contents(Driver& driver, CUgraph parent, CUgraph graph,
                         CUgraphChildGraphNodeOwnership ownership) {
  const LockGuard lock(graph_mutex());
  const auto its_graph = driver.find(graph);
  const auto its_parent = driver.find(parent);
  require(its_graph != its_parent);
  if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
    return {clone(driver, *its_graph, Visibility::client, true)};
  require(ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE && !its_graph->owned);
  require(!is_within(*its_parent, *its_graph));
  require(!is_captured_into(*its_graph) && its_graph->instance.expired());
  its_graph->owned = true;
  return {its_graph};
}

/// A child graph that no node got is nobody's.
void let_go(Driver& driver, const ChildNode& child, CUgraphChildGraphNodeOwnership ownership) {
  const LockGuard lock(graph_mutex());
  if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
    child.graph->owned = false;
  else
    forget_handles(driver, *child.graph);
}

CUresult add_child(CUgraphNode* node, CUgraph graph, const After& after, CUgraph child,
                   CUgraphChildGraphNodeOwnership ownership) {
  ChildNode made;
  const CUresult result = add(node, graph, after, [&](Driver& driver) {
    made = child_contents(driver, graph, child, ownership);
    return made;
  });
  if (result != CUDA_SUCCESS && made.graph != nullptr) let_go(Driver::get(), made, ownership);
  return result;
}

/// One that was made for the graph, or for one that it is in. Null: none.
std::shared_ptr<Condition> find_condition(const Graph& graph, CUgraphConditionalHandle handle) {
  for (const Graph* each = &graph; each != nullptr; each = each->parent)
    if (const auto found = each->conditions.find(handle); found != each->conditions.end())
      return found->second;
  return nullptr;
}

CUresult add_conditional(CUgraphNode* node, CUgraph graph, const After& after,
                         CUDA_CONDITIONAL_NODE_PARAMS& params) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(node != nullptr);
    const LockGuard lock(graph_mutex());
    const auto its_graph = driver.find(graph);
    const std::vector<Edge> edges = edges_of(driver, after.nodes, after.data, after.count);
    const auto condition = find_condition(*its_graph, params.handle);
    require(condition != nullptr && !condition->used);
    const unsigned most = params.type == CU_GRAPH_COND_TYPE_IF      ? 2
                          : params.type == CU_GRAPH_COND_TYPE_WHILE ? 1
                                                                    : 1u << 16;
    require(params.type >= CU_GRAPH_COND_TYPE_IF && params.type <= CU_GRAPH_COND_TYPE_SWITCH);
    require(params.size >= 1 && params.size <= most);
    ConditionalNode contents;
    contents.condition = condition;
    contents.handles = std::make_shared<std::vector<CUgraph>>();
    for (unsigned i = 0; i < params.size; ++i) {
      contents.bodies.push_back(make_graph(driver, true));
      contents.handles->push_back(contents.bodies.back()->handle);
    }
    params.phGraph_out = contents.handles->data();
    contents.params = params;
    const auto bodies = contents.bodies;
    try {
      *node = add_node(driver, *its_graph, edges, std::move(contents)).handle;
    } catch (...) {
      for (const auto& body : bodies) forget_handles(driver, *body);
      throw;
    }
    condition->used = true;
  });
}

CUresult add_any(CUgraphNode* node, CUgraph graph, const After& after, CUgraphNodeParams* params) {
  if (params == nullptr) return entry([] { Driver::get(), fail(CUDA_ERROR_INVALID_VALUE); });
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return add(node, graph, after,
                 [&](Driver& driver) { return kernel_contents(driver, latest(params->kernel)); });
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return add(node, graph, after, copy(&params->memcpy.copyParams, params->memcpy.copyCtx));
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return add(node, graph, after, [&](Driver& driver) { return fill_contents(driver, params->memset); });
    case CU_GRAPH_NODE_TYPE_HOST:
      return add(node, graph, after, [&](Driver&) { return host_contents(params->host); });
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return add_child(node, graph, after, params->graph.graph, params->graph.ownership);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return add(node, graph, after, [](Driver&) { return EmptyNode{}; });
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return add(node, graph, after, wait_event(params->eventWait.event));
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return add(node, graph, after, record_event(params->eventRecord.event));
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return add(node, graph, after,
                 [&](Driver& driver) { return alloc_contents(driver, driver.current(), params->alloc); });
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return add(node, graph, after, [&](Driver&) { return free_contents(params->free.dptr); });
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return add(node, graph, after, batch(&params->memOp));
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return add_conditional(node, graph, after, params->conditional);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      return entry([] { Driver::get(), fail(CUDA_ERROR_NOT_SUPPORTED); });
  }
  return entry([] { Driver::get(), fail(CUDA_ERROR_INVALID_VALUE); });
}

/// The contents that generic parameters describe, for a node that exists.
NodeContents contents_for(Driver& driver, CUgraphNode node, CUgraphNodeParams* params) {
  require(params != nullptr);
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return kernel_of(node, &params->kernel)(driver);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy(&params->memcpy.copyParams, params->memcpy.copyCtx)(driver);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return fill_contents(driver, params->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
      return host_contents(params->host);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return wait_event(params->eventWait.event)(driver);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return record_event(params->eventRecord.event)(driver);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return batch(&params->memOp)(driver);
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return add(node, graph, {nodes, nullptr, count}, kernel(params));
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                 std::size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  return add(node, graph, {nodes, nullptr, count}, kernel(params));
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                              const CUDA_MEMCPY3D* box, CUcontext context) {
  return add(node, graph, {nodes, nullptr, count}, copy(box, context));
}
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                              const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext context) {
  return add(node, graph, {nodes, nullptr, count}, fill(params, context));
}
CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                            const CUDA_HOST_NODE_PARAMS_v1* params) {
  return add(node, graph, {nodes, nullptr, count}, host(params));
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                  std::size_t count, CUgraph child) {
  return add_child(node, graph, {nodes, nullptr, count}, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
}
CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes, std::size_t count) {
  return add(node, graph, {nodes, nullptr, count}, [](Driver&) { return EmptyNode{}; });
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                   std::size_t count, CUevent event) {
  return add(node, graph, {nodes, nullptr, count}, record_event(event));
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                 std::size_t count, CUevent event) {
  return add(node, graph, {nodes, nullptr, count}, wait_event(event));
}
CUresult cuGraphAddBatchMemOpNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                  std::size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return add(node, graph, {nodes, nullptr, count}, batch(params));
}
CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return add(node, graph, {nodes, nullptr, count}, [=](Driver& driver) {
    require(params != nullptr);
    CUDA_MEM_ALLOC_NODE_PARAMS_v2 latest_params{};
    static_assert(sizeof latest_params == sizeof *params);
    std::memcpy(&latest_params, params, sizeof latest_params);
    AllocNode contents = alloc_contents(driver, driver.current(), latest_params);
    params->dptr = latest_params.dptr;
    return contents;
  });
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                               CUdeviceptr pointer) {
  return add(node, graph, {nodes, nullptr, count}, [=](Driver&) { return free_contents(pointer); });
}
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                        CUgraphNodeParams* params) {
  return add_any(node, graph, {nodes, nullptr, count}, params);
}
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                           const CUgraphEdgeData* data, std::size_t count, CUgraphNodeParams* params) {
  return add_any(node, graph, {nodes, data, count}, params);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return with_node<KernelNode>(node, [&](KernelNode& contents) {
    require(params != nullptr);
    const CUDA_KERNEL_NODE_PARAMS latest_params = params_of(contents);
    std::memcpy(params, &latest_params, sizeof *params);
  });
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  return with_node<KernelNode>(node, [&](KernelNode& contents) {
    require(params != nullptr);
    *params = params_of(contents);
  });
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* box) {
  return with_node<CopyNode>(node, [&](const CopyNode& contents) {
    require(box != nullptr);
    *box = contents.box;
  });
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1* params) {
  return with_node<FillNode>(node, [&](const FillNode& contents) {
    require(params != nullptr);
    const CUDA_MEMSET_NODE_PARAMS_v2& its = contents.params;
    *params = {its.dst, its.pitch, its.value, its.elementSize, its.width, its.height};
  });
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v1* params) {
  return with_node<HostNode>(node, [&](const HostNode& contents) {
    require(params != nullptr);
    *params = {contents.params.fn, contents.params.userData};
  });
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return with_node<ChildNode>(node, [&](const ChildNode& contents) {
    require(graph != nullptr);
    *graph = contents.graph->handle;
  });
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return with_node<EventRecordNode>(node, [&](const EventRecordNode& contents) {
    require(event != nullptr);
    *event = contents.handle;
  });
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return with_node<EventWaitNode>(node, [&](const EventWaitNode& contents) {
    require(event != nullptr);
    *event = contents.handle;
  });
}
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return with_node<BatchNode>(node, [&](BatchNode& contents) {
    require(params != nullptr);
    params->ctx = contents.context;
    params->flags = contents.flags;
    params->count = static_cast<unsigned>(contents.operations.size());
    params->paramArray = contents.operations.data();
  });
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return with_node<AllocNode>(node, [&](const AllocNode& contents) {
    require(params != nullptr);
    std::memcpy(params, &contents.params, sizeof *params);
    params->accessDescs = contents.access.data();
  });
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* pointer) {
  return with_node<FreeNode>(node, [&](const FreeNode& contents) {
    require(pointer != nullptr);
    *pointer = contents.pointer;
  });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return set(node, kernel_of(node, params));
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return set(node, kernel_of(node, params));
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* box) {
  return set(node, copy(box, nullptr));
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* params) {
  return set(node, fill(params, nullptr));
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* params) {
  return set(node, host(params));
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return set(node, record_event(event));
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return set(node, wait_event(event));
}
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return set(node, batch(params));
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return set(node, [=](Driver& driver) { return contents_for(driver, node, params); });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return set_in(exec, node, kernel_of(node, params));
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  return set_in(exec, node, kernel_of(node, params));
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* box,
                                        CUcontext context) {
  return set_in(exec, node, copy(box, context));
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext context) {
  return set_in(exec, node, fill(params, context));
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS_v1* params) {
  return set_in(exec, node, host(params));
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return set_in(exec, node, record_event(event));
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return set_in(exec, node, wait_event(event));
}
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return set_in(exec, node, batch(params));
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return set_in(exec, node, [=](Driver& driver) { return contents_for(driver, node, params); });
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* value) {
  return with_node<KernelNode>(node, [&](const KernelNode& contents) {
    require(value != nullptr);
    *value = attribute_of(contents, id);
  });
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
  return with_node<KernelNode>(
      node, [&](KernelNode& contents) { set_attribute(Driver::get(), contents, id, known(value)); });
}
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  KernelAttributes attributes;
  const CUresult read =
      with_node<KernelNode>(from, [&](const KernelNode& contents) { attributes = contents.attributes; });
  if (read != CUDA_SUCCESS) return read;
  return with_node<KernelNode>(to, [&](KernelNode& contents) {
    KernelNode changed = contents;
    changed.attributes.clear();
    CUkernelNodeAttrValue none{};
    set_attribute(Driver::get(), changed, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, none);
    for (const auto& [id, value] : attributes)
      set_attribute(Driver::get(), changed, static_cast<CUkernelNodeAttrID>(id), value);
    contents = std::move(changed);
  });
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext context,
                                        unsigned initial, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(handle != nullptr && (flags & ~static_cast<unsigned>(CU_GRAPH_COND_ASSIGN_DEFAULT)) == 0);
    const auto its_context = driver.contexts().state_of(Contexts::or_current(context));
    const LockGuard lock(graph_mutex());
    const auto its_graph = driver.find(graph);
    const auto allocation = driver.allocate(*its_context, quern::cpu::engine::AllocationKind::module, 4);
    require(allocation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    std::memcpy(allocation->base, &initial, sizeof initial);
    auto condition = std::make_shared<Condition>();
    condition->memory = std::shared_ptr<const void>(
        allocation->base, [&driver, allocation](const void*) { driver.memory().remove(*allocation); });
    condition->initial = initial;
    condition->assigned = (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0;
    *handle = reinterpret_cast<CUgraphConditionalHandle>(allocation->base);
    its_graph->conditions.emplace(*handle, std::move(condition));
  });
}
