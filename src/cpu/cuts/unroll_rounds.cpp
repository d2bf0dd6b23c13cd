// SPDX-License-Identifier: Apache-2.0
// Unrolls loops over barriers and over shuffles whose iterations are known from the shape of the block, such
// as a reduction over blockDim.x / 2, blockDim.x / 4, ... threads. In each copy of the body it is known which
// warps and lanes take part, and by which distance a shuffle moves.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/structure.hpp"
#include "cpu/cuts/passes.hpp"
#include "cpu/ir/fold.hpp"

namespace quern::cpu::cuts {
namespace {

using analysis::Analysis;
using analysis::LanePatternKind;

constexpr unsigned kMaxRounds = 16;
/// Limit for the number of instructions of all copies of a loop.
constexpr std::size_t kMaxUnrolledInsts = 400;

/// A loop that its only edge to the outside leaves after `rounds` iterations.
struct Rounds {
  const analysis::Loop* loop = nullptr;
  ir::BlockId latch = ir::kNone;
  ir::BlockId exiting = ir::kNone;  ///< every iteration reaches it; its branch ends the loop
  unsigned stays = 0;               ///< index of the successor of `exiting` in the loop
  unsigned rounds = 0;
};

/// Runs a loop's constants.
class Counter {
 public:
  Counter(const ir::Function& function, const Analysis& facts) : function_(function), facts_(facts) {}

  std::optional<Rounds> count(const analysis::Loop& loop) const {
    std::optional<Rounds> found = shape_of(loop);
    if (!found) return std::nullopt;
    const ir::Value condition = terminator(found->exiting).args[0];
    Known known;
    const std::vector<ir::Value> phis = phis_of(loop.header);
    for (const ir::Value phi : phis) enter(known, known, phi, found->latch, /*first=*/true);
    for (found->rounds = 1; found->rounds <= kMaxRounds; ++found->rounds) {
      const std::optional<std::uint64_t> holds = value_of(condition, known, loop);
      if (!holds) return std::nullopt;
      if ((*holds != 0 ? 0u : 1u) != found->stays) return found;
      Known next;
      for (const ir::Value phi : phis) enter(next, known, phi, found->latch, /*first=*/false);
      known = std::move(next);
    }
    return std::nullopt;
  }

 private:
  using Known = std::map<ir::Value, std::uint64_t>;

  const ir::Inst& terminator(ir::BlockId id) const { return function_[function_.blocks[id].insts.back()]; }

  std::vector<ir::Value> phis_of(ir::BlockId id) const {
    std::vector<ir::Value> phis;
    for (const ir::Value value : function_.blocks[id].insts)
      if (function_[value].op == ir::Op::phi) phis.push_back(value);
    return phis;
  }

  std::optional<Rounds> shape_of(const analysis::Loop& loop) const {
    Rounds found{.loop = &loop, .latch = loop.blocks.back()};
    const std::vector<ir::BlockId>& entries = function_.blocks[loop.header].preds;
    if (entries.size() != 2 || std::ranges::find(entries, found.latch) == entries.end()) return std::nullopt;
    bool worth_it = false;
    for (const ir::BlockId id : loop.blocks) {
      for (const ir::Value value : function_.blocks[id].insts)
        worth_it |= ir::is_barrier(function_[value].op) || function_[value].op == ir::Op::shuffle;
      const std::vector<ir::BlockId>& succs = function_.blocks[id].succs;
      for (unsigned i = 0; i < succs.size(); ++i) {
        if (std::ranges::find(loop.blocks, succs[i]) != loop.blocks.end()) continue;
        if (found.exiting != ir::kNone || terminator(id).op != ir::Op::cond_br) return std::nullopt;
        if (function_.blocks[succs[i]].preds.size() != 1) return std::nullopt;
        found.exiting = id;
        found.stays = 1 - i;
      }
    }
    if (!worth_it || found.exiting == ir::kNone || found.exiting == found.latch ||
        !analysis::dominates(facts_, found.exiting, found.latch))
      return std::nullopt;
    return found;
  }

  /// The value of `phi` in the next iteration, if it is known from those of this one.
  void enter(Known& next, const Known& known, ir::Value phi, ir::BlockId latch, bool first) const {
    const ir::Block& header = function_.blocks[function_[phi].block];
    const unsigned from_latch = header.preds[0] == latch ? 0 : 1;
    const ir::Value operand = function_[phi].args[first ? 1 - from_latch : from_latch];
    const analysis::Loop* loop = &facts_.loops[facts_.loop_of[function_[phi].block]];
    if (const auto value = first ? constant(operand) : value_of(operand, known, *loop)) next[phi] = *value;
  }

  std::optional<std::uint64_t> constant(ir::Value value) const {
    const analysis::LanePattern& pattern = facts_.patterns[value];
    return pattern.kind == LanePatternKind::uniform ? pattern.constant : std::nullopt;
  }

  std::optional<std::uint64_t> value_of(ir::Value value, const Known& known,
                                        const analysis::Loop& loop) const {
    if (const auto found = known.find(value); found != known.end()) return found->second;
    if (const auto number = constant(value)) return number;
    const ir::Inst& inst = function_[value];
    if (inst.op == ir::Op::phi || inst.args.empty() || !ir::has_trait(inst.op, 'p') ||
        std::ranges::find(loop.blocks, inst.block) == loop.blocks.end())
      return std::nullopt;
    std::vector<std::uint64_t> args;
    for (const ir::Value arg : inst.args) {
      const std::optional<std::uint64_t> number = value_of(arg, known, loop);
      if (!number) return std::nullopt;
      args.push_back(*number);
    }
    const ir::Value measured = inst.args[inst.op == ir::Op::select ? 1 : 0];
    return ir::fold(inst, ir::bit_size(function_[measured].type), args);
  }

  const ir::Function& function_;
  const Analysis& facts_;
};

/// Replaces a loop by copies of its body. The first copy is the loop itself.
class Unroller {
 public:
  Unroller(ir::Function& function, const Rounds& rounds)
      : function_(function),
        header_(rounds.loop->header),
        latch_(rounds.latch),
        exiting_(rounds.exiting),
        behind_(function.blocks[rounds.exiting].succs[1 - rounds.stays]),
        inside_(function.blocks[rounds.exiting].succs[rounds.stays]),
        rounds_(rounds.rounds) {
    for (const ir::BlockId id : rounds.loop->blocks) blocks_.emplace_back(id, function.blocks[id]);
    for (const auto& [id, block] : blocks_)
      for (const ir::Value value : block.insts) insts_.emplace(value, function[value]);
    from_latch_ = function.blocks[header_].preds[0] == latch_ ? 0 : 1;
  }

  void run() {
    const ir::BlockId before = function_.blocks[header_].preds[1 - from_latch_];
    std::vector<Copy> copies(rounds_);
    for (unsigned round = 0; round < rounds_; ++round) make(copies, round);
    for (unsigned round = 0; round < rounds_; ++round) {
      for (const auto& [id, block] : blocks_)
        if (copies[round].blocks.contains(id)) fill(copies, round, id, block);
      function_.blocks[copies[round].blocks.at(header_)].preds = {
          round == 0 ? before : copies[round - 1].blocks.at(latch_)};
    }
    ir::Block& behind = function_.blocks[behind_];
    behind.preds = {copies.back().blocks.at(exiting_)};
    for (const ir::Value value : behind.insts)
      if (function_[value].op == ir::Op::phi)
        function_[value].args[0] = copies.back().of(function_[value].args[0]);
    for (const ir::Value phi : phis_) {  // no block contains them any more
      function_[phi].op = ir::Op::undef;
      function_[phi].args.clear();
    }
  }

 private:
  struct Copy {
    std::map<ir::Value, ir::Value> values;  ///< of the loop -> of the copy
    std::map<ir::BlockId, ir::BlockId> blocks;
    ir::Value of(ir::Value value) const {
      const auto found = values.find(value);
      return found == values.end() ? value : found->second;
    }
  };

  /// Creates the blocks and the instructions of a copy, without their contents.
  void make(std::vector<Copy>& copies, unsigned round) {
    Copy& copy = copies[round];
    const std::vector<ir::BlockId> reached = reached_in(round);
    for (const auto& [id, block] : blocks_) {
      if (std::ranges::find(reached, id) == reached.end()) continue;
      copy.blocks[id] = id;
      if (round != 0) {
        copy.blocks[id] = static_cast<ir::BlockId>(function_.blocks.size());
        function_.blocks.emplace_back();
      }
      for (const ir::Value value : block.insts) {
        const ir::Inst& inst = insts_.at(value);
        if (id == header_ && inst.op == ir::Op::phi) {
          if (round == 0) phis_.push_back(value);
          copy.values[value] =
              round == 0 ? inst.args[1 - from_latch_] : copies[round - 1].of(inst.args[from_latch_]);
        } else if (round != 0) {
          copy.values[value] = static_cast<ir::Value>(function_.insts.size());
          function_.insts.push_back(inst);
          function_.insts.back().block = copy.blocks[id];
        }
      }
    }
  }

  /// The blocks of the loop that an iteration may reach. The last one ends at `exiting_`.
  std::vector<ir::BlockId> reached_in(unsigned round) const {
    std::vector<ir::BlockId> reached{header_};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const ir::BlockId id = reached[i];
      if (id == exiting_ && round + 1 == rounds_) continue;
      for (const ir::BlockId next : succs_of(id))
        if (next != behind_ && std::ranges::find(reached, next) == reached.end()) reached.push_back(next);
    }
    return reached;
  }
  const std::vector<ir::BlockId>& succs_of(ir::BlockId id) const {
    return std::ranges::find(blocks_, id, [](const auto& each) { return each.first; })->second.succs;
  }

  /// `block`: the block of the loop before any change.
  void fill(const std::vector<Copy>& copies, unsigned round, ir::BlockId id, const ir::Block& block) {
    const Copy& copy = copies[round];
    const bool last = round + 1 == rounds_;
    ir::Block made;
    std::vector<bool> kept;
    for (const ir::BlockId pred : block.preds) {
      kept.push_back(copy.blocks.contains(pred) && !(last && pred == exiting_));
      if (kept.back()) made.preds.push_back(copy.blocks.at(pred));
    }
    for (const ir::Value value : block.insts) {
      const ir::Inst& from = insts_.at(value);
      if (id == header_ && from.op == ir::Op::phi) continue;
      made.insts.push_back(copy.of(value));
      ir::Inst& to = function_[made.insts.back()];
      to.args.clear();
      for (std::size_t i = 0; i < from.args.size(); ++i)
        if (from.op != ir::Op::phi || kept[i])
          to.args.push_back(from.args[i] == ir::kNone ? ir::kNone : copy.of(from.args[i]));
    }
    if (id == exiting_) {
      ir::Inst& branch = function_[made.insts.back()];
      branch.op = ir::Op::br;
      branch.args.clear();
      made.succs = {last ? behind_ : copy.blocks.at(inside_)};
    } else {
      for (const ir::BlockId next : block.succs)
        made.succs.push_back(next == header_ ? copies[round + 1].blocks.at(header_) : copy.blocks.at(next));
    }
    function_.blocks[copy.blocks.at(id)] = std::move(made);
  }

  ir::Function& function_;
  const ir::BlockId header_, latch_, exiting_, behind_, inside_;
  const unsigned rounds_;
  unsigned from_latch_ = 0;
  std::vector<std::pair<ir::BlockId, ir::Block>> blocks_;  ///< of the loop, before any change
  std::map<ir::Value, ir::Inst> insts_;                    ///< the same
  std::vector<ir::Value> phis_;                            ///< of the header
};

std::size_t size_of(const ir::Function& function, const analysis::Loop& loop) {
  std::size_t size = 0;
  for (const ir::BlockId id : loop.blocks) size += function.blocks[id].insts.size();
  return size;
}

/// Returns false if there is no loop to unroll.
bool unroll_one(ir::Function& function, const Analysis& facts) {
  const Counter counter(function, facts);
  for (auto loop = facts.loops.rbegin(); loop != facts.loops.rend(); ++loop) {  // inner before outer
    const std::optional<Rounds> rounds = counter.count(*loop);
    if (!rounds || rounds->rounds < 2 || rounds->rounds * size_of(function, *loop) > kMaxUnrolledInsts)
      continue;
    Unroller(function, *rounds).run();
    return true;
  }
  return false;
}

}  // namespace

void unroll_rounds(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (plan.dispatched || !plan.has_full || specialisation.threads() < 2 * kWarpSize) return;
  for (bool changed = true; changed;) {
    const auto facts =
        analysis::analyse(*plan.module, function, specialisation, analysis::Assumption::optimistic);
    changed = facts && unroll_one(function, *facts);  // analyse_uncut reports errors
  }
}

}  // namespace quern::cpu::cuts
