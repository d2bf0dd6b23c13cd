// SPDX-License-Identifier: Apache-2.0
// A plan holds what is the same at every launch of an executable graph, so that it is made once: the grids of
// kernel nodes that follow each other. One thread runs them as a chain
// (docs/decisions/0063-launches-in-rows.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/graph.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::device {

/// Grids of one context with one time limit. One launch at a time uses it.
struct Chain {
  std::shared_ptr<ContextState> context;
  std::chrono::nanoseconds limit{0};
  // The context's limits for which the grids were made.
  std::uint64_t stack_bytes = 0;
  std::uint64_t heap_bytes = 0;
  std::vector<engine::Grid> grids;

  bool is_shared = false;  ///< other threads could run some blocks: the grids are known to be short

  /// False: the context's limits have changed since, or grids take longer.
  bool is_current() const noexcept;
};

/// A job that runs the chain. Throws Failure if its context has ended.
std::unique_ptr<engine::LaunchJob> make_job(const std::shared_ptr<Chain>& chain);

/// Nodes that are launched together: a chain, or one node.
struct PlanStep {
  std::span<GraphNode* const> nodes;
  std::shared_ptr<Chain> chain;  ///< null: its node is launched by itself
};
using Plan = std::vector<PlanStep>;

/// Nodes in an order in which they can be launched.
struct PlannedNodes {
  std::vector<GraphNode*> order;
  std::optional<Plan> plan;  ///< none: no launch since the nodes have changed
  std::uint64_t launches = 0;

  /// The plan for one more launch. Throws Failure.
  const Plan& next(Driver& driver);
};

}  // namespace quern::cpu::device
