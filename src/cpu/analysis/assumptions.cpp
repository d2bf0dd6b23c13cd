// SPDX-License-Identifier: Apache-2.0
// These rules say what is assumed of divisions, signs and edges (Assumption::optimistic).
#include <algorithm>
#include <utility>

#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/rules.hpp"
#include "cpu/ir/divisions.hpp"
#include "cpu/ir/fold.hpp"

namespace quern::cpu::analysis {
namespace {

using ir::sign_extend;

/// A constant divisor that most warps do not step over, or one that is not known: sizes of arrays are larger
/// than a warp more often than not.
bool is_likely_above(const LanePattern& divisor, std::int64_t span) {
  constexpr std::uint64_t kSeldom = 256;
  if (!divisor.constant) return divisor.max > span;
  return *divisor.constant >= kSeldom ||
         (*divisor.constant > static_cast<std::uint64_t>(span) && *divisor.constant % kWarpSize == 0);
}

/// By value: it is a dividend or a divisor, or is widened to one.
std::vector<bool> find_numbers_of_divisions(const ir::Function& function) {
  std::vector<bool> found(function.insts.size(), false);
  for (const ir::Inst& inst : function.insts) {
    if (!ir::is_division(inst.op)) continue;
    for (const ir::Value arg : inst.args) {
      found[arg] = true;
      const ir::Inst& number = function[arg];
      if (number.op == ir::Op::sext || number.op == ir::Op::zext) found[number.args[0]] = true;
    }
  }
  return found;
}

}  // namespace

void Rules::find_assumable() {
  divides_ = find_numbers_of_divisions(function_);
  edges_ = find_edges(function_);
}

/// Assumes of a division that all lanes have the same quotient, as coordinates of pixels in a row have: it is
/// uniform, and the remainders have the distances of the dividends. The dividends are assumed to be not
/// negative and the divisor to be positive, as signed numbers.
std::optional<Rules::Result> Rules::divide_together(const ir::Inst& inst) const {
  if (!ir::is_division(inst.op) || assumption_ != Assumption::optimistic) return std::nullopt;
  const bool remainder = ir::is_remainder(inst.op);
  const LanePattern& a = patterns_[inst.args[0]];
  const LanePattern& b = patterns_[inst.args[1]];
  const std::uint32_t bits = ir::bit_size(inst.type);
  const std::optional<std::int64_t> span = dividend_span(a);
  if (bits < 32 || !span || b.kind != LanePatternKind::uniform || !is_likely_above(b, *span))
    return std::nullopt;
  Result result{remainder ? a : uniform_pattern(bits), true};
  result.pattern.constant.reset();
  result.pattern.base_align = 1;
  result.pattern.exact = true;
  const std::int64_t most = std::max<std::int64_t>(a.max, 0);
  set_range(result.pattern, {0, remainder && b.max > 0 ? std::min(most, b.max - 1) : most});
  return result;
}

/// Assumes of an index that stops at the edges of the data that no lane is beyond an edge.
std::optional<LanePattern> Rules::within_edges(ir::Value value) const {
  if (edges_.indices.empty() || !edges_.indices[value]) return std::nullopt;
  const std::optional<Clamp> clamp = clamp_of(function_, patterns_, function_[value]);
  if (!clamp || !is_likely_edge(*clamp, patterns_)) return std::nullopt;
  LanePattern result = patterns_[clamp->index];
  result.constant.reset();
  result.base_align = 1;
  return result;
}

/// Assumes of a comparison, or a sign, that chooses an index at an edge of the data that no lane is at the
/// edge.
std::optional<LanePattern> Rules::at_edge(ir::Value value) const {
  if (edges_.conditions.empty() || edges_.conditions[value] == AtEdge::unknown) return std::nullopt;
  const std::optional<EdgeComparison> comparison = edge_comparison_of(function_, patterns_, function_[value]);
  if (!comparison || !is_likely_edge(*comparison, patterns_)) return std::nullopt;
  if (edges_.conditions[value] == AtEdge::alike) return uniform_pattern(1);
  return constant_pattern(ir::bit_size(function_[value].type),
                          edges_.conditions[value] == AtEdge::yes ? 1 : 0);
}

/// Compilers write `a % b` as `a - a / b * b` where they have the quotient.
std::optional<Rules::Result> Rules::rest_of_division(const ir::Inst& inst) const {
  const ir::Value division = ir::divided_for(function_, inst);
  if (division == ir::kNone || power_of_two(function_[division]).scalar()) return std::nullopt;
  ir::Inst remainder = function_[division];
  remainder.op = remainder.op == ir::Op::udiv ? ir::Op::urem : ir::Op::srem;
  return divide_together(remainder);
}

/// Assumes where the sign of a number of a division is asked for, or of that number xor another, that it is
/// not negative in any lane: divisions are assumed to have such numbers, and where they are rounded down, the
/// signs decide whether the result is adjusted.
std::optional<Rules::Result> Rules::natural_sign(const ir::Inst& inst) const {
  if (divides_.empty() || inst.args.size() != 2 || bits_of(inst.args[0]) < 32) return std::nullopt;
  const LanePattern& other = patterns_[inst.args[1]];
  if (!other.constant || other.kind != LanePatternKind::uniform || range_of(patterns_[inst.args[0]]).min >= 0)
    return std::nullopt;
  const std::uint32_t bits = bits_of(inst.args[0]);
  const std::int64_t constant = sign_extend(*other.constant, bits_of(inst.args[1]));
  std::optional<std::uint64_t> answer;
  if (inst.op == ir::Op::lshr || inst.op == ir::Op::ashr) {
    if (constant == bits - 1) answer = 0;
  } else if (inst.op == ir::Op::icmp && !ir::is_equality(inst.attr.icmp) &&
             (constant == 0 || constant == -1)) {
    const int decided = decide(inst.attr.icmp, {0, full_range(bits).max}, {constant, constant});
    if (decided >= 0) answer = static_cast<std::uint64_t>(decided);
  }
  if (!answer) return std::nullopt;
  const auto is_likely_natural = [&](ir::Value number) {
    const LanePattern& pattern = patterns_[number];
    if (pattern.min >= 0) return true;
    const bool testable = pattern.kind == LanePatternKind::uniform ? !pattern.constant.has_value()
                                                                   : dividend_span(pattern).has_value();
    return divides_[number] && testable;
  };
  const std::vector<ir::Value> numbers = numbers_of_sign(function_, inst);
  if (!std::ranges::all_of(numbers, is_likely_natural)) return std::nullopt;
  return Result{constant_pattern(ir::bit_size(inst.type), *answer), true};
}

}  // namespace quern::cpu::analysis
