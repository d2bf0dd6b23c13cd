// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/graph/exec.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cpu/device/exit.hpp"
#include "cpu/device/stream_values.hpp"

namespace quern::cpu::device {
namespace {

using Commands = std::vector<std::unique_ptr<engine::Command>>;

/// Also collects the conditional nodes. False: the graph, or a graph in it, has cycles.
bool append_order(const Graph& graph, std::vector<GraphNode*>& order,
                  std::vector<ConditionalNode>* conditional_nodes) {
  const std::vector<GraphNode*> nodes = in_order(graph);
  if (nodes.size() < graph.nodes.size()) return false;
  for (GraphNode* const node : nodes) {
    const auto* const child = std::get_if<ChildNode>(&node->contents);
    if (child == nullptr)
      order.push_back(node);
    else if (!append_order(*child->graph, order, conditional_nodes))
      return false;
    const auto* const conditional = std::get_if<ConditionalNode>(&node->contents);
    if (conditional == nullptr) continue;
    if (conditional_nodes != nullptr) conditional_nodes->push_back(*conditional);
    for (const auto& body : conditional->bodies)
      if (std::vector<GraphNode*> unused; !append_order(*body, unused, conditional_nodes)) return false;
  }
  return true;
}

engine::Command& append(Commands& commands, engine::Job job) {
  commands.push_back(std::make_unique<engine::Command>());
  commands.back()->job = std::move(job);
  return *commands.back();
}

struct LaunchBuilder;

/// The runs of a conditional node's bodies.
class BodySource final : public engine::CommandSource {
 public:
  BodySource(Driver& driver, std::shared_ptr<const GraphExec> exec, const ConditionalNode& node)
      : driver_(driver),
        exec_(std::move(exec)),
        type_(node.params.type),
        value_(reinterpret_cast<const std::uint32_t*>(node.params.handle)),
        bodies_(node.bodies) {}
  std::vector<std::unique_ptr<engine::Command>> next() override;

 private:
  /// Null: nothing is to be run.
  const Graph* chosen();

  Driver& driver_;
  const std::shared_ptr<const GraphExec> exec_;
  const CUgraphConditionalNodeType type_;
  const std::uint32_t* const value_;
  const std::vector<std::shared_ptr<Graph>> bodies_;
  std::map<const Graph*, PlannedNodes> known_;  ///< bodies that have run
  bool has_run_ = false;
};

/// The commands of a launch.
struct LaunchBuilder {
  Driver& driver;
  const std::shared_ptr<const GraphExec>& exec;
  GraphMemoryChanges& memory;
  Commands commands{};
  std::vector<std::pair<std::shared_ptr<EventObject>, std::shared_ptr<engine::EventPoint>>> records{};

  void operator()(const KernelNode& node) {
    require_not_ended(*node.work.function->module().context);
    append_commands(driver, node.work, commands);
  }
  void operator()(const CopyNode& node) {
    if (!is_empty(node.work)) append(commands, make_job(driver, node.work));
  }
  void operator()(const FillNode& node) {
    if (!is_empty(node.work)) append(commands, make_job(driver, node.work));
  }
  void operator()(const HostNode& node) {
    engine::HostJob job;
    job.function = node.params.fn;
    job.user = node.params.userData;
    append(commands, std::move(job));
  }
  void operator()(const ChildNode&) {}  // its nodes stand in the order
  void operator()(const EmptyNode&) {}
  void operator()(const EventWaitNode& node) {
    EventObject& event = *node.event;
    const base::LockGuard lock(event.mutex);
    const std::shared_ptr<engine::EventPoint> point = event.point;
    if (point == nullptr) return;
    append(commands, engine::WaitJob{}).dependencies.push_back({point->stream, point->sequence});
  }
  void operator()(const EventRecordNode& node) {
    auto point = std::make_shared<engine::EventPoint>();
    append(commands, engine::RecordJob{point});
    records.emplace_back(node.event, std::move(point));
  }
  void operator()(const AllocNode& node) {
    memory.allocate(*node.memory, (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0);
  }
  void operator()(const FreeNode& node) {
    append(commands, engine::WaitJob{}).keep = memory.free(node.pointer);
  }
  void operator()(const BatchNode& node) { append_commands(driver, node.operations, commands); }
  void operator()(const ConditionalNode& node) {
    append(commands, engine::SourceJob{std::make_shared<BodySource>(driver, exec, node)});
  }
  void add(const PlanStep& step) {
    // Memory that is mapped meanwhile has to be brought together between the nodes.
    if (step.chain != nullptr && driver.memory().mappings(step.chain->context->id).empty()) {
      append(commands, make_job(step.chain));
      return;
    }
    for (const GraphNode* node : step.nodes) std::visit(*this, node->contents);
  }
};

const Graph* BodySource::chosen() {
  const auto value = __atomic_load_n(value_, __ATOMIC_ACQUIRE);
  const bool first = !std::exchange(has_run_, true);
  switch (type_) {
    case CU_GRAPH_COND_TYPE_IF:
      if (!first) return nullptr;
      if (value != 0) return bodies_[0].get();
      return bodies_.size() > 1 ? bodies_[1].get() : nullptr;
    case CU_GRAPH_COND_TYPE_WHILE:
      return value != 0 ? bodies_[0].get() : nullptr;
    case CU_GRAPH_COND_TYPE_SWITCH:
      return first && value < bodies_.size() ? bodies_[value].get() : nullptr;
  }
  return nullptr;
}

std::vector<std::unique_ptr<engine::Command>> BodySource::next() {
  const base::LockGuard lock(graph_mutex());
  const Graph* const body = chosen();
  if (body == nullptr) return {};
  GraphMemoryChanges memory(driver_);
  LaunchBuilder builder{driver_, exec_, memory};
  const auto [known, is_new] = known_.try_emplace(body);  // its nodes do not change during a launch
  if (is_new) append_order(*body, known->second.order, nullptr);
  for (const PlanStep& step : known->second.next(driver_)) builder.add(step);
  memory.keep();
  // A loop whose body is empty and whose condition stays true does not end on a GPU either.
  if (builder.commands.empty()) append(builder.commands, engine::WaitJob{});
  return std::move(builder.commands);
}

void reset_conditions(Driver& driver, const GraphExec& exec, Commands& commands) {
  for (const ConditionalNode& node : exec.conditional_nodes) {
    if (!node.condition->assigned) continue;
    FillWork work;
    work.destination = node.params.handle;
    work.pattern = node.condition->initial;
    work.pattern_bytes = 4;
    work.width = 1;
    append(commands, make_job(driver, work));
  }
}

/// The places of nodes in their graph.
std::unordered_map<const GraphNode*, std::size_t> places_in(const Graph& graph) {
  std::unordered_map<const GraphNode*, std::size_t> places;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) places[graph.nodes[i].get()] = i;
  return places;
}

/// The places of the nodes at edges, in their order.
std::vector<std::size_t> places_of(const std::vector<Edge>& edges,
                                   const std::unordered_map<const GraphNode*, std::size_t>& places) {
  std::vector<std::size_t> found;
  for (const Edge& edge : edges) found.push_back(places.at(edge.node));
  std::ranges::sort(found);
  return found;
}

CUgraphExecUpdateResult compare_contents(const NodeContents& to, const NodeContents& from) {
  if (const auto* kernel = std::get_if<KernelNode>(&to)) {
    const auto& other = std::get<KernelNode>(from);
    if (kernel->work.function->module().context != other.work.function->module().context)
      return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    if (kernel->work.cooperative != other.work.cooperative)
      return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  }
  if (const auto* alloc = std::get_if<AllocNode>(&to))
    if (alloc->memory != std::get<AllocNode>(from).memory)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  if (const auto* free = std::get_if<FreeNode>(&to))
    if (free->pointer != std::get<FreeNode>(from).pointer)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

struct NodePair {
  GraphNode* to;
  const GraphNode* from;
};

/// Collects the pairs of nodes of equal graphs.
CUgraphExecUpdateResultInfo pair_up(Graph& to, const Graph& from, std::vector<NodePair>& pairs) {
  CUgraphExecUpdateResultInfo info{};
  if (to.nodes.size() != from.nodes.size()) {
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return info;
  }
  const auto target_places = places_in(to);
  const auto source_places = places_in(from);
  for (std::size_t i = 0; i < to.nodes.size(); ++i) {
    GraphNode& target = *to.nodes[i];
    const GraphNode& source = *from.nodes[i];
    if (type_of(target.contents) != type_of(source.contents))
      info.result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    else if (places_of(target.dependencies, target_places) != places_of(source.dependencies, source_places) ||
             places_of(target.dependents, target_places) != places_of(source.dependents, source_places))
      info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    else
      info.result = compare_contents(target.contents, source.contents);
    if (info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      info.errorNode = source.handle;
      return info;
    }
    if (auto* child = std::get_if<ChildNode>(&target.contents)) {
      info = pair_up(*child->graph, *std::get<ChildNode>(source.contents).graph, pairs);
    } else if (auto* conditional = std::get_if<ConditionalNode>(&target.contents)) {
      const auto& other = std::get<ConditionalNode>(source.contents);
      if (conditional->bodies.size() != other.bodies.size() ||
          conditional->params.handle != other.params.handle || conditional->params.type != other.params.type)
        info.result = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
      for (std::size_t b = 0; b < other.bodies.size() && info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS; ++b)
        info = pair_up(*conditional->bodies[b], *other.bodies[b], pairs);
    } else {
      pairs.push_back({&target, &source});
    }
    if (info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return info;
  }
  return info;
}

/// Says whether the body of a conditional node may have a node. Source: cuda.h, CUDA_CONDITIONAL_NODE_PARAMS.
bool may_be_in_body(const NodeContents& contents) {
  return std::holds_alternative<KernelNode>(contents) || std::holds_alternative<CopyNode>(contents) ||
         std::holds_alternative<FillNode>(contents) || std::holds_alternative<EmptyNode>(contents) ||
         std::holds_alternative<ChildNode>(contents) || std::holds_alternative<ConditionalNode>(contents);
}

/// False if the body of a conditional node has a node that it cannot have, also in a child graph.
bool has_sound_bodies(const Graph& graph, bool is_in_body = false) {
  return std::ranges::all_of(graph.nodes, [&](const std::shared_ptr<GraphNode>& node) {
    if (is_in_body && !may_be_in_body(node->contents)) return false;
    const bool makes_body = std::holds_alternative<ConditionalNode>(node->contents);
    return std::ranges::all_of(graphs_of(node->contents), [&](const std::shared_ptr<Graph>& inner) {
      return has_sound_bodies(*inner, is_in_body || makes_body);
    });
  });
}

}  // namespace

std::shared_ptr<GraphExec> instantiate(Driver& driver, const std::shared_ptr<Graph>& graph,
                                       std::uint64_t flags, InstantiateFailure& failure) {
  constexpr std::uint64_t kFlags =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  failure.result = CUDA_GRAPH_INSTANTIATE_ERROR;
  require((flags & ~kFlags) == 0);
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {  // kernels cannot launch graphs here
    require((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0);
    failure.result = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  for (const auto& [handle, condition] : graph->conditions)
    if (!condition->used) {
      failure.result = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
      fail(CUDA_ERROR_INVALID_VALUE);
    }
  require(has_sound_bodies(*graph));
  require(!is_single(*graph) || graph->instance.expired(), CUDA_ERROR_NOT_SUPPORTED);
  auto exec = std::make_shared<GraphExec>();
  exec->flags = flags;
  exec->graph = clone(driver, *graph, Visibility::internal, false);
  if (!append_order(*exec->graph, exec->nodes.order, &exec->conditional_nodes)) {
    failure.result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    fail(CUDA_ERROR_INVALID_VALUE);
  }
  graph->instance = exec;
  failure.result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return exec;
}

void launch(Driver& driver, const std::shared_ptr<GraphExec>& exec,
            const std::shared_ptr<engine::Stream>& stream) {
  GraphMemoryChanges memory(driver);
  const std::shared_ptr<const GraphExec> kept = exec;
  LaunchBuilder builder{driver, kept, memory};
  const Plan& plan = exec->nodes.next(driver);
  builder.commands.reserve(plan.size() + 2);
  if (exec->launched != nullptr && !exec->launched->done() && exec->launched->stream != stream)
    append(builder.commands, engine::WaitJob{})
        .dependencies.push_back({exec->launched->stream, exec->launched->sequence});
  reset_conditions(driver, *exec, builder.commands);
  for (const PlanStep& step : plan) builder.add(step);
  end_launches_at_exit();
  exec->launched = driver.scheduler().submit_all(stream, std::move(builder.commands), kept);
  memory.keep();
  for (auto& [event, point] : builder.records) {
    const base::LockGuard lock(event->mutex);
    event->point = std::move(point);
    event->captured = nullptr;
  }
}

namespace {

/// Both the memory operands at instantiation and the new ones must be one-dimensional, and their mappings
/// stay (cuda.h, cuGraphExecMemcpyNodeSetParams).
bool is_one_row(const CopyWork& work) { return work.height == 1 && work.depth == 1; }
bool is_on_host(Driver& driver, const CopySide& side) {
  const auto allocation = driver.memory().find(side.address);
  if (allocation == nullptr) return side.kind != AddressKind::device;
  return !engine::is_device_memory(allocation->kind);
}

}  // namespace

GraphNode& counterpart(const GraphExec& exec, const GraphNode& node) {
  GraphNode* const found = find_copy(*exec.graph, node.id);
  require(found != nullptr);
  return *found;
}

Detached detach_from_launch(Driver& driver, GraphExec& exec) {
  Detached detached{nullptr, std::exchange(exec.nodes.plan, std::nullopt)};
  if (exec.conditional_nodes.empty() || exec.launched == nullptr || exec.launched->done()) return detached;
  const auto copy = clone(driver, *exec.graph, Visibility::replacement, false);
  std::vector<GraphNode*> order;
  std::vector<ConditionalNode> conditional_nodes;
  append_order(*copy, order, &conditional_nodes);
  exec.nodes.order = std::move(order);
  exec.conditional_nodes = std::move(conditional_nodes);
  detached.graph = std::exchange(exec.graph, copy);
  return detached;
}

void exchange(Driver& driver, GraphNode& node, NodeContents& contents) {
  require(type_of(node.contents) == type_of(contents));
  if (const auto* const copy = std::get_if<CopyNode>(&node.contents)) {
    const auto& other = std::get<CopyNode>(contents);
    require(is_one_row(copy->work) && is_one_row(other.work));
    require(is_on_host(driver, copy->work.source) == is_on_host(driver, other.work.source));
    require(is_on_host(driver, copy->work.destination) == is_on_host(driver, other.work.destination));
  }
  if (const auto* const fill = std::get_if<FillNode>(&node.contents))
    require(fill->work.height == 1 && std::get<FillNode>(contents).work.height == 1);
  require(compare_contents(node.contents, contents) == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  std::swap(node.contents, contents);
}

CUgraphExecUpdateResultInfo update(Graph& exec, const Graph& graph, std::vector<NodeContents>& replaced) {
  std::vector<NodePair> pairs;
  const CUgraphExecUpdateResultInfo info = pair_up(exec, graph, pairs);
  if (info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return info;
  replaced.reserve(pairs.size());
  for (const NodePair& pair : pairs)
    replaced.push_back(std::exchange(pair.to->contents, pair.from->contents));
  return info;
}

}  // namespace quern::cpu::device
