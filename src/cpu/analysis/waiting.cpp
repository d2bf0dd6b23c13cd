// SPDX-License-Identifier: Apache-2.0
// Finds code that cannot run while the lanes of a warp are kept together: barriers that only some lanes reach
// or that are for a part of the block, and loops in which a lane waits for another thread.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "cpu/abi/limits.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/analysis/source_location.hpp"
#include "cpu/analysis/structure.hpp"

namespace quern::cpu::analysis {
namespace {

/// Decides for one loop whether it may iterate until memory changes.
class WaitingLoop {
 public:
  WaitingLoop(const ir::Function& function, const Analysis& analysis, std::uint32_t loop)
      : function_(function), analysis_(analysis), loop_(loop), rereads_(has(lets_others_write)) {}

  /// Returns the read of memory for whose change a lane waits, or nullopt for a loop that always ends.
  std::optional<ir::Value> find() {
    if (!may_wait()) return std::nullopt;
    seen_.resize(function_.insts.size());
    chosen_.resize(function_.blocks.size());
    for (const ir::BlockId block : analysis_.loops[loop_].blocks)
      if (leaves(block)) follow_branches_to(block);
    while (!work_.empty() && !found_) {
      const ir::Value value = work_.back();
      work_.pop_back();
      visit(value);
    }
    if (found_ && is_counted()) return std::nullopt;
    return found_;
  }

 private:
  bool may_wait() const {
    const auto reads = [&](const ir::Inst& inst) {
      return inst.op == ir::Op::atomic ||
             (inst.op == ir::Op::load && (ir::is_ordered(inst.attr) || rereads_));
    };
    return has(reads);
  }
  template <class Predicate>
  bool has(const Predicate& predicate) const {
    const std::vector<ir::BlockId>& blocks = analysis_.loops[loop_].blocks;
    return std::any_of(blocks.begin(), blocks.end(), [&](ir::BlockId block) {
      const std::vector<ir::Value>& insts = function_.blocks[block].insts;
      return std::any_of(insts.begin(), insts.end(),
                         [&](ir::Value value) { return predicate(function_[value]); });
    });
  }
  /// True if other threads may write between two reads: a plain load then counts as volatile.
  static bool lets_others_write(const ir::Inst& inst) {
    return inst.op == ir::Op::fence || inst.op == ir::Op::nanosleep;
  }
  bool inside(ir::Value value) const { return loop_contains(analysis_, loop_, function_[value].block); }
  bool leaves(ir::BlockId block) const {
    const std::vector<ir::BlockId>& succs = function_.blocks[block].succs;
    return std::any_of(succs.begin(), succs.end(),
                       [&](ir::BlockId to) { return !loop_contains(analysis_, loop_, to); });
  }
  ir::Value terminator(ir::BlockId block) const { return function_.blocks[block].insts.back(); }

  void follow(ir::Value value) {
    if (seen_[value] || !inside(value)) return;
    seen_[value] = true;
    work_.push_back(value);
  }
  /// Follows the branches that decide whether `block` runs in an iteration, and the branches on which these
  /// depend.
  void follow_branches_to(ir::BlockId block) {
    for (ir::BlockId above = block;; above = analysis_.idom[above]) {
      follow(terminator(above));
      if (above == analysis_.loops[loop_].header) return;
    }
  }
  void visit(ir::Value value) {
    const ir::Inst& inst = function_[value];
    if (is_retry(inst)) return;
    if (waits(value)) {
      found_ = value;
      return;
    }
    for (const ir::Value arg : inst.args) follow(arg);
    if (inst.op == ir::Op::phi) follow_choice(inst.block);
  }
  /// Follows the branches that decide over which edge a block is reached.
  void follow_choice(ir::BlockId block) {
    if (chosen_[block]) return;
    chosen_[block] = true;
    const bool header = block == analysis_.loops[loop_].header;
    const std::vector<ir::BlockId>& blocks = analysis_.loops[loop_].blocks;
    if (header) {
      const auto latch = [&](ir::BlockId pred) { return loop_contains(analysis_, loop_, pred); };
      const std::vector<ir::BlockId>& preds = function_.blocks[block].preds;
      if (std::count_if(preds.begin(), preds.end(), latch) < 2) return;
      for (const ir::BlockId at : blocks) follow(terminator(at));
      return;
    }
    const ir::BlockId above = analysis_.idom[block];
    for (std::uint32_t at = analysis_.position[above]; at < analysis_.position[block]; ++at)
      follow(terminator(analysis_.order[at]));
  }

  /// True for a read of an address that is the same in every iteration: it may return the same value forever.
  bool waits(ir::Value value) const {
    const ir::Inst& inst = function_[value];
    const bool reads =
        inst.op == ir::Op::load && (ir::is_ordered(inst.attr) || (rereads_ && !inst.attr.invariant));
    const bool atomic = inst.op == ir::Op::atomic && !always_changes(inst) && !is_retried_exchange(inst);
    return (reads || atomic) && !moves_on(inst.args[0]);
  }
  /// True if the atomic adds a number other than 0: it changes the memory itself (tickets, work queues).
  bool always_changes(const ir::Inst& inst) const {
    const LanePattern& operand = analysis_.patterns[inst.args[1]];
    return inst.attr.atomic == ir::AtomicOp::add && (operand.min > 0 || operand.max < 0);
  }
  /// True for a compare-and-swap that expects the value it read last: it fails only because another one
  /// succeeded.
  bool is_retried_exchange(const ir::Inst& inst) const {
    return inst.op == ir::Op::atomic && inst.attr.atomic == ir::AtomicOp::cas && reads_memory(inst.args[1]);
  }
  /// True for the comparison of such an exchange's result with the expected value.
  bool is_retry(const ir::Inst& inst) const {
    if (inst.op != ir::Op::icmp) return false;
    const auto pair = [&](ir::Value result, ir::Value expected) {
      const ir::Inst& exchange = function_[result];
      return is_retried_exchange(exchange) && exchange.args[1] == expected;
    };
    return pair(inst.args[0], inst.args[1]) || pair(inst.args[1], inst.args[0]);
  }
  /// True if the value is computed, within the loop, from the result of a load or an atomic.
  bool reads_memory(ir::Value value) const {
    return comes_from(value, [&](ir::Value at) {
      return function_[at].op == ir::Op::load || function_[at].op == ir::Op::atomic;
    });
  }
  /// True if the address is different in every iteration, because it depends on a value of the loop that
  /// always changes.
  bool moves_on(ir::Value address) const {
    return comes_from(address, [&](ir::Value at) {
      return function_[at].op == ir::Op::phi && function_[at].block == analysis_.loops[loop_].header &&
             !may_stay(at);
    });
  }
  /// True if `is_it` is true for the value, or for a value in the loop from which it is computed.
  template <class Predicate>
  bool comes_from(ir::Value value, Predicate is_it) const {
    std::vector<bool> seen(function_.insts.size());
    std::vector<ir::Value> work{value};
    while (!work.empty()) {
      const ir::Value at = work.back();
      work.pop_back();
      if (seen[at] || !inside(at)) continue;
      seen[at] = true;
      if (is_it(at)) return true;
      work.insert(work.end(), function_[at].args.begin(), function_[at].args.end());
    }
    return false;
  }
  /// True if the header's phi may be unchanged in the next iteration.
  bool may_stay(ir::Value phi) const {
    std::vector<bool> seen(function_.insts.size());
    std::vector<ir::Value> work;
    const std::vector<ir::BlockId>& preds = function_.blocks[function_[phi].block].preds;
    for (std::size_t i = 0; i < preds.size(); ++i)
      if (loop_contains(analysis_, loop_, preds[i])) work.push_back(function_[phi].args[i]);
    while (!work.empty()) {
      const ir::Value at = work.back();
      work.pop_back();
      if (at == phi || !inside(at)) return true;
      if (seen[at]) continue;
      seen[at] = true;
      const ir::Inst& inst = function_[at];
      if (inst.op == ir::Op::phi) work.insert(work.end(), inst.args.begin(), inst.args.end());
      if (inst.op == ir::Op::select) work.insert(work.end(), inst.args.begin() + 1, inst.args.end());
    }
    return false;
  }

  /// True if a counter ends the loop whatever memory contains.
  bool is_counted() const {
    const auto counts = [&](ir::Value value) {
      const ir::Inst& inst = function_[value];
      return inst.op == ir::Op::phi && inst.block == analysis_.loops[loop_].header && steps(value);
    };
    for (const ir::BlockId block : analysis_.loops[loop_].blocks) {
      const ir::Inst& branch = function_[terminator(block)];
      if (!leaves(block) || branch.op != ir::Op::cond_br || !runs_every_time(block)) continue;
      const ir::Inst& test = function_[branch.args[0]];
      if (test.op != ir::Op::icmp) continue;
      for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
        const ir::Inst& side = function_[test.args[which]];
        const bool counter =
            counts(test.args[which]) || (is_step(side) && (counts(side.args[0]) || counts(side.args[1])));
        if (counter) return true;
      }
    }
    return false;
  }
  bool runs_every_time(ir::BlockId block) const {
    const ir::BlockId header = analysis_.loops[loop_].header;
    const std::vector<ir::BlockId>& preds = function_.blocks[header].preds;
    return std::all_of(preds.begin(), preds.end(), [&](ir::BlockId pred) {
      return !loop_contains(analysis_, loop_, pred) || dominates(analysis_, block, pred);
    });
  }
  static bool is_step(const ir::Inst& inst) { return inst.op == ir::Op::iadd || inst.op == ir::Op::isub; }
  /// True if every back edge gives the phi the value phi + constant.
  bool steps(ir::Value phi) const {
    const std::vector<ir::BlockId>& preds = function_.blocks[function_[phi].block].preds;
    for (std::size_t i = 0; i < preds.size(); ++i) {
      if (!loop_contains(analysis_, loop_, preds[i])) continue;
      const ir::Inst& next = function_[function_[phi].args[i]];
      if (!is_step(next)) return false;
      const bool first = next.args[0] == phi;
      if (!first && (next.args[1] != phi || next.op == ir::Op::isub)) return false;
      const std::optional<std::uint64_t>& by = analysis_.patterns[next.args[first ? 1 : 0]].constant;
      if (!by || *by == 0) return false;
    }
    return true;
  }

  const ir::Function& function_;
  const Analysis& analysis_;
  std::uint32_t loop_;
  bool rereads_;
  std::vector<bool> seen_;    ///< by value
  std::vector<bool> chosen_;  ///< by block: follow_choice has visited it
  std::vector<ir::Value> work_;
  std::optional<ir::Value> found_;
};

Diagnostic divergent_barrier(const ir::Function& function, ir::Value barrier) {
  return unsupported(
      function, barrier,
      fmt::format("kernel '{}': the barrier at {} is in code that only some threads of a warp may reach; the "
                  "lanes of a warp that are kept together cannot wait there",
                  function.name, line_of(function, barrier)),
      "Move __syncthreads() out of the condition or loop, or make the condition the same for every thread of "
      "the block.");
}

Diagnostic waiting_loop(const ir::Function& function, const Loop& loop, ir::Value read) {
  const char* what = function[read].op == ir::Op::atomic ? "atomic operation" : "volatile or ordered load";
  return unsupported(
      function, read,
      fmt::format(
          "kernel '{}': the loop at {} goes on until the {} at {} sees what another thread writes (a lock or "
          "a spin "
          "wait); the lanes of a warp that are kept together cannot wait for one another",
          function.name, line_of(function, located_value(function, loop.header)), what,
          line_of(function, read)),
      "Replace the lock by atomic operations on the data (atomicAdd, or a compare-and-swap that retries with "
      "the value it "
      "read), or wait by ending the kernel and launching another.");
}

Diagnostic partial_barrier(const ir::Function& function, ir::Value barrier) {
  return unsupported(
      function, barrier,
      fmt::format(
          "kernel '{}': the barrier at {} has a thread count or a computed number, or is one at which "
          "threads arrive without waiting; the warps of the block do not come to it together",
          function.name, line_of(function, barrier)),
      "Use __syncthreads().");
}

/// True unless the barrier is for every thread of the block.
bool is_partial(const ir::Function& function, const ir::Inst& barrier) {
  const std::size_t id = barrier.op == ir::Op::barrier_reduce ? 1 : 0;
  return barrier.op == ir::Op::barrier_arrive || barrier.args.size() != id + 1 ||
         function[barrier.args[id]].op != ir::Op::constant || function[barrier.args[id]].imm >= ir::kBarriers;
}

/// True if the function has an operation at which a thread could wait for another.
bool names_others(const ir::Function& function) {
  return std::any_of(function.insts.begin(), function.insts.end(), [](const ir::Inst& inst) {
    return ir::is_barrier(inst.op) || inst.op == ir::Op::atomic || inst.op == ir::Op::fence ||
           inst.op == ir::Op::nanosleep || (inst.op == ir::Op::load && ir::is_ordered(inst.attr));
  });
}

void check_barrier(const ir::Function& function, const Analysis& analysis, ir::Value value,
                   Diagnostics& errors) {
  const ir::Inst& inst = function[value];
  if (!ir::is_barrier(inst.op)) return;
  if (is_partial(function, inst))
    errors.push_back(partial_barrier(function, value));
  else if (analysis.divergent_control[inst.block])
    errors.push_back(divergent_barrier(function, value));
}

}  // namespace

Expected<void> check_lockstep(const ir::Module&, const ir::Function& function, const Analysis& analysis) {
  Diagnostics errors;
  for (const ir::BlockId block : analysis.order)
    for (const ir::Value value : function.blocks[block].insts)
      check_barrier(function, analysis, value, errors);
  for (std::uint32_t loop = 0; loop < analysis.loops.size(); ++loop)
    if (const std::optional<ir::Value> read = WaitingLoop(function, analysis, loop).find())
      errors.push_back(waiting_loop(function, analysis.loops[loop], *read));
  if (!errors.empty()) return errors;
  return {};
}

std::vector<bool> find_waiting_loops(const ir::Function& function, const Analysis& analysis) {
  std::vector<bool> result;
  for (std::uint32_t loop = 0; loop < analysis.loops.size(); ++loop)
    result.push_back(WaitingLoop(function, analysis, loop).find().has_value());
  return result;
}

bool waits_in_calls(const ir::Module& module, const Specialisation& specialisation) {
  const auto meets = [](const ir::Inst& inst) { return ir::is_barrier(inst.op) || ir::syncs_lanes(inst); };
  return std::any_of(module.functions.begin(), module.functions.end(), [&](const ir::Function& function) {
    return !function.kernel && (std::any_of(function.insts.begin(), function.insts.end(), meets) ||
                                !needs_dispatcher(module, function, specialisation));
  });
}

Expected<bool> needs_dispatcher(const ir::Module& module, const ir::Function& function,
                                const Specialisation& specialisation) {
  Analysis graph;
  if (auto structure = find_structure(function, graph, true); !structure)
    return std::move(structure).errors();
  if (graph.irreducible || function.stack_bytes != 0) return true;
  if (!names_others(function)) return specialisation.dispatch;
  auto facts = analyse(module, function, specialisation, Assumption::safe);
  if (!facts) return std::move(facts).errors();
  if (auto lockstep = check_lockstep(module, function, *facts); !lockstep) {
    if (!function.kernel) return std::move(lockstep).errors();
    return true;
  }
  return specialisation.dispatch;
}

}  // namespace quern::cpu::analysis
