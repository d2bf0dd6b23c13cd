// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/below.hpp"

#include <algorithm>

#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/structure.hpp"
#include "cpu/ir/divisions.hpp"

namespace quern::cpu::analysis {
namespace {

constexpr int kMaxSteps = 8;

class Finder {
 public:
  Finder(const ir::Function& function, const Analysis& analysis)
      : function_(function), analysis_(analysis), dominance_(analysis) {}

  bool is_below(ir::Value remainder) const {
    const ir::Inst& inst = function_[remainder];
    const ir::Value index = root(inst.args[0]), bound = root(inst.args[1]);
    ir::BlockId block = inst.block;
    while (analysis_.idom[block] != ir::kNone && analysis_.idom[block] != block) {
      const ir::BlockId above = analysis_.idom[block];
      for (const bool taken : {true, false})
        if (follows(above, taken, inst.block) && implies(condition(above), taken, index, bound, kMaxSteps))
          return true;
      block = above;
    }
    return false;
  }

 private:
  ir::Value condition(ir::BlockId block) const {
    return function_[function_.blocks[block].insts.back()].args[0];
  }

  /// True if every path to `block` takes this side of the branch at the end of `above`.
  bool follows(ir::BlockId above, bool taken, ir::BlockId block) const {
    const ir::Block& from = function_.blocks[above];
    if (function_[from.insts.back()].op != ir::Op::cond_br) return false;
    const ir::BlockId side = from.succs[taken ? 0 : 1];
    return function_.blocks[side].preds.size() == 1 && dominance_.dominates(side, block);
  }

  /// True if `condition` can be `is` only where index < bound or index <= bound.
  bool implies(ir::Value condition, bool is, ir::Value index, ir::Value bound, int steps) const {
    const ir::Inst& inst = function_[condition];
    if (steps > 0 && inst.op == (is ? ir::Op::and_ : ir::Op::or_))
      return std::ranges::any_of(inst.args,
                                 [&](ir::Value part) { return implies(part, is, index, bound, steps - 1); });
    if (inst.op != ir::Op::icmp) return false;
    const ir::Value a = root(inst.args[0]), b = root(inst.args[1]);
    switch (inst.attr.icmp) {
      case ir::Icmp::slt:
      case ir::Icmp::sle:
      case ir::Icmp::ult:
      case ir::Icmp::ule:
        return is ? a == index && b == bound : a == bound && b == index;
      case ir::Icmp::sgt:
      case ir::Icmp::sge:
      case ir::Icmp::ugt:
      case ir::Icmp::uge:
        return is ? a == bound && b == index : a == index && b == bound;
      case ir::Icmp::eq:
      case ir::Icmp::ne:
        return false;
    }
    return false;
  }

  bool is_small(ir::Value value) const {
    const LanePattern& pattern = analysis_.patterns[value];
    constexpr auto kMost = static_cast<std::int64_t>(kWarpSize);
    return pattern.constant && pattern.min > -kMost && pattern.max < kMost;
  }

  /// `value` without extensions, small constants that are added, and choices of a small constant in its
  /// place, as of 1 for a divisor of 0.
  ir::Value root(ir::Value value) const {
    for (int step = 0; step < kMaxSteps; ++step) {
      const ir::Inst& inst = function_[value];
      if (inst.op == ir::Op::sext || inst.op == ir::Op::zext)
        value = inst.args[0];
      else if ((inst.op == ir::Op::iadd || inst.op == ir::Op::isub || inst.op == ir::Op::smax) &&
               is_small(inst.args[1]))
        value = inst.args[0];
      else if (inst.op == ir::Op::select && is_small(inst.args[1]))
        value = inst.args[2];
      else if (inst.op == ir::Op::select && is_small(inst.args[2]))
        value = inst.args[1];
      else
        break;
    }
    return value;
  }

  const ir::Function& function_;
  const Analysis& analysis_;
  Dominance dominance_;
};

}  // namespace

std::vector<bool> find_below(const ir::Function& function, const Analysis& analysis) {
  std::vector<bool> below(function.insts.size(), false);
  std::vector<ir::Value> open;
  for (ir::Value value = 0; value < function.insts.size(); ++value)
    if (analysis.assumed[value] && ir::is_remainder(function[value].op)) open.push_back(value);
  if (open.empty()) return below;
  const Finder finder(function, analysis);
  for (const ir::Value value : open) below[value] = finder.is_below(value);
  return below;
}

}  // namespace quern::cpu::analysis
