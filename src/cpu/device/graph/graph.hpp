// SPDX-License-Identifier: Apache-2.0
// Graphs of work: nodes, their dependencies, and the objects that a graph keeps.
//
// Graphs, executable graphs and captures are guarded by graph_mutex(), which no member can name. Objects are
// taken out of the tables under it and destroyed after it: destroying one may call a destructor of the
// client's.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/device/driver.hpp"
#include "cpu/device/graph/graph_memory.hpp"
#include "cpu/device/graph/handles.hpp"
#include "cpu/device/graph/user_object.hpp"
#include "cpu/device/launch.hpp"
#include "cpu/device/objects.hpp"
#include "cpu/device/work.hpp"

namespace quern::cpu::device {

base::Mutex& graph_mutex();

/// The attributes of a kernel node, by their id.
using KernelAttributes = std::map<int, CUlaunchAttributeValue>;

struct KernelNode {
  explicit KernelNode(LaunchWork given) : work(std::move(given)) {}
  LaunchWork work;
  KernelAttributes attributes;
  std::vector<void*> pointers;  ///< to the parameters in `work`; made when the client asks
};
struct CopyNode {
  CUDA_MEMCPY3D box{};
  CopyWork work;
};
struct FillNode {
  CUDA_MEMSET_NODE_PARAMS_v2 params{};
  FillWork work;
};
struct HostNode {
  CUDA_HOST_NODE_PARAMS_v2 params{};
};
struct ChildNode {
  std::shared_ptr<Graph> graph;
};
struct EmptyNode {};
struct EventNode {
  CUevent handle = nullptr;
  std::shared_ptr<EventObject> event;
};
struct EventRecordNode : EventNode {};
struct EventWaitNode : EventNode {};
struct AllocNode {
  CUDA_MEM_ALLOC_NODE_PARAMS_v2 params{};
  std::vector<CUmemAccessDesc> access;
  std::shared_ptr<GraphMemory> memory;
};
struct FreeNode {
  CUdeviceptr pointer = 0;
};
struct BatchNode {
  CUcontext context = nullptr;
  unsigned flags = 0;
  std::vector<CUstreamBatchMemOpParams> operations;
};
/// A value that a conditional node looks at: four bytes of device memory, whose address is the handle.
struct Condition {
  std::shared_ptr<const void> memory;
  std::uint32_t initial = 0;
  bool assigned = false;  ///< set to `initial` at each launch
  bool used = false;      ///< by a conditional node
};
/// A body runs as its condition's value says.
struct ConditionalNode {
  CUDA_CONDITIONAL_NODE_PARAMS params{};
  std::shared_ptr<Condition> condition;
  std::vector<std::shared_ptr<Graph>> bodies;
  std::shared_ptr<std::vector<CUgraph>> handles;  ///< of the bodies; the client reads them
};

using NodeContents =
    std::variant<KernelNode, CopyNode, FillNode, HostNode, ChildNode, EmptyNode, EventWaitNode,
                 EventRecordNode, AllocNode, FreeNode, BatchNode, ConditionalNode>;

CUgraphNodeType type_of(const NodeContents& contents) noexcept;

struct Edge {
  GraphNode* node = nullptr;
  CUgraphEdgeData data{};
};

struct GraphNode {
  Graph* graph = nullptr;
  CUgraphNode handle = nullptr;  ///< null: a node of an executable graph, which has none
  std::uint64_t id = 0;          ///< never reused
  std::uint64_t origin = 0;      ///< the id of the node that it is a copy of; 0: it is none
  NodeContents contents{EmptyNode{}};
  bool enabled = true;  ///< of an executable graph
  std::vector<Edge> dependencies;
  std::vector<Edge> dependents;
};

struct Graph {
  CUgraph handle = nullptr;                       ///< null: inside of an executable graph
  bool owned = false;                             ///< by a node: the client cannot destroy it
  Graph* parent = nullptr;                        ///< the graph of that node, once it has one
  std::vector<std::shared_ptr<GraphNode>> nodes;  ///< in the order in which they were added
  std::vector<UserReference> user_objects;
  std::map<CUgraphConditionalHandle, std::shared_ptr<Condition>> conditions;
  std::uint64_t id = 0;               ///< never reused
  std::uint64_t origin = 0;           ///< the id of the graph that it is a copy of; 0: it is none
  std::weak_ptr<GraphExec> instance;  ///< the last one that was instantiated
};

/// A new graph with a handle.
std::shared_ptr<Graph> make_graph(Driver& driver, bool owned = false);

/// Adds a node after `dependencies`. Throws Failure for one that is of another graph, or twice there.
GraphNode& add_node(Driver& driver, Graph& graph, const std::vector<Edge>& dependencies,
                    NodeContents contents);
bool has_edge(const GraphNode& from, const GraphNode& to);
/// Throws Failure if there is such an edge, or the nodes are of different graphs.
void add_edge(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
/// Takes out an edge, whatever its data are. Throws Failure if there is none.
void remove_edge(GraphNode& from, GraphNode& to);

/// Takes out the graph's handle and those of all its nodes and of the graphs in them.
void forget_handles(Driver& driver, Graph& graph);
/// Takes the node out of its graph; the caller destroys it.
std::shared_ptr<GraphNode> take_node(Driver& driver, GraphNode& node);

/// Who sees the copy of a graph.
enum class Visibility : std::uint8_t {
  client,
  internal,
  replacement,  ///< nobody but the owner of the original, whose nodes the copies replace
};
/// A copy of all nodes, with those of graphs in nodes. Memory of the graph, conditional nodes and handles for
/// them cannot be copied for a client: throws Failure(CUDA_ERROR_NOT_SUPPORTED).
std::shared_ptr<Graph> clone(Driver& driver, const Graph& graph, Visibility visibility, bool owned);
/// The node of `graph`, or of a graph in one of its nodes, that is a copy of the node with that id; null:
/// none
GraphNode* find_copy(const Graph& graph, std::uint64_t origin);

/// Dependencies first, otherwise in the order in which they were added. Shorter than the graph: it has
/// cycles.
std::vector<GraphNode*> in_order(const Graph& graph);

/// True if `contents`, or nodes of a graph in it, allocate or free memory.
bool manages_memory(const NodeContents& contents);
/// True if only one executable graph of this graph may exist at a time, and no copy of the client's: nodes of
/// it, or of graphs in them, manage memory or are conditional.
bool is_single(const Graph& graph);
/// The graphs that belong to a node.
std::vector<std::shared_ptr<Graph>> graphs_of(const NodeContents& contents);
/// True if the graph is `other`, or in a node of it at any depth.
bool is_within(const Graph& graph, const Graph& other);

}  // namespace quern::cpu::device
