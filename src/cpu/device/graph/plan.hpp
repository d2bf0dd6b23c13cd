// SPDX-License-Identifier: Apache-2.0
// What is the same at every launch of an executable graph, made once: the grids of kernel nodes that follow
// each other, which one thread runs as a chain (docs/decisions/0063-chains-of-small-launches.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
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

  /// False: the context's limits have changed since.
  bool is_current() const noexcept;
};

/// A job that runs the chain. Throws Failure if its context has ended.
std::unique_ptr<engine::LaunchJob> make_job(const std::shared_ptr<Chain>& chain);

/// Nodes that are launched together: a chain, or one node.
struct Step {
  std::span<GraphNode* const> nodes;
  std::shared_ptr<Chain> chain;  ///< null: its node is launched by itself
};
using Plan = std::vector<Step>;

/// The steps that launch the enabled nodes of `order`, which must outlive them. Throws Failure.
Plan make_plan(Driver& driver, std::span<GraphNode* const> order);
/// False: a plan for the same nodes would differ by now.
bool is_current(const Plan& plan) noexcept;

}  // namespace quern::cpu::device
