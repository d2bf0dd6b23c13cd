// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/edges.hpp"

#include <algorithm>
#include <span>

#include "cpu/analysis/algebra.hpp"

namespace quern::cpu::analysis {
namespace {

/// The operands from which an index is computed; none of other operations.
std::span<const ir::Value> indices_in(const ir::Inst& inst) {
  switch (inst.op) {
    case ir::Op::iadd:
    case ir::Op::isub:
    case ir::Op::imul:
    case ir::Op::shl:
    case ir::Op::and_:
    case ir::Op::or_:
    case ir::Op::sext:
    case ir::Op::zext:
    case ir::Op::trunc:
    case ir::Op::smin:
    case ir::Op::smax:
    case ir::Op::umin:
    case ir::Op::umax:
    case ir::Op::iabs:
    case ir::Op::to_generic:
    case ir::Op::from_generic:
      return inst.args;
    case ir::Op::select:
      return std::span(inst.args).subspan(1);
    default:
      return {};
  }
}

/// True if the operation shifts the sign of a number to all bits, or to the lowest one.
bool is_sign(const ir::Function& function, const ir::Inst& inst) {
  if (inst.op != ir::Op::ashr && inst.op != ir::Op::lshr) return false;
  const ir::Inst& by = function[inst.args[1]];
  return by.op == ir::Op::constant && by.imm == ir::bit_size(inst.type) - 1;
}

/// Says how a number changes from a thread to the next one.
enum class Direction : std::uint8_t { unknown, none, up, down };

Direction reversed(Direction direction) {
  if (direction == Direction::up) return Direction::down;
  return direction == Direction::down ? Direction::up : direction;
}
Direction of_both(Direction a, Direction b) {
  if (a == Direction::none) return b;
  return b == Direction::none || a == b ? a : Direction::unknown;
}

/// Follows additions, and products, of which it takes the factors for positive: it decides about speed only.
class Directions {
 public:
  explicit Directions(const ir::Function& function) : function_(function) {}

  Direction of(ir::Value value, int steps = kMaxSteps) const {
    const ir::Inst& inst = function_[value];
    if (steps == 0) return Direction::unknown;
    const auto arg = [&](std::size_t which) { return of(inst.args[which], steps - 1); };
    switch (inst.op) {
      case ir::Op::constant:
      case ir::Op::param:
        return Direction::none;
      case ir::Op::special:
        return of_special(static_cast<ir::Special>(inst.imm));
      case ir::Op::iadd:
      case ir::Op::imul:
      case ir::Op::smin:
      case ir::Op::smax:
      case ir::Op::umin:
      case ir::Op::umax:
        return of_both(arg(0), arg(1));
      case ir::Op::isub:
        return of_both(arg(0), reversed(arg(1)));
      case ir::Op::xor_:
        return is_complement(inst) ? reversed(arg(0)) : of_both(arg(0), arg(1));
      case ir::Op::select: {
        const Direction a = arg(1), b = arg(2);
        return a == Direction::up || b == Direction::up ? Direction::up : of_both(a, b);
      }
      case ir::Op::shl:
      case ir::Op::sext:
      case ir::Op::zext:
      case ir::Op::trunc:
      case ir::Op::iabs:
        return arg(0);
      default:
        return Direction::unknown;
    }
  }

 private:
  static constexpr int kMaxSteps = 8;

  static Direction of_special(ir::Special which) {
    switch (which) {
      case ir::Special::tid_x:
      case ir::Special::tid_y:
      case ir::Special::tid_z:
      case ir::Special::laneid:
        return Direction::up;
      default:
        return Direction::none;
    }
  }
  bool is_complement(const ir::Inst& inst) const {
    const ir::Inst& mask = function_[inst.args[1]];
    return mask.op == ir::Op::constant && ir::sign_extend(mask.imm, ir::bit_size(mask.type)) == -1;
  }

  const ir::Function& function_;
};

/// Returns what the choice between `if_true` and `if_false` suggests of its condition.
AtEdge suggested(ir::Icmp how, Direction if_true, Direction if_false) {
  const auto decided = [](Direction beyond, Direction inside, AtEdge answer) {
    return inside == Direction::unknown || (beyond == Direction::up && inside == Direction::down)
               ? AtEdge::unknown
               : answer;
  };
  if (how == ir::Icmp::eq) return decided(if_true, if_false, AtEdge::no);
  if (how == ir::Icmp::ne) return decided(if_false, if_true, AtEdge::yes);
  if (if_true == if_false) return decided(if_true, if_false, AtEdge::alike);
  for (const Direction inside : {Direction::up, Direction::down}) {
    if (if_true == inside) return AtEdge::yes;
    if (if_false == inside) return AtEdge::no;
  }
  return AtEdge::unknown;
}

/// An index that is larger counts elements, not the threads of a block.
bool counts_elements(const LanePattern& index) {
  constexpr std::int64_t kMostThreads = 1024;
  return index.max > 2 * kMostThreads;
}

/// Nothing if `index` has fewer than 32 bits, or if lanes are so far apart that their distances may be those
/// of numbers that wrap.
std::optional<Distances> lanes_of(const ir::Function& function, const std::vector<LanePattern>& patterns,
                                  ir::Value index) {
  const std::optional<Distances> lanes = distances_of(patterns[index]);
  if (ir::bit_size(function[index].type) < 32 || !lanes || !has_small_offsets(patterns[index].terms[0]))
    return std::nullopt;
  return lanes;
}

}  // namespace

Edges find_edges(const ir::Function& function) {
  Edges edges{std::vector<bool>(function.insts.size(), false),
              std::vector<AtEdge>(function.insts.size(), AtEdge::unknown)};
  std::vector<ir::Value> open;
  const auto add = [&](ir::Value value) {
    if (edges.indices[value]) return;
    edges.indices[value] = true;
    open.push_back(value);
  };
  for (const ir::Block& block : function.blocks)
    for (const ir::Value value : block.insts) {
      const ir::Inst& inst = function[value];
      if (inst.op == ir::Op::load || inst.op == ir::Op::store || inst.op == ir::Op::atomic) add(inst.args[0]);
    }
  const Directions directions(function);
  std::vector<bool> seen(function.insts.size(), false);
  while (!open.empty()) {
    const ir::Value value = open.back();
    const ir::Inst& inst = function[value];
    open.pop_back();
    if (is_sign(function, inst)) edges.conditions[value] = AtEdge::no;
    std::ranges::for_each(indices_in(inst), add);
    if (inst.op != ir::Op::select || function[inst.args[0]].op != ir::Op::icmp) continue;
    const ir::Value condition = inst.args[0];
    const AtEdge at_edge =
        suggested(function[condition].attr.icmp, directions.of(inst.args[1]), directions.of(inst.args[2]));
    const bool agrees = !seen[condition] || edges.conditions[condition] == at_edge;
    edges.conditions[condition] = agrees ? at_edge : AtEdge::unknown;
    seen[condition] = true;
  }
  return edges;
}

std::optional<Clamp> clamp_of(const ir::Function& function, const std::vector<LanePattern>& patterns,
                              const ir::Inst& inst) {
  Clamp clamp{.minimum = inst.op == ir::Op::smin || inst.op == ir::Op::umin,
              .is_signed = inst.op != ir::Op::umin && inst.op != ir::Op::umax};
  switch (inst.op) {
    case ir::Op::iabs:
      clamp.index = inst.args[0];
      break;
    case ir::Op::smin:
    case ir::Op::smax:
    case ir::Op::umin:
    case ir::Op::umax: {
      const std::size_t which = patterns[inst.args[1]].kind == LanePatternKind::uniform ? 0 : 1;
      clamp.index = inst.args[which];
      clamp.bound = inst.args[1 - which];
      if (patterns[clamp.bound].kind != LanePatternKind::uniform) return std::nullopt;
      break;
    }
    default:
      return std::nullopt;
  }
  const std::optional<Distances> lanes = lanes_of(function, patterns, clamp.index);
  if (!lanes) return std::nullopt;
  clamp.lanes = *lanes;
  return clamp;
}

std::optional<EdgeComparison> edge_comparison_of(const ir::Function& function,
                                                 const std::vector<LanePattern>& patterns,
                                                 const ir::Inst& inst) {
  if (is_sign(function, inst)) {
    const std::optional<Distances> lanes = lanes_of(function, patterns, inst.args[0]);
    if (!lanes) return std::nullopt;
    return EdgeComparison{inst.args[0], ir::kNone, ir::Icmp::slt, *lanes};
  }
  if (inst.op != ir::Op::icmp) return std::nullopt;
  EdgeComparison comparison{inst.args[0], inst.args[1], inst.attr.icmp, {}};
  if (patterns[comparison.bound].kind != LanePatternKind::uniform)
    comparison = {inst.args[1], inst.args[0], ir::swapped(inst.attr.icmp), {}};
  const std::optional<Distances> lanes = lanes_of(function, patterns, comparison.index);
  if (!lanes || patterns[comparison.bound].kind != LanePatternKind::uniform) return std::nullopt;
  comparison.lanes = *lanes;
  return comparison;
}

bool is_likely_edge(const Clamp& clamp, const std::vector<LanePattern>& patterns) {
  constexpr std::int64_t kSeldom = 256;
  const LanePattern& index = patterns[clamp.index];
  if (!counts_elements(index)) return false;
  if (clamp.bound == ir::kNone) return true;
  const LanePattern& bound = patterns[clamp.bound];
  if (clamp.minimum)
    return bound.constant ? bound.max >= kSeldom
                          : bound.max > index.min + clamp.lanes.most - clamp.lanes.least;
  return bound.max <= 1;
}

bool is_likely_edge(const EdgeComparison& comparison, const std::vector<LanePattern>& patterns) {
  return counts_elements(patterns[comparison.index]);
}

ir::Value unclamped(const ir::Function& function, const std::vector<LanePattern>& patterns, ir::Value index) {
  for (;;) {
    const ir::Inst& inst = function[index];
    if (inst.op == ir::Op::sext && lanes_of(function, patterns, inst.args[0]))
      index = inst.args[0];
    else if (const std::optional<Clamp> clamp = clamp_of(function, patterns, inst))
      index = clamp->index;
    else
      return index;
  }
}

}  // namespace quern::cpu::analysis
