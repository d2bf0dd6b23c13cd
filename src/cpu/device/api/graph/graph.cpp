// SPDX-License-Identifier: Apache-2.0
// Graphs: their nodes and edges, copies, user objects.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "cpu/device/graph/arguments.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/graph/dot.hpp"
#include "cpu/device/graph/graph.hpp"

using namespace quern::cpu::device;
using quern::base::LockGuard;

namespace {

bool has_memory_nodes(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const auto& node) { return manages_memory(node->contents); });
}

CUresult list_edges(CUgraph handle, const EdgeList& list) {
  return entry([&] {
    Driver& driver = Driver::get();
    const LockGuard lock(graph_mutex());
    const auto graph = driver.find(handle);
    require((list.from == nullptr) == (list.to == nullptr));
    std::vector<CUgraphNode> from;
    std::vector<Edge> to;
    for (const auto& node : graph->nodes)
      for (const Edge& edge : node->dependents) {
        from.push_back(node->handle);
        to.push_back(edge);
      }
    std::size_t capacity = list.count == nullptr ? 0 : *list.count;
    write_edges(to, list);
    if (list.from != nullptr) write_nodes(from, list.from, &capacity);
  });
}

CUresult list_neighbours(CUgraphNode handle, std::vector<Edge> GraphNode::* edges, const EdgeList& list) {
  return entry([&] {
    Driver& driver = Driver::get();
    const LockGuard lock(graph_mutex());
    write_edges((*driver.find(handle)).*edges, list);
  });
}

/// The edges end in `targets`; adds all, or none if one fails.
void add_edges(const std::vector<Edge>& sources, const std::vector<Edge>& targets) {
  std::size_t added = 0;
  try {
    for (; added < sources.size(); ++added)
      add_edge(*sources[added].node, *targets[added].node, sources[added].data);
  } catch (...) {
    while (added-- > 0) remove_edge(*sources[added].node, *targets[added].node);
    throw;
  }
}

/// Removes all, or none if one is not there.
void remove_edges(const Graph& graph, const std::vector<Edge>& sources, const std::vector<Edge>& targets) {
  require(!has_memory_nodes(graph), CUDA_ERROR_NOT_SUPPORTED);
  std::set<std::pair<const GraphNode*, const GraphNode*>> known;
  for (std::size_t i = 0; i < sources.size(); ++i)
    require(has_edge(*sources[i].node, *targets[i].node) &&
            known.emplace(sources[i].node, targets[i].node).second);
  for (std::size_t i = 0; i < sources.size(); ++i) remove_edge(*sources[i].node, *targets[i].node);
}

enum class Change : std::uint8_t { add, remove };

/// Changes all edges, or none if one fails. Data of edges that are removed are not read, as by the driver of
/// a GPU.
CUresult change_dependencies(Change change, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                             const CUgraphEdgeData* data, std::size_t count) {
  return entry([&] {
    Driver& driver = Driver::get();
    const LockGuard lock(graph_mutex());
    const auto its_graph = driver.find(graph);
    const std::vector<Edge> sources = edges_of(driver, from, change == Change::add ? data : nullptr, count);
    const std::vector<Edge> targets = edges_of(driver, to, nullptr, count);
    for (std::size_t i = 0; i < count; ++i) require(sources[i].node->graph == its_graph.get());
    if (change == Change::add)
      add_edges(sources, targets);
    else if (count > 0)
      remove_edges(*its_graph, sources, targets);
  });
}

}  // namespace

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(graph != nullptr && flags == 0);
    *graph = make_graph(driver)->handle;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return entry([&] {
    Driver& driver = Driver::get();
    std::shared_ptr<Graph> graph;  // destroyed after the lock
    const LockGuard lock(graph_mutex());
    graph = driver.find(handle);
    require(!graph->owned && !is_captured_within(*graph));
    forget_handles(driver, *graph);
  });
}

CUresult cuGraphClone(CUgraph* copy, CUgraph original) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(copy != nullptr);
    std::shared_ptr<Graph> made;
    const LockGuard lock(graph_mutex());
    made = clone(driver, *driver.find(original), Visibility::client, false);
    *copy = made->handle;
  });
}

CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph graph) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(node != nullptr);
    const LockGuard lock(graph_mutex());
    const auto wanted = driver.find(original);
    const auto copy = driver.find(graph);
    const GraphNode* const found = find_copy(*copy, wanted->id);
    require(found != nullptr);
    *node = found->handle;
  });
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  return entry([&] {
    Driver& driver = Driver::get();
    const LockGuard lock(graph_mutex());
    const auto graph = driver.find(handle);
    std::vector<CUgraphNode> handles;
    for (const auto& node : graph->nodes) handles.push_back(node->handle);
    write_nodes(handles, nodes, count);
  });
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  return entry([&] {
    Driver& driver = Driver::get();
    const LockGuard lock(graph_mutex());
    const auto graph = driver.find(handle);
    std::vector<CUgraphNode> handles;
    for (const auto& node : graph->nodes)
      if (node->dependencies.empty()) handles.push_back(node->handle);
    write_nodes(handles, nodes, count);
  });
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return list_edges(graph, {from, to, nullptr, count, true});
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                            std::size_t* count) {
  return list_edges(graph, {from, to, data, count, data == nullptr});
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return list_neighbours(node, &GraphNode::dependencies, {nullptr, nodes, nullptr, count, true});
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                       std::size_t* count) {
  return list_neighbours(node, &GraphNode::dependencies, {nullptr, nodes, data, count, data == nullptr});
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return list_neighbours(node, &GraphNode::dependents, {nullptr, nodes, nullptr, count, true});
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                         std::size_t* count) {
  return list_neighbours(node, &GraphNode::dependents, {nullptr, nodes, data, count, data == nullptr});
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t count) {
  return change_dependencies(Change::add, graph, from, to, nullptr, count);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, std::size_t count) {
  return change_dependencies(Change::add, graph, from, to, data, count);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t count) {
  return change_dependencies(Change::remove, graph, from, to, nullptr, count);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* data, std::size_t count) {
  return change_dependencies(Change::remove, graph, from, to, data, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(type != nullptr);
    const LockGuard lock(graph_mutex());
    *type = type_of(driver.find(node)->contents);
  });
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  return entry([&] {
    Driver& driver = Driver::get();
    std::shared_ptr<GraphNode> node;  // destroyed after the lock
    const LockGuard lock(graph_mutex());
    node = driver.find(handle);
    require(!manages_memory(node->contents), CUDA_ERROR_NOT_SUPPORTED);
    require(!is_captured_into(*node->graph));
    for (const auto& inner : graphs_of(node->contents)) require(!is_captured_within(*inner));
    take_node(driver, *node);
  });
}

CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    constexpr unsigned kFlags = (CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS << 1) - 1;
    require(path != nullptr && (flags & ~kFlags) == 0);
    std::string text;
    {
      const LockGuard lock(graph_mutex());
      text = dot_text(*driver.find(handle), flags);
    }
    require(write_text(path, text), CUDA_ERROR_OPERATING_SYSTEM);
  });
}

CUresult cuUserObjectCreate(CUuserObject* object, void* pointer, CUhostFn destroy, unsigned references,
                            unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(object != nullptr && destroy != nullptr && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    require(references > 0 && references <= std::numeric_limits<int>::max());
    auto made = std::make_shared<UserObject>(pointer, destroy, references);
    const CUuserObject handle = driver.add(made);
    made->set_handle(handle);
    *object = handle;
  });
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(count > 0 && count <= std::numeric_limits<int>::max());
    driver.find(object)->retain(count, UserObject::Owner::client);
  });
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(count > 0 && count <= std::numeric_limits<int>::max());
    driver.find(object)->release(driver, count, UserObject::Owner::client);
  });
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(count > 0 && count <= std::numeric_limits<int>::max());
    require((flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) == 0);
    const LockGuard lock(graph_mutex());
    const auto its_graph = driver.find(graph);
    const auto its_object = driver.find(object);
    if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0)
      its_object->retain(count, UserObject::Owner::graph);
    else
      its_object->move_to_graph(count);
    its_graph->user_objects.emplace_back(driver, its_object, count);
  });
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(count > 0 && count <= std::numeric_limits<int>::max());
    std::vector<UserReference> released;  // let go of after the lock
    const LockGuard lock(graph_mutex());
    const auto its_graph = driver.find(graph);
    const auto its_object = driver.find(object);
    std::vector<UserReference>& owned = its_graph->user_objects;
    std::uint64_t held = 0;
    for (const UserReference& each : owned)
      if (each.object() == its_object) held += each.count();
    require(count <= held);
    std::uint64_t left = count;
    for (UserReference& each : owned) {
      if (each.object() != its_object || left == 0) continue;
      const std::uint64_t part = std::min(left, each.count());
      released.push_back(each.split(part));
      left -= part;
    }
    std::erase_if(owned, [](const UserReference& each) { return each.count() == 0; });
  });
}
