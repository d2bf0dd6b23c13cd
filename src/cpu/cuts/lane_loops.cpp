// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/lane_loops.hpp"

#include <algorithm>
#include <cstdlib>

#include "cpu/analysis/counters.hpp"
#include "cpu/analysis/regular.hpp"
#include "cpu/cuts/passes.hpp"

namespace quern::cpu::cuts {
namespace {

using analysis::Analysis;
using analysis::LanePattern;
using analysis::LanePatternKind;

/// Loops with more instructions are not looked at.
constexpr std::size_t kMaxInsts = 256;
/// A loop with one gather costs as much in lockstep as lane by lane.
constexpr unsigned kMinGathers = 2;
/// An estimate: a gather of 32 elements takes about as long as four other operations take lane by lane.
/// Without AVX-512, vectors save less: theirs are half as wide, spilled more often, and have no 64-bit
/// products.
constexpr unsigned max_other_per_gather(Isa isa) { return isa == Isa::avx512 ? 4 : 8; }
/// Divisions, roots and approximations: vectors compute them much faster than scalars.
constexpr unsigned kSlowWeight = 8;

/// Loops of at most so many iterations have no branches between these. What NVRTC leaves over of a loop that
/// it unrolls by four has three, and no processor foresees how many of them each lane takes.
constexpr std::int64_t kMaxCopies = 4;
constexpr std::size_t kMaxCopiedInsts = 96;
/// Instructions beside the loops, and blocks, of loops that follow each other.
constexpr std::size_t kMaxBetween = 40;
constexpr std::uint32_t kMaxJoinedBlocks = 24;

/// Blocks of which lanes enter only the first.
class Region {
 public:
  Region(const ir::Function& function, const Analysis& facts, std::vector<ir::BlockId> blocks)
      : function_(function), facts_(facts), blocks_(std::move(blocks)) {}

  std::size_t size() const {
    std::size_t count = 0;
    for (const ir::BlockId block : blocks_) count += function_.blocks[block].insts.size();
    return count;
  }

  bool allows_lanes_in_turn() const {
    return has_plain_exits() && all_insts([&](ir::Value value) { return may_run_alone(function_[value]); });
  }

  LaneLoop found() const {
    LaneLoop result{blocks_, {}, {}};
    const auto read = [&](ir::Value value) {
      if (!contains(function_[value].block)) result.reads.push_back(value);
    };
    for (const ir::BlockId block : blocks_) {
      for (const ir::Value value : function_.blocks[block].insts) {
        if (function_[value].op == ir::Op::phi && block == blocks_.front()) continue;
        std::ranges::for_each(function_[value].args, read);
      }
      for_each_successor_phi(block, [&](ir::Value, ir::Value operand) { read(operand); });
    }
    std::ranges::sort(result.reads);
    result.reads.erase(std::unique(result.reads.begin(), result.reads.end()), result.reads.end());
    return result;
  }

 protected:
  bool contains(ir::BlockId block) const { return std::ranges::find(blocks_, block) != blocks_.end(); }

  template <class Predicate>
  bool all_insts(const Predicate& holds) const {
    return std::ranges::all_of(blocks_, [&](ir::BlockId block) {
      return std::ranges::all_of(function_.blocks[block].insts, holds);
    });
  }

  /// Calls `use` for each phi of a successor of `block`, with its operand on that edge.
  template <class Use>
  void for_each_successor_phi(ir::BlockId block, const Use& use) const {
    for (const ir::BlockId successor : function_.blocks[block].succs) {
      const ir::Block& next = function_.blocks[successor];
      for (const ir::Value phi : next.insts) {
        if (function_[phi].op != ir::Op::phi) break;
        for (std::size_t i = 0; i < next.preds.size(); ++i)
          if (next.preds[i] == block) use(phi, function_[phi].args[i]);
      }
    }
  }

  /// Pure operations on the lane's own values, and loads that need no order.
  static bool may_run_alone(const ir::Inst& inst) {
    switch (inst.op) {
      case ir::Op::br:
      case ir::Op::cond_br:
        return true;
      case ir::Op::load:
        return !ir::is_ordered(inst.attr) && inst.attr.space != ir::Space::local;
      // These differ between lanes without operands that do, or belong to a call.
      case ir::Op::special:
      case ir::Op::arg:
      case ir::Op::local_address:
        return false;
      // Each lane has local memory of its own.
      case ir::Op::to_generic:
      case ir::Op::from_generic:
      case ir::Op::is_space:
        return inst.attr.space != ir::Space::local;
      default:
        return ir::has_trait(inst.op, 'p');
    }
  }

  /// The phis behind the loop have an element for each lane, or one value for all.
  bool has_plain_exits() const {
    return std::ranges::all_of(blocks_, [&](ir::BlockId block) {
      bool plain = true;
      for_each_successor_phi(block, [&](ir::Value phi, ir::Value operand) {
        if (contains(function_[phi].block)) return;
        const LanePatternKind kind = facts_.patterns[phi].kind;
        plain &=
            kind == LanePatternKind::varying ||
            (kind == LanePatternKind::uniform && facts_.patterns[operand].kind == LanePatternKind::uniform);
      });
      return plain;
    });
  }

  static bool is_slow(ir::Op op) {
    switch (op) {
      case ir::Op::sdiv:
      case ir::Op::udiv:
      case ir::Op::srem:
      case ir::Op::urem:
      case ir::Op::fdiv:
      case ir::Op::fsqrt:
      case ir::Op::frcp:
      case ir::Op::approx:
        return true;
      default:
        return false;
    }
  }

  const ir::Function& function_;
  const Analysis& facts_;
  std::vector<ir::BlockId> blocks_;
};

class Loop : public Region {
 public:
  Loop(const ir::Function& function, const Analysis& facts, const analysis::Loop& loop)
      : Region(function, facts, loop.blocks), divergent_(loop.divergent) {}

  bool allows_lanes_in_turn() const { return divergent_ && Region::allows_lanes_in_turn(); }

  /// `patterns`: those of the version in which the lanes would run in lockstep.
  bool is_profitable(const std::vector<LanePattern>& patterns, Isa isa) const {
    return leaves_by_data(patterns) && gathers_most(patterns, isa) && !chases_pointers();
  }

  LaneLoop found() const {
    LaneLoop result = Region::found();
    if (const unsigned count = copies(); count > 1)
      result.short_loops.push_back({blocks_.front(), blocks_.back(), count});
    return result;
  }

 private:
  /// LaneLoop::Short
  unsigned copies() const {
    const ir::Block& header = function_.blocks[blocks_.front()];
    const ir::Block& latch = function_.blocks[blocks_.back()];
    if (blocks_.size() > 2 || function_[header.insts.back()].op != ir::Op::cond_br) return 1;
    if (blocks_.size() == 2 && latch.insts.size() != 1) return 1;
    std::int64_t most = kMaxCopies + 1;
    for (const ir::Value phi : header.insts) {
      if (function_[phi].op != ir::Op::phi) break;
      if (const auto counter = analysis::find_counter(function_, facts_, phi))
        most = std::min(most, iterations_of(*counter));
    }
    const bool pays =
        most > 1 && most <= kMaxCopies && static_cast<std::size_t>(most) * size() <= kMaxCopiedInsts;
    return pays ? static_cast<unsigned>(most) : 1;
  }

  /// At most so many, unless the counter wraps; more than kMaxCopies if nothing is known.
  std::int64_t iterations_of(const analysis::Counter& counter) const {
    constexpr std::int64_t kFar = std::int64_t{1} << 32;
    std::int64_t most = kMaxCopies + 1;
    for (const analysis::Counter::Test& test : counter.tests) {
      const LanePattern &start = facts_.patterns[counter.start], &limit = facts_.patterns[test.limit];
      const bool down = counter.step < 0;
      const std::int64_t from = down ? limit.min : start.min, to = down ? start.max : limit.max;
      if (from < -kFar || to > kFar || to < from) continue;
      const std::int64_t step = std::abs(counter.step), tested = test.on_next ? 0 : 1;
      most = std::min(most, (to - from + step - 1) / step + tested);
    }
    return most;
  }

  bool leaves_by_data(const std::vector<LanePattern>& patterns) const {
    return std::ranges::any_of(blocks_, [&](ir::BlockId block) {
      const ir::Inst& last = function_[function_.blocks[block].insts.back()];
      return last.op == ir::Op::cond_br && facts_.divergent_branch[block] &&
             !std::ranges::all_of(function_.blocks[block].succs,
                                  [&](ir::BlockId next) { return contains(next); }) &&
             analysis::depends_on_data(function_, patterns, last.args[0]);
    });
  }

  /// True if the lanes of the load read places that are far apart.
  static bool is_gather(const std::vector<LanePattern>& patterns, const ir::Inst& load) {
    const LanePattern& address = patterns[load.args[0]];
    if (address.kind == LanePatternKind::uniform) return false;
    if (address.kind != LanePatternKind::affine) return true;
    const std::int64_t bytes = std::int64_t{ir::byte_size(load.type)} * load.attr.count;
    return std::ranges::any_of(address.terms, [&](const analysis::Term& term) {
      return term.coefficient != ir::kNone || std::abs(term.offsets[1]) > bytes;
    });
  }

  bool gathers_most(const std::vector<LanePattern>& patterns, Isa isa) const {
    unsigned gathers = 0, others = 0;
    for (const ir::BlockId block : blocks_)
      for (const ir::Value value : function_.blocks[block].insts) {
        const ir::Inst& inst = function_[value];
        if (inst.op == ir::Op::load && is_gather(patterns, inst))
          gathers += inst.attr.count;
        else if (is_slow(inst.op))
          others += kSlowWeight;
        else if (inst.op != ir::Op::phi && !inst.args.empty())
          ++others;
      }
    return gathers >= kMinGathers && others <= max_other_per_gather(isa) * gathers;
  }

  /// True if a load's address follows from what it loaded in an earlier iteration.
  bool chases_pointers() const {
    return !all_insts(
        [&](ir::Value value) { return function_[value].op != ir::Op::load || !follows_from_itself(value); });
  }
  bool follows_from_itself(ir::Value load) const {
    std::vector<ir::Value> open{function_[load].args[0]}, seen;
    while (!open.empty()) {
      const ir::Value value = open.back();
      open.pop_back();
      if (value == load) return true;
      if (!contains(function_[value].block) || std::ranges::find(seen, value) != seen.end()) continue;
      seen.push_back(value);
      open.insert(open.end(), function_[value].args.begin(), function_[value].args.end());
    }
    return false;
  }

  bool divergent_;
};

/// Loops that follow each other, with the blocks between them.
class Sequence : public Region {
 public:
  using Region::Region;

  /// `loops`: those that are run lane by lane anyway.
  bool may_join(const std::vector<LaneLoop>& loops) const {
    return others_are_cheap(loops) && is_entered_at_front() && allows_lanes_in_turn() && is_left_by_phis();
  }

 private:
  /// Vectors compute the blocks between the loops faster, so these must be short.
  bool others_are_cheap(const std::vector<LaneLoop>& loops) const {
    std::size_t count = 0;
    for (const ir::BlockId block : blocks_) {
      const auto has_block = [&](const LaneLoop& loop) {
        return std::ranges::count(loop.blocks, block) != 0;
      };
      if (std::ranges::any_of(loops, has_block)) continue;
      if (facts_.loop_of[block] != facts_.loop_of[blocks_.front()]) return false;
      for (const ir::Value value : function_.blocks[block].insts) {
        const ir::Inst& inst = function_[value];
        if (inst.op == ir::Op::load || is_slow(inst.op) || ++count > kMaxBetween) return false;
      }
    }
    return true;
  }

  bool is_entered_at_front() const {
    return std::ranges::all_of(blocks_, [&](ir::BlockId block) {
      const auto is_inside = [&](ir::BlockId before) { return contains(before); };
      return block == blocks_.front() || std::ranges::all_of(function_.blocks[block].preds, is_inside);
    });
  }

  /// True if nothing but phis of the blocks behind it reads its values.
  bool is_left_by_phis() const {
    const auto is_inside = [&](ir::Value value) {
      return function_[value].op != ir::Op::constant && contains(function_[value].block);
    };
    for (ir::BlockId id = 0; id < function_.blocks.size(); ++id) {
      if (contains(id)) continue;
      const ir::Block& block = function_.blocks[id];
      for (const ir::Value value : block.insts) {
        const ir::Inst& inst = function_[value];
        for (std::size_t i = 0; i < inst.args.size(); ++i)
          if (is_inside(inst.args[i]) && !(inst.op == ir::Op::phi && contains(block.preds[i]))) return false;
      }
    }
    return true;
  }
};

/// The position behind `last`, and behind blocks that only lead on from it and from blocks from `begin` on:
/// what a lane leaves behind passes through them.
std::uint32_t end_of_sequence(const ir::Function& function, const Analysis& masked, std::uint32_t begin,
                              const LaneLoop& last) {
  std::uint32_t end = masked.position[last.blocks.back()] + 1;
  const std::uint32_t around = masked.loop_of[masked.order[end - 1]];
  const std::uint32_t outside = around == ir::kNone ? ir::kNone : masked.loops[around].parent;
  const auto is_before = [&](ir::BlockId block) {
    return masked.position[block] >= begin && masked.position[block] < end;
  };
  while (end < masked.order.size()) {
    if (masked.loop_of[masked.order[end]] != outside) break;
    const ir::Block& block = function.blocks[masked.order[end]];
    const auto leads_on = [&](ir::Value value) {
      return function[value].op == ir::Op::phi || function[value].op == ir::Op::br;
    };
    if (!std::ranges::all_of(block.insts, leads_on) || !std::ranges::all_of(block.preds, is_before)) break;
    ++end;
  }
  return end;
}

/// Joins neighbours in `loops`, which are in Analysis::order, with the blocks between them, from the loops'
/// end back to a block that dominates them.
std::vector<LaneLoop> join_neighbours(const ir::Function& function, const Analysis& masked,
                                      std::vector<LaneLoop> loops) {
  for (std::size_t at = 0; at + 1 < loops.size();) {
    LaneLoop &one = loops[at], &next = loops[at + 1];
    const std::uint32_t front = masked.position[one.header()];
    const std::uint32_t end = end_of_sequence(function, masked, front, next);
    bool joined = false;
    for (std::uint32_t begin = front; !joined && end - begin <= kMaxJoinedBlocks; --begin) {
      const auto order = masked.order.begin();
      const Sequence sequence(function, masked, {order + begin, order + end});
      joined = sequence.may_join({one, next});
      if (joined) {
        LaneLoop both = sequence.found();
        both.short_loops = std::move(one.short_loops);
        both.short_loops.insert(both.short_loops.end(), next.short_loops.begin(), next.short_loops.end());
        one = std::move(both);
        loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
      if (begin == 0) break;
    }
    if (!joined) ++at;
  }
  return loops;
}

}  // namespace

std::vector<LaneLoop> find_lane_loops(const ir::Function& function, const Analysis& masked,
                                      const std::vector<LanePattern>* lockstep, Isa isa) {
  std::vector<LaneLoop> result;
  std::vector<bool> taken(masked.loops.size(), false);
  for (std::size_t i = 0; i < masked.loops.size(); ++i) {
    const analysis::Loop& each = masked.loops[i];
    taken[i] = each.parent != ir::kNone && taken[each.parent];
    const Loop loop(function, masked, each);
    if (taken[i] || loop.size() > kMaxInsts || !loop.allows_lanes_in_turn()) continue;
    if (lockstep != nullptr && !loop.is_profitable(*lockstep, isa)) continue;
    taken[i] = true;
    result.push_back(loop.found());
  }
  std::ranges::sort(result, {}, [&](const LaneLoop& loop) { return masked.position[loop.header()]; });
  return join_neighbours(function, masked, std::move(result));
}

Analysis facts_of_one_lane(const Analysis& masked) {
  Analysis result;
  result.residues = masked.residues;
  result.halves.assign(masked.patterns.size(), false);
  result.below.assign(masked.patterns.size(), false);
  result.patterns.reserve(masked.patterns.size());
  for (const LanePattern& of_warp : masked.patterns) {
    LanePattern& made = result.patterns.emplace_back();
    made.kind = LanePatternKind::uniform;
    made.min = of_warp.min;
    made.max = of_warp.max;
    if (of_warp.kind != LanePatternKind::uniform) continue;
    made.constant = of_warp.constant;
    made.base_align = of_warp.base_align;
  }
  return result;
}

void find_lanes_in_turn(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  plan.lane_loop.assign(function.blocks.size(), ir::kNone);
  if (plan.dispatched || plan.gang.width > 1 || plan.masked.loops.empty()) return;
  const std::vector<LanePattern>& lockstep = (plan.has_full ? plan.full : plan.masked).patterns;
  plan.lane_loops = find_lane_loops(function, plan.masked, specialisation.lanes_in_turn ? nullptr : &lockstep,
                                    specialisation.isa);
  if (plan.lane_loops.empty()) return;
  plan.lane = facts_of_one_lane(plan.masked);
  for (std::uint32_t i = 0; i < plan.lane_loops.size(); ++i)
    for (const ir::BlockId block : plan.lane_loops[i].blocks) plan.lane_loop[block] = i;
}

}  // namespace quern::cpu::cuts
