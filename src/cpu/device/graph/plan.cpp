// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/graph/plan.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "cpu/device/launch.hpp"

namespace quern::cpu::device {
namespace {

/// The launch of a node that may be part of a chain; null: it may not.
const LaunchWork* chained(Driver& driver, const GraphNode& node) {
  const auto* const kernel = std::get_if<KernelNode>(&node.contents);
  return kernel != nullptr && may_repeat(driver, kernel->work) ? &kernel->work : nullptr;
}

bool belongs(const Chain& chain, const LaunchWork& work) {
  return work.function->module().context == chain.context && work.limit == chain.limit;
}

std::shared_ptr<Chain> begin_chain(const LaunchWork& work) {
  auto chain = std::make_shared<Chain>();
  chain->context = work.function->module().context;
  chain->limit = work.limit;
  chain->stack_bytes = chain->context->stack_bytes.load(std::memory_order_relaxed);
  chain->heap_bytes = chain->context->heap_bytes.load(std::memory_order_relaxed);
  return chain;
}

/// The steps that launch the enabled nodes of `order`, which must outlive them.
Plan make_plan(Driver& driver, std::span<GraphNode* const> order) {
  Plan plan;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!order[i]->enabled) continue;
    const LaunchWork* const work = chained(driver, *order[i]);
    if (work == nullptr) {
      plan.push_back({order.subspan(i, 1), nullptr});
      continue;
    }
    PlanStep* last = plan.empty() ? nullptr : &plan.back();
    const bool follows = last != nullptr && last->chain != nullptr && belongs(*last->chain, *work) &&
                         &last->nodes.back() + 1 == &order[i];
    if (!follows) last = &plan.emplace_back(order.subspan(i, 0), begin_chain(*work));
    last->nodes = {last->nodes.data(), last->nodes.size() + 1};
    engine::Grid& grid = last->chain->grids.emplace_back();
    fill_grid(grid, driver, *work);
    last->chain->is_shared |= grid.block_count > 1 && driver.scheduler().worker_count() > 1;
  }
  return plan;
}

bool is_current(const Plan& plan) noexcept {
  return std::ranges::all_of(
      plan, [](const PlanStep& step) { return step.chain == nullptr || step.chain->is_current(); });
}

}  // namespace

bool Chain::is_current() const noexcept {
  return stack_bytes == context->stack_bytes.load(std::memory_order_relaxed) &&
         heap_bytes == context->heap_bytes.load(std::memory_order_relaxed) &&
         (!is_shared || std::ranges::all_of(grids, &is_still_short));
}

std::unique_ptr<engine::LaunchJob> make_job(const std::shared_ptr<Chain>& chain) {
  require_not_ended(*chain->context);
  auto job = std::make_unique<engine::LaunchJob>();
  job->chain = chain->grids;
  job->grid_id = take_grid_ids(chain->grids.size());
  job->alone = true;
  job->limit = chain->limit;
  job->keep_alive = chain;
  return job;
}

const Plan& PlannedNodes::next(Driver& driver) {
  // The device learns from each launch how long kernels take, so the first launches make the plan anew.
  const bool may_know_more = std::has_single_bit(++launches);
  if (!plan || may_know_more || !is_current(*plan)) plan = make_plan(driver, order);
  return *plan;
}

}  // namespace quern::cpu::device
