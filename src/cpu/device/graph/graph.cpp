// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/graph/graph.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace quern::cpu::device {
namespace {

std::atomic<std::uint64_t> next_id{1};

void forget_node(Driver& driver, GraphNode& node) {
  if (node.handle != nullptr) driver.remove(std::exchange(node.handle, nullptr));
  for (const auto& graph : graphs_of(node.contents)) {
    graph->parent = nullptr;
    forget_handles(driver, *graph);
  }
}

void copy_bodies(Driver& driver, ConditionalNode& node, Visibility visibility) {
  node.handles = std::make_shared<std::vector<CUgraph>>();
  for (auto& body : node.bodies) {
    body = clone(driver, *body, visibility, true);
    node.handles->push_back(body->handle);
  }
  node.params.phGraph_out = node.handles->data();
}

NodeContents copy_contents(Driver& driver, const NodeContents& contents, Visibility visibility) {
  NodeContents copy = contents;
  if (auto* child = std::get_if<ChildNode>(&copy))
    child->graph = clone(driver, *child->graph, visibility, true);
  if (auto* conditional = std::get_if<ConditionalNode>(&copy)) copy_bodies(driver, *conditional, visibility);
  if (auto* kernel = std::get_if<KernelNode>(&copy)) kernel->pointers.clear();
  return copy;
}

std::shared_ptr<GraphNode> insert_node(Driver& driver, Graph& graph, NodeContents contents, bool visible) {
  auto node = std::make_shared<GraphNode>();
  node->graph = &graph;
  for (const auto& inner : graphs_of(contents)) inner->parent = &graph;
  node->id = next_id.fetch_add(1, std::memory_order_relaxed);
  node->contents = std::move(contents);
  if (visible) node->handle = driver.add(node);
  graph.nodes.push_back(node);
  return node;
}

void erase_edge(std::vector<Edge>& edges, const GraphNode& node) {
  std::erase_if(edges, [&](const Edge& edge) { return edge.node == &node; });
}

}  // namespace

base::Mutex& graph_mutex() {
  static auto* const mutex = new base::Mutex;  // used by any thread until the process ends
  return *mutex;
}

CUgraphNodeType type_of(const NodeContents& contents) noexcept {
  struct TypeOf {
    CUgraphNodeType operator()(const KernelNode&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const CopyNode&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const FillNode&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostNode&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const ChildNode&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const EmptyNode&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const EventWaitNode&) const { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const EventRecordNode&) const { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    CUgraphNodeType operator()(const AllocNode&) const { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    CUgraphNodeType operator()(const FreeNode&) const { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    CUgraphNodeType operator()(const BatchNode&) const { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
    CUgraphNodeType operator()(const ConditionalNode&) const { return CU_GRAPH_NODE_TYPE_CONDITIONAL; }
  };
  return std::visit(TypeOf{}, contents);
}

std::shared_ptr<Graph> make_graph(Driver& driver, bool owned) {
  auto graph = std::make_shared<Graph>();
  graph->id = next_id.fetch_add(1, std::memory_order_relaxed);
  graph->owned = owned;
  graph->handle = driver.add(graph);
  return graph;
}

namespace {

bool frees(const Graph& graph, CUdeviceptr pointer) {
  return std::ranges::any_of(graph.nodes, [&](const auto& node) {
    const auto* const free = std::get_if<FreeNode>(&node->contents);
    return free != nullptr && free->pointer == pointer;
  });
}

}  // namespace

GraphNode& add_node(Driver& driver, Graph& graph, const std::vector<Edge>& dependencies,
                    NodeContents contents) {
  for (const Edge& edge : dependencies) {
    require(edge.node->graph == &graph);
    require(std::ranges::count_if(dependencies, [&](const Edge& other) { return other.node == edge.node; }) ==
            1);
  }
  if (const auto* const free = std::get_if<FreeNode>(&contents)) require(!frees(graph, free->pointer));
  const std::shared_ptr<GraphNode> node =
      insert_node(driver, graph, std::move(contents), graph.handle != nullptr);
  for (const Edge& edge : dependencies) add_edge(*edge.node, *node, edge.data);
  return *node;
}

bool has_edge(const GraphNode& from, const GraphNode& to) {
  return std::ranges::any_of(to.dependencies, [&](const Edge& edge) { return edge.node == &from; });
}

void add_edge(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  require(from.graph == to.graph && &from != &to && !has_edge(from, to));
  to.dependencies.push_back({&from, data});
  from.dependents.push_back({&to, data});
}

void remove_edge(GraphNode& from, GraphNode& to) {
  require(has_edge(from, to));
  erase_edge(to.dependencies, from);
  erase_edge(from.dependents, to);
}

void forget_handles(Driver& driver, Graph& graph) {
  if (graph.handle != nullptr) driver.remove(std::exchange(graph.handle, nullptr));
  for (const auto& node : graph.nodes) forget_node(driver, *node);
}

std::shared_ptr<GraphNode> take_node(Driver& driver, GraphNode& node) {
  forget_node(driver, node);
  for (const Edge& edge : node.dependencies) erase_edge(edge.node->dependents, node);
  for (const Edge& edge : node.dependents) erase_edge(edge.node->dependencies, node);
  std::vector<std::shared_ptr<GraphNode>>& nodes = node.graph->nodes;
  const auto found = std::ranges::find_if(nodes, [&](const auto& each) { return each.get() == &node; });
  std::shared_ptr<GraphNode> taken = std::move(*found);
  nodes.erase(found);
  return taken;
}

std::shared_ptr<Graph> clone(Driver& driver, const Graph& graph, Visibility visibility, bool owned) {
  const bool visible = visibility == Visibility::client;
  require(!visible || (!is_single(graph) && graph.conditions.empty()), CUDA_ERROR_NOT_SUPPORTED);
  std::shared_ptr<Graph> copy;
  if (visible) {
    copy = make_graph(driver, owned);
  } else {
    copy = std::make_shared<Graph>();
    copy->id = next_id.fetch_add(1, std::memory_order_relaxed);
    copy->owned = owned;
  }
  copy->origin = graph.id;
  copy->conditions = graph.conditions;
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  try {
    for (const auto& node : graph.nodes) {
      const auto made =
          insert_node(driver, *copy, copy_contents(driver, node->contents, visibility), visible);
      made->origin = visibility == Visibility::replacement ? node->origin : node->id;
      made->enabled = node->enabled;
      copies.emplace(node.get(), made.get());
    }
    for (const auto& node : graph.nodes)
      for (const Edge& edge : node->dependencies)
        add_edge(*copies.at(edge.node), *copies.at(node.get()), edge.data);
    for (const UserReference& reference : graph.user_objects) copy->user_objects.push_back(reference.copy());
  } catch (...) {
    forget_handles(driver, *copy);
    throw;
  }
  return copy;
}

GraphNode* find_copy(const Graph& graph, std::uint64_t origin) {
  for (const auto& node : graph.nodes) {
    if (node->origin == origin) return node.get();
    for (const auto& inner : graphs_of(node->contents))
      if (GraphNode* const found = find_copy(*inner, origin)) return found;
  }
  return nullptr;
}

std::vector<GraphNode*> in_order(const Graph& graph) {
  std::unordered_map<const GraphNode*, std::size_t> missing;
  std::vector<GraphNode*> order;
  order.reserve(graph.nodes.size());
  for (const auto& node : graph.nodes) {
    missing[node.get()] = node->dependencies.size();
    if (node->dependencies.empty()) order.push_back(node.get());
  }
  for (std::size_t next = 0; next < order.size(); ++next)
    for (const Edge& edge : order[next]->dependents)
      if (--missing[edge.node] == 0) order.push_back(edge.node);
  return order;
}

bool manages_memory(const NodeContents& contents) {
  if (std::holds_alternative<AllocNode>(contents) || std::holds_alternative<FreeNode>(contents)) return true;
  return std::ranges::any_of(graphs_of(contents), [](const auto& graph) {
    return std::ranges::any_of(graph->nodes, [](const auto& node) { return manages_memory(node->contents); });
  });
}

bool is_single(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const auto& node) {
    if (std::holds_alternative<ConditionalNode>(node->contents) || manages_memory(node->contents))
      return true;
    const auto inner = graphs_of(node->contents);
    return std::ranges::any_of(inner, [](const auto& each) { return is_single(*each); });
  });
}

std::vector<std::shared_ptr<Graph>> graphs_of(const NodeContents& contents) {
  if (const auto* child = std::get_if<ChildNode>(&contents)) return {child->graph};
  if (const auto* conditional = std::get_if<ConditionalNode>(&contents)) return conditional->bodies;
  return {};
}

bool is_within(const Graph& graph, const Graph& other) {
  for (const Graph* each = &graph; each != nullptr; each = each->parent)
    if (each == &other) return true;
  return false;
}

}  // namespace quern::cpu::device
