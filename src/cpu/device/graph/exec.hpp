// SPDX-License-Identifier: Apache-2.0
// Executable graphs.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/graph.hpp"
#include "cpu/device/graph/plan.hpp"
#include "cpu/engine/stream.hpp"

namespace quern::cpu::device {

/// Guarded by graph_mutex().
struct GraphExec {
  std::shared_ptr<Graph> graph;  ///< a copy that nobody else has
  std::uint64_t flags = 0;
  PlannedNodes nodes;                              ///< with those of child graphs, dependencies first
  std::vector<ConditionalNode> conditional_nodes;  ///< all, those in bodies too
  std::shared_ptr<engine::EventPoint> launched;    ///< the end of the last launch; null: none
};

/// What cuGraphInstantiateWithParams tells of a failure.
struct InstantiateFailure {
  CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  CUgraphNode node = nullptr;
};
/// Throws Failure after filling in `failure`.
std::shared_ptr<GraphExec> instantiate(Driver& driver, const std::shared_ptr<Graph>& graph,
                                       std::uint64_t flags, InstantiateFailure& failure);

/// Queues all nodes. A launch begins when the one before has ended. Throws Failure.
void launch(Driver& driver, const std::shared_ptr<GraphExec>& exec,
            const std::shared_ptr<engine::Stream>& stream);

/// The node of `exec` that is a copy of `node`. Throws Failure if there is none.
GraphNode& counterpart(const GraphExec& exec, const GraphNode& node);

/// Holds what an executable graph had before its nodes changed.
struct Detached {
  std::shared_ptr<Graph> graph;  ///< null: it has kept it
  std::optional<Plan> plan;
};
/// To be called before nodes change: a launch that has not ended still reads the bodies of conditional nodes,
/// so it keeps them and `exec` gets copies. Returns what `exec` had; to be destroyed after the lock.
Detached detach_from_launch(Driver& driver, GraphExec& exec);

/// Exchanges what a node does. Throws Failure for a change that CUDA does not allow.
void exchange(Driver& driver, GraphNode& node, NodeContents& contents);

/// Takes over what the nodes of `graph` do, if it has the same nodes and dependencies; otherwise changes
/// nothing. `replaced`: what the nodes did.
CUgraphExecUpdateResultInfo update(Graph& exec, const Graph& graph, std::vector<NodeContents>& replaced);

}  // namespace quern::cpu::device
