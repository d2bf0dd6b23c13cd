// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/plan.hpp"

#include <algorithm>
#include <utility>

#include "cpu/emit/liveness.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::Analysis;
using analysis::Assumption;
using analysis::ShapeKind;

/// Moves each extract behind its producer: then the elements need no storage of their own.
void place_extracts(ir::Function& function) {
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

/// By block: the operation at which its lanes wait, now its first instruction. A barrier is alone with its
/// branch.
std::vector<ir::Value> cut_at_waits(ir::Function& function) {
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
      // Lanes that have met once stay together to the end of the block.
      if (!ir::is_barrier(inst.op) && !(ir::meets_lanes(inst.op) && inst.args.back() != members)) continue;
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

/// By block: the barrier that is now right before its branch.
std::vector<ir::Value> cut_after_barriers(ir::Function& function) {
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

/// Cuts `id` before its first assumed widening; returns those whose operands are known there, which are
/// tested together.
std::vector<ir::Value> cut_before_assumed(ir::Function& function, ir::BlockId id,
                                          std::vector<bool>& assumed) {
  const std::vector<ir::Value>& insts = function.blocks[id].insts;
  const auto first =
      std::find_if(insts.begin(), insts.end(), [&](ir::Value value) { return assumed[value]; });
  if (first == insts.end()) return {};
  std::vector<ir::Value> together;
  for (auto it = first; it != insts.end(); ++it) {
    const ir::Value operand = function[*it].args.empty() ? *it : function[*it].args[0];
    if (assumed[*it] && std::find(first, insts.end(), operand) == insts.end()) together.push_back(*it);
  }
  for (const ir::Value value : together) assumed[value] = false;
  cut(function, id, static_cast<std::size_t>(first - insts.begin()));
  return together;
}

void cut_before_assumed(ir::Function& function, std::vector<bool> assumed, Plan& plan) {
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id) {
    std::vector<ir::Value> tested = cut_before_assumed(function, id, assumed);
    plan.tested.resize(function.blocks.size());
    plan.barrier.resize(function.blocks.size(), ir::kNone);
    if (tested.empty()) continue;
    // The code after the barrier's cut is now in the new block: the barrier moves with its branch.
    plan.barrier[function.blocks[id].succs[0]] = std::exchange(plan.barrier[id], ir::kNone);
    plan.tested[id] = std::move(tested);
  }
}

/// Cuts blocks where the warps of the gang, or lanes of them, may diverge: each such place becomes a block of
/// its own, where a warp can start. A comparison that is computed only if scalars do not
/// decide (see bounds.hpp) moves with its branch.
void cut_where_gang_parts(ir::Function& function, const Analysis& facts, Plan& plan) {
  const auto blocks = static_cast<ir::BlockId>(function.blocks.size());
  const auto agreed = [&](ir::Value value) {
    return plan.gang.shared[value] && facts.shapes[value].kind == ShapeKind::uniform;
  };
  const std::vector<std::uint32_t> reads = count_reads(function);
  for (ir::BlockId id = 0; id < blocks; ++id) {
    const ir::Inst& last = function[function.blocks[id].insts.back()];
    const bool chooses = last.op == ir::Op::cond_br || last.op == ir::Op::switch_br;
    if (plan.tested[id].empty() && !(chooses && !agreed(last.args[0]))) continue;
    ir::BlockId alone = id;
    std::vector<ir::Value>& insts = function.blocks[id].insts;
    std::size_t kept = 1;
    const ir::Value comparison = bounded_branch(function, facts.shapes, reads, id).comparison;
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

bool all_tested(const Plan& plan) {
  std::vector<bool> tested(plan.function->insts.size(), false);
  for (const std::vector<ir::Value>& list : plan.tested)
    for (const ir::Value value : list) tested[value] = true;
  for (std::size_t i = 0; i < plan.full.assumed.size(); ++i)
    if (plan.full.assumed[i] && !tested[i]) return false;
  return true;
}

/// Runs both analyses of the function as it is now cut. Falls back to the safe one for both versions if the
/// cuts invalidated the assumptions of the optimistic one.
Expected<void> analyse_both(const ir::Module& module, const ir::Function& function,
                            const Specialisation& specialisation, Plan& plan) {
  auto safe = analysis::analyse(module, function, specialisation,
                                plan.dispatched ? Assumption::apart : Assumption::safe);
  if (!safe) return safe.errors();
  plan.masked = std::move(*safe);
  if (!plan.has_full) return {};
  auto optimistic = analysis::analyse(module, function, specialisation, Assumption::optimistic);
  if (!optimistic) return optimistic.errors();
  plan.full = std::move(*optimistic);
  if (!all_tested(plan)) {
    if (plan.dispatched) {
      plan.has_full = false;
      return {};
    }
    plan.full = plan.masked;
    for (std::vector<ir::Value>& list : plan.tested) list.clear();
    plan.gang = {};
    plan.parts.assign(plan.parts.size(), false);
  }
  return {};
}

bool divergent(const Plan& plan, ir::BlockId id) {
  const ir::Inst& last = (*plan.function)[plan.function->blocks[id].insts.back()];
  return !last.args.empty() && last.op != ir::Op::set_result &&
         plan.full.shapes[last.args[0]].kind != ShapeKind::uniform;
}

/// Lanes must not wait for their turn at such a block: a barrier before it in the order would miss them.
std::vector<bool> find_ends(const ir::Function& function, const std::vector<ir::BlockId>& order) {
  std::vector<bool> ends(function.blocks.size(), false);
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const ir::Block& block = function.blocks[*id];
    const ir::Op last = function[block.insts.back()].op;
    const auto is_silent = [&](ir::Value value) {
      return ir::has_trait(function[value].op, 'p') || value == block.insts.back();
    };
    const bool at_once =
        last == ir::Op::ret || last == ir::Op::exit || (last == ir::Op::br && ends[block.succs[0]]);
    ends[*id] = at_once && std::ranges::all_of(block.insts, is_silent);
  }
  return ends;
}

/// Marks the blocks where full code can switch to masked code, and all blocks reachable from them.
std::vector<bool> find_masked_needed(const Plan& plan) {
  const std::vector<ir::Block>& blocks = plan.function->blocks;
  std::vector<bool> needed(blocks.size(), false);
  std::vector<ir::BlockId> open;
  for (const ir::BlockId id : plan.full.order)
    if (divergent(plan, id) || !plan.tested[id].empty())
      open.insert(open.end(), blocks[id].succs.begin(), blocks[id].succs.end());
  while (!open.empty()) {
    const ir::BlockId id = open.back();
    open.pop_back();
    if (needed[id] || plan.ends[id]) continue;
    needed[id] = true;
    open.insert(open.end(), blocks[id].succs.begin(), blocks[id].succs.end());
  }
  return needed;
}

/// True if lanes waited before the block in a way that full code cannot.
bool leaves_wait(const Plan& plan, ir::BlockId id) {
  const std::vector<ir::BlockId>& preds = plan.function->blocks[id].preds;
  return preds.size() == 1 && !plan.full_needed[preds[0]];
}

/// Full code neither waits at barriers nor iterates in a loop that waits; lanes that wait let others run
/// first.
void find_waits(Plan& plan) {
  const std::size_t count = plan.function->blocks.size();
  plan.waits.resize(count, ir::kNone);
  plan.full_needed.assign(count, true);
  plan.tires.assign(count, false);
  if (!plan.dispatched) return;
  const Analysis& facts = plan.masked;
  const std::vector<bool> waiting = analysis::find_waiting_loops(*plan.function, facts);
  for (const ir::BlockId id : facts.order) {
    plan.full_needed[id] =
        plan.waits[id] == ir::kNone || !ir::is_barrier((*plan.function)[plan.waits[id]].op);
    plan.tires[id] = facts.irreducible;
    for (std::uint32_t loop = facts.loop_of[id]; loop != ir::kNone; loop = facts.loops[loop].parent) {
      if (!waiting[loop]) continue;
      plan.full_needed[id] = false;
      if (facts.loops[loop].header == id) plan.tires[id] = true;
    }
  }
}

/// True if masked code checks at this block whether all lanes are together again. In a loop only the header
/// does: entering the full version of a loop in its middle would keep LLVM from recognising it as a loop. A
/// loop with a barrier is none for LLVM anyway.
bool worth_reentering(const Plan& plan, ir::BlockId id, const Specialisation& specialisation) {
  const Analysis& facts = plan.dispatched ? plan.full : plan.masked;
  const ir::Block& block = plan.function->blocks[id];
  if (plan.dispatched && (!plan.full_needed[id] || id == 0 || leaves_wait(plan, id)))
    return plan.full_needed[id];
  if (!plan.masked_needed[id] || block.insts.size() <= 2) return false;
  const bool resumed = block.preds.size() == 1 && plan.barrier[block.preds[0]] != ir::kNone;
  if (resumed && specialisation.warps() > 1) return true;
  const std::uint32_t loop = facts.loop_of[id];
  if (loop != ir::kNone) return facts.loops[loop].header == id && !facts.loops[loop].divergent;
  return block.preds.size() > 1 || (block.preds.size() == 1 && facts.loop_of[block.preds[0]] != ir::kNone);
}

void find_versions(Plan& plan, const Specialisation& specialisation) {
  const std::size_t count = plan.function->blocks.size();
  plan.reenter.assign(count, false);
  if (!plan.has_full || plan.dispatched) {
    plan.masked_needed.assign(count, false);
    for (const ir::BlockId id : plan.masked.order) plan.masked_needed[id] = true;
    if (!plan.has_full) return;
  } else {
    plan.masked_needed = find_masked_needed(plan);
  }
  for (const ir::BlockId id : plan.masked.order)
    plan.reenter[id] = worth_reentering(plan, id, specialisation);
}

}  // namespace

Expected<Plan> make_plan(const ir::Module& module, ir::Function& function,
                         const Specialisation& specialisation) {
  Plan plan;
  plan.module = &module;
  plan.function = &function;
  plan.has_full = function.kernel && function.insts.size() <= kMaxTwoVersionInsts &&
                  specialisation.threads() >= kWarpLanes;
  auto dispatched = analysis::needs_dispatcher(module, function, specialisation);
  if (!dispatched) return dispatched.errors();
  plan.dispatched = *dispatched;
  place_extracts(function);
  if (plan.dispatched) {
    plan.waits = cut_at_waits(function);
    plan.barrier.assign(function.blocks.size(), ir::kNone);
    auto facts = analysis::analyse(module, function, specialisation, Assumption::apart);
    if (!facts) return facts.errors();
    plan.has_full &= !facts->irreducible;
  } else {
    plan.barrier = cut_after_barriers(function);
  }
  plan.has_barriers = std::any_of(plan.barrier.begin(), plan.barrier.end(),
                                  [](ir::Value value) { return value != ir::kNone; });
  plan.tested.resize(function.blocks.size());
  if (plan.has_full) {
    auto first = analysis::analyse(module, function, specialisation, Assumption::optimistic);
    if (!first) return first.errors();
    if (!plan.dispatched) plan.gang = choose_gang(function, *first, specialisation, plan.has_barriers);
    cut_before_assumed(function, first->assumed, plan);
    plan.parts.resize(function.blocks.size(), false);
    if (plan.gang.width > 1) cut_where_gang_parts(function, *first, plan);
  }
  plan.parts.resize(function.blocks.size(), false);
  if (auto done = analyse_both(module, function, specialisation, plan); !done) return done.errors();
  plan.ends = find_ends(function, plan.masked.order);
  find_waits(plan);
  find_versions(plan, specialisation);
  std::vector<const Analysis*> facts{&plan.masked};
  if (plan.has_full) facts.push_back(&plan.full);
  Liveness liveness = find_liveness(function, facts);
  plan.live_in = std::move(liveness.live_in);
  plan.crosses = std::move(liveness.crosses);
  plan.bounded.resize(function.blocks.size());
  if (!plan.has_full) return plan;
  const std::vector<std::uint32_t> reads = count_reads(function);
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id)
    if (plan.full_needed[id]) plan.bounded[id] = bounded_branch(function, plan.full.shapes, reads, id);
  return plan;
}

Plan masked_only(const Plan& plan) {
  Plan result = plan;
  result.has_full = false;
  result.gang = {};
  result.parts.assign(result.parts.size(), false);
  find_versions(result, {});
  return result;
}

}  // namespace quern::cpu::emit
