// SPDX-License-Identifier: Apache-2.0
// Passes that cut blocks. Each adds blocks to the function and records the reason in the Plan.
#include "cpu/cuts/passes.hpp"

#include <algorithm>
#include <utility>

#include "cpu/analysis/edges.hpp"
#include "cpu/cuts/tested.hpp"

namespace quern::cpu::cuts {
namespace {

using analysis::Analysis;
using analysis::LanePatternKind;

/// Moves the instructions of `id` from index `at` on into a new block and ends `id` with a branch to it.
ir::BlockId cut(ir::Function& function, ir::BlockId id, std::size_t at) {
  const auto rest = static_cast<ir::BlockId>(function.blocks.size());
  function.blocks.emplace_back();
  ir::Block& head = function.blocks[id];
  ir::Block& tail = function.blocks[rest];
  tail.insts.assign(head.insts.begin() + static_cast<std::ptrdiff_t>(at), head.insts.end());
  head.insts.resize(at);
  tail.succs = std::exchange(head.succs, {rest});
  tail.preds = {id};
  for (const ir::Value value : tail.insts) function[value].block = rest;
  for (const ir::BlockId successor : tail.succs)
    std::replace(function.blocks[successor].preds.begin(), function.blocks[successor].preds.end(), id, rest);

  ir::Inst branch;
  branch.op = ir::Op::br;
  branch.block = id;
  if (!head.insts.empty()) branch.location = function[head.insts.back()].location;
  function.blocks[id].insts.push_back(static_cast<ir::Value>(function.insts.size()));
  function.insts.push_back(std::move(branch));
  return rest;
}

/// Cuts `id` before its first assumed value. Returns the assumed values whose tested operands are known at
/// the cut; they are tested together.
std::vector<ir::Value> cut_before_assumed_of(ir::Function& function, ir::BlockId id, const Analysis& facts,
                                             std::vector<bool>& assumed) {
  const std::vector<ir::Value>& insts = function.blocks[id].insts;
  const auto first =
      std::find_if(insts.begin(), insts.end(), [&](ir::Value value) { return assumed[value]; });
  if (first == insts.end()) return {};
  std::vector<ir::Value> together;
  const auto is_behind = [&](ir::Value operand) {
    return std::find(first, insts.end(), operand) != insts.end();
  };
  for (auto it = first; it != insts.end(); ++it)
    if (assumed[*it] && std::ranges::none_of(tested_operands(function, facts, *it), is_behind))
      together.push_back(*it);
  for (const ir::Value value : together) assumed[value] = false;
  cut(function, id, static_cast<std::size_t>(first - insts.begin()));
  return together;
}

/// Returns, by block, the operation at which its lanes wait, which is now the block's first instruction. A
/// barrier is in a block that has only the barrier and its branch.
std::vector<ir::Value> cut_at_each_wait(ir::Function& function) {
  std::vector<ir::Value> waits;
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id) {  // the blocks that cut() adds are visited too
    waits.resize(function.blocks.size(), ir::kNone);
    const std::vector<ir::Value>& insts = function.blocks[id].insts;
    if (waits[id] != ir::kNone && ir::is_barrier(function[waits[id]].op)) {
      cut(function, id, 1);
      continue;
    }
    ir::Value members = waits[id] == ir::kNone ? ir::kNone : function[waits[id]].args.back();
    for (std::size_t i = 0; i < insts.size(); ++i) {
      const ir::Inst& inst = function[insts[i]];
      // Lanes that have synchronised once stay together until the end of the block.
      if (!ir::is_barrier(inst.op) && !(ir::syncs_lanes(inst) && inst.args.back() != members)) continue;
      if (waits[id] == insts[i]) continue;
      const ir::Value here = insts[i];
      const ir::BlockId rest = cut(function, id, i);
      waits.resize(function.blocks.size(), ir::kNone);
      waits[rest] = here;
      break;
    }
  }
  waits.resize(function.blocks.size(), ir::kNone);
  return waits;
}

/// Returns, by block, the barrier that is now directly before the block's branch.
std::vector<ir::Value> cut_after_each_barrier(ir::Function& function) {
  std::vector<ir::Value> barrier(function.blocks.size(), ir::kNone);
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id) {  // the blocks that cut() adds are visited too
    barrier.resize(function.blocks.size(), ir::kNone);
    const std::vector<ir::Value>& insts = function.blocks[id].insts;
    for (std::size_t i = 0; i < insts.size(); ++i)
      if (ir::is_barrier(function[insts[i]].op)) {
        barrier[id] = insts[i];
        cut(function, id, i + 1);
        break;
      }
  }
  barrier.resize(function.blocks.size(), ir::kNone);
  return barrier;
}

}  // namespace

void place_extracts(ir::Function& function, Plan&, const Specialisation&) {
  std::vector<std::vector<ir::Value>> of(function.insts.size());
  for (ir::Block& block : function.blocks)
    std::erase_if(block.insts, [&](ir::Value value) {
      if (function[value].op != ir::Op::extract) return false;
      of[function[value].args[0]].push_back(value);
      return true;
    });
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id) {
    std::vector<ir::Value> placed;
    for (const ir::Value value : function.blocks[id].insts) {
      placed.push_back(value);
      for (const ir::Value extract : of[value]) {
        function[extract].block = id;
        placed.push_back(extract);
      }
    }
    function.blocks[id].insts = std::move(placed);
  }
}

void cut_at_waits(ir::Function& function, Plan& plan, const Specialisation&) {
  if (!plan.dispatched) return;
  plan.waits = cut_at_each_wait(function);
  plan.barrier.assign(function.blocks.size(), ir::kNone);
  plan.tested.resize(function.blocks.size());
}

void cut_after_barriers(ir::Function& function, Plan& plan, const Specialisation&) {
  if (plan.dispatched) return;
  plan.barrier = cut_after_each_barrier(function);
  plan.has_barriers = std::ranges::any_of(plan.barrier, [](ir::Value value) { return value != ir::kNone; });
  plan.tested.resize(function.blocks.size());
}

void cut_before_assumed(ir::Function& function, Plan& plan, const Specialisation&) {
  if (!plan.has_full) return;
  std::vector<bool> assumed = plan.uncut.assumed;
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id) {
    std::vector<ir::Value> tested = cut_before_assumed_of(function, id, plan.uncut, assumed);
    plan.tested.resize(function.blocks.size());
    plan.barrier.resize(function.blocks.size(), ir::kNone);
    if (tested.empty()) continue;
    // The code after the barrier is now in the new block, and the barrier must be recorded for that block.
    plan.barrier[function.blocks[id].succs[0]] = std::exchange(plan.barrier[id], ir::kNone);
    plan.tested[id] = std::move(tested);
  }
}

void cut_where_gangs_part(ir::Function& function, Plan& plan, const Specialisation&) {
  plan.parts.resize(function.blocks.size(), false);
  if (plan.gang.width <= 1) return;
  const Analysis& facts = plan.uncut;
  const auto blocks = static_cast<ir::BlockId>(function.blocks.size());
  const std::vector<SerialRegion> regions =
      find_serial_regions(function, facts, plan.gang, plan.tested, nullptr);
  const std::vector<std::uint32_t> reads = count_reads(function);
  for (ir::BlockId id = 0; id < blocks; ++id) {
    const bool together = leave_together(function, facts.patterns, plan.gang, id);
    if (plan.tested[id].empty() && (together || regions[id].join != ir::kNone)) continue;
    ir::BlockId alone = id;
    std::vector<ir::Value>& insts = function.blocks[id].insts;
    std::size_t kept = 1;
    const ir::Value comparison = bounded_branch(function, facts.patterns, reads, id).comparison;
    if (comparison != ir::kNone) {
      const auto at = std::ranges::find(insts, comparison);
      std::rotate(at, at + 1, insts.end() - 1);
      kept = 2;
    }
    if (insts.size() > kept) {
      alone = cut(function, id, insts.size() - kept);
      plan.tested.resize(function.blocks.size());
      plan.tested[alone] = std::exchange(plan.tested[id], {});
    }
    plan.parts.resize(function.blocks.size(), false);
    plan.parts[alone] = true;
  }
  plan.barrier.resize(function.blocks.size(), ir::kNone);
  plan.gang.shared.resize(function.insts.size(), false);
}

}  // namespace quern::cpu::cuts
