// SPDX-License-Identifier: Apache-2.0
// Passes that decide which versions the blocks of a function get. They follow the analyses of the function
// after the cuts.
#include <algorithm>
#include <utility>

#include "cpu/abi/warp_size.hpp"
#include "cpu/cuts/liveness.hpp"
#include "cpu/cuts/passes.hpp"
#include "cpu/cuts/tested.hpp"

namespace quern::cpu::cuts {
namespace {

using analysis::Analysis;
using analysis::Assumption;
using analysis::LanePatternKind;

bool all_tested(const Plan& plan) {
  std::vector<bool> tested(plan.function->insts.size(), false);
  for (const std::vector<ir::Value>& list : plan.tested)
    for (const ir::Value value : list) tested[value] = true;
  for (std::size_t i = 0; i < plan.full.assumed.size(); ++i)
    if (plan.full.assumed[i] && !tested[i]) return false;
  return true;
}

/// Used if the analysis after the cuts does not confirm the one that the cuts were made for.
void give_up_gang(Plan& plan) {
  plan.gang = {};
  plan.parts.assign(plan.parts.size(), false);
  plan.serial.clear();
  plan.lockstep.clear();
}

/// Used if the cuts have invalidated the assumptions of the optimistic analysis: full code cannot use it.
void give_up_assumptions(Plan& plan) {
  if (plan.dispatched) {
    plan.has_full = false;
    return;
  }
  plan.full = plan.masked;
  for (std::vector<ir::Value>& list : plan.tested) list.clear();
  give_up_gang(plan);
}

/// The blocks at which lanes have ended. Lanes must not be delayed at such a block: a barrier earlier in the
/// order would miss them.
std::vector<bool> ends_of(const ir::Function& function, const std::vector<ir::BlockId>& order) {
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

bool divergent(const Plan& plan, ir::BlockId id) {
  const ir::Inst& last = (*plan.function)[plan.function->blocks[id].insts.back()];
  return !last.args.empty() && last.op != ir::Op::set_result &&
         plan.full.patterns[last.args[0]].kind != LanePatternKind::uniform;
}

/// Marks the blocks where full code can switch to masked code, and all blocks reachable from them.
std::vector<bool> find_masked_needed(const Plan& plan) {
  const std::vector<ir::Block>& blocks = plan.function->blocks;
  std::vector<bool> needed(blocks.size(), false);
  std::vector<ir::BlockId> open;
  for (const ir::BlockId id : plan.full.order)
    if ((divergent(plan, id) && !plan.runs_region_alone(id)) || !plan.tested[id].empty())
      open.insert(open.end(), blocks[id].succs.begin(), blocks[id].succs.end());
  for (const LaneLoop& loop : plan.lane_loops) open.push_back(loop.header());
  while (!open.empty()) {
    const ir::BlockId id = open.back();
    open.pop_back();
    if (needed[id] || plan.ends[id]) continue;
    needed[id] = true;
    open.insert(open.end(), blocks[id].succs.begin(), blocks[id].succs.end());
  }
  return needed;
}

/// True if lanes waited before the block in a way that full code does not support.
bool leaves_wait(const Plan& plan, ir::BlockId id) {
  const std::vector<ir::BlockId>& preds = plan.function->blocks[id].preds;
  return preds.size() == 1 && !plan.full_needed[preds[0]];
}

/// True if masked code checks at this block whether all lanes are together again. In a loop, only the header
/// does: an entry into the middle of a full loop would keep LLVM from recognising it as a loop. LLVM does not
/// recognise a loop with a barrier anyway.
bool worth_reentering(const Plan& plan, ir::BlockId id, const Specialisation& specialisation) {
  const Analysis& facts = plan.dispatched ? plan.full : plan.masked;
  const ir::Block& block = plan.function->blocks[id];
  if (plan.gang.width <= 1 && !plan.lockstep.empty() && !plan.lockstep[id]) return false;
  if (plan.dispatched && (!plan.full_needed[id] || id == 0 || leaves_wait(plan, id)))
    return plan.full_needed[id];
  if (!plan.masked_needed[id] || !plan.full_needed[id]) return false;
  const bool resumed = block.preds.size() == 1 && plan.barrier[block.preds[0]] != ir::kNone;
  if (resumed && specialisation.warps() > 1) return true;  // also a short block: what follows may be long
  if (block.insts.size() <= 2) return false;
  const std::uint32_t loop = facts.loop_of[id];
  if (loop != ir::kNone) return facts.loops[loop].header == id && !facts.loops[loop].divergent;
  return block.preds.size() > 1 || (block.preds.size() == 1 && facts.loop_of[block.preds[0]] != ir::kNone);
}

void choose(Plan& plan, const Specialisation& specialisation) {
  const std::size_t count = plan.function->blocks.size();
  plan.reenter.assign(count, false);
  if (!plan.has_full || plan.dispatched) {
    plan.masked_needed.assign(count, false);
    for (const ir::BlockId id : plan.masked.order) plan.masked_needed[id] = true;
  } else {
    plan.masked_needed = find_masked_needed(plan);
  }
  for (const LaneLoop& loop : plan.lane_loops)
    for (const ir::BlockId id : loop.blocks) plan.masked_needed[id] = id == loop.header();
  if (!plan.has_full) return;
  for (const ir::BlockId id : plan.masked.order)
    plan.reenter[id] = worth_reentering(plan, id, specialisation);
}

}  // namespace

Expected<void> choose_dispatch(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  const Expected<bool> dispatched = analysis::needs_dispatcher(*plan.module, function, specialisation);
  if (!dispatched) return dispatched.errors();
  plan.dispatched = *dispatched;
  plan.has_full = function.kernel && function.insts.size() <= kMaxTwoVersionInsts &&
                  specialisation.threads() >= kWarpSize && specialisation.opt_level != kQuickLevel;
  return {};
}

Expected<void> analyse_uncut(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (plan.dispatched) {
    const auto facts = analysis::analyse(*plan.module, function, specialisation, Assumption::apart);
    if (!facts) return facts.errors();
    plan.has_full &= !facts->irreducible;
  }
  if (!plan.has_full) return {};
  auto facts = analysis::analyse(*plan.module, function, specialisation, Assumption::optimistic);
  if (!facts) return facts.errors();
  plan.uncut = std::move(*facts);
  return {};
}

void choose_gangs(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (plan.has_full && !plan.dispatched)
    plan.gang = choose_gang(function, plan.uncut, specialisation, plan.has_barriers);
}

Expected<void> analyse_masked(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  plan.uncut = {};
  auto safe = analysis::analyse(*plan.module, function, specialisation,
                                plan.dispatched ? Assumption::apart : Assumption::safe);
  if (!safe) return safe.errors();
  plan.masked = std::move(*safe);
  return {};
}

Expected<void> analyse_full(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (!plan.has_full) return {};
  auto optimistic = analysis::analyse(*plan.module, function, specialisation, Assumption::optimistic);
  if (!optimistic) return optimistic.errors();
  plan.full = std::move(*optimistic);
  if (!all_tested(plan)) give_up_assumptions(plan);
  return {};
}

void find_serial_code(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (plan.dispatched || !plan.has_full) return;
  KnownLanes known(function, plan.full.patterns, specialisation);
  const auto find = [&] {
    plan.serial = find_serial_regions(function, plan.full, plan.gang, plan.tested, &known);
  };
  find();
  const auto parts_unprepared = [&](ir::BlockId id) {
    return plan.serial[id].join == ir::kNone && !plan.parts[id] &&
           !leave_together(function, plan.full.patterns, plan.gang, id);
  };
  if (plan.gang.width > 1 && std::ranges::any_of(plan.full.order, parts_unprepared)) {
    give_up_gang(plan);
    find();
  }
  plan.lockstep = find_lockstep_blocks(function, plan.serial);
}

void find_ends(ir::Function& function, Plan& plan, const Specialisation&) {
  plan.ends = ends_of(function, plan.masked.order);
}

void find_waits(ir::Function&, Plan& plan, const Specialisation&) {
  const std::size_t count = plan.function->blocks.size();
  plan.waits.resize(count, ir::kNone);
  plan.full_needed.assign(count, true);
  plan.spins.assign(count, false);
  for (const LaneLoop& loop : plan.lane_loops)
    for (const ir::BlockId id : loop.blocks) plan.full_needed[id] = false;
  if (!plan.dispatched) return;
  const Analysis& facts = plan.masked;
  const std::vector<bool> waiting = analysis::find_waiting_loops(*plan.function, facts);
  for (const ir::BlockId id : facts.order) {
    plan.full_needed[id] =
        plan.waits[id] == ir::kNone || !ir::is_barrier((*plan.function)[plan.waits[id]].op);
    plan.spins[id] = facts.irreducible;
    for (std::uint32_t loop = facts.loop_of[id]; loop != ir::kNone; loop = facts.loops[loop].parent) {
      if (!waiting[loop]) continue;
      plan.full_needed[id] = false;
      if (facts.loops[loop].header == id) plan.spins[id] = true;
    }
  }
}

void choose_versions(ir::Function&, Plan& plan, const Specialisation& specialisation) {
  choose(plan, specialisation);
}

void find_live_values(ir::Function& function, Plan& plan, const Specialisation&) {
  std::vector<const Analysis*> facts{&plan.masked};
  if (plan.has_full) facts.push_back(&plan.full);
  std::vector<std::vector<ir::Value>> read_by_tests(function.blocks.size());
  for (ir::BlockId id = 0; id < plan.tested.size() && plan.has_full; ++id)
    for (const ir::Value value : plan.tested[id]) {
      if (!plan.full.assumed[value]) continue;
      const std::vector<ir::Value> operands = tested_operands(function, plan.full, value);
      read_by_tests[id].insert(read_by_tests[id].end(), operands.begin(), operands.end());
    }
  Liveness liveness = find_liveness(function, facts, read_by_tests);
  plan.live_in = std::move(liveness.live_in);
  plan.crosses = std::move(liveness.crosses);
}

void find_bounded_branches(ir::Function& function, Plan& plan, const Specialisation&) {
  plan.bounded.resize(function.blocks.size());
  plan.bounded_together.resize(function.blocks.size());
  if (!plan.has_full) return;
  const std::vector<std::uint32_t> reads = count_reads(function);
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id)
    if (plan.full_needed[id]) {
      plan.bounded[id] = bounded_branch(function, plan.full.patterns, reads, id);
      plan.bounded_together[id] = bounded_branches(function, plan.full.patterns, id);
    }
}

Plan masked_only(const Plan& plan) {
  Plan result = plan;
  result.has_full = false;
  give_up_gang(result);
  result.eager.assign(result.eager.size(), ir::kNone);
  choose(result, {});
  return result;
}

}  // namespace quern::cpu::cuts
