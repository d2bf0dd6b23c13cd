// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/bounds.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace quern::cpu::cuts {
namespace {

struct BoundRow {
  ir::Icmp icmp;
  bool is_signed;
  bool inclusive;
  bool if_below;
};
constexpr BoundRow kRows[] = {
    {ir::Icmp::slt, true, false, true},  {ir::Icmp::sle, true, true, true},
    {ir::Icmp::sgt, true, true, false},  {ir::Icmp::sge, true, false, false},
    {ir::Icmp::ult, false, false, true}, {ir::Icmp::ule, false, true, true},
    {ir::Icmp::ugt, false, true, false}, {ir::Icmp::uge, false, false, false},
};

const BoundRow* row_of(ir::Icmp icmp) {
  const BoundRow* const row = std::ranges::find(kRows, icmp, &BoundRow::icmp);
  return row == std::end(kRows) ? nullptr : row;
}

/// The largest difference of an affine value between lanes, if the last lane has the largest value and the
/// first lane the least.
std::optional<std::int64_t> reach_of(const analysis::LanePattern& pattern) {
  if (pattern.kind != analysis::LanePatternKind::affine || pattern.terms.size() != 1 ||
      pattern.terms[0].coefficient != ir::kNone)
    return std::nullopt;
  const auto [least, most] = std::ranges::minmax(pattern.terms[0].offsets);
  // Small enough for every type that is compared.
  constexpr std::int64_t kMost = 4096;
  if (least < 0 || most > kMost) return std::nullopt;
  return most;
}

BoundedBranch bounded_comparison(const ir::Function& function,
                                 const std::vector<analysis::LanePattern>& patterns, ir::Value comparison) {
  const ir::Inst& what = function[comparison];
  if (what.op != ir::Op::icmp || patterns[comparison].scalar() ||
      ir::bit_size(function[what.args[0]].type) < 32)
    return {};
  ir::Value index = what.args[0], bound = what.args[1];
  const bool exchanged = patterns[index].kind == analysis::LanePatternKind::uniform;
  if (exchanged) std::swap(index, bound);
  const BoundRow* const row = row_of(exchanged ? ir::swapped(what.attr.icmp) : what.attr.icmp);
  if (row == nullptr) return {};
  const std::optional<std::int64_t> reach = reach_of(patterns[index]);
  if (!reach || patterns[bound].kind != analysis::LanePatternKind::uniform) return {};
  return {comparison, index, bound, *reach, row->is_signed, row->inclusive, row->if_below};
}

}  // namespace

std::vector<std::uint32_t> count_reads(const ir::Function& function) {
  std::vector<std::uint32_t> reads(function.insts.size(), 0);
  for (const ir::Block& block : function.blocks)
    for (const ir::Value value : block.insts)
      for (const ir::Value arg : function[value].args)
        if (arg != ir::kNone) ++reads[arg];
  return reads;
}

BoundedBranch bounded_branch(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
                             const std::vector<std::uint32_t>& reads, ir::BlockId block) {
  const ir::Inst& last = function[function.blocks[block].insts.back()];
  if (last.op != ir::Op::cond_br) return {};
  const ir::Value comparison = last.args[0];
  if (function[comparison].block != block || reads[comparison] != 1) return {};
  return bounded_comparison(function, patterns, comparison);
}

BoundedBranches bounded_branches(const ir::Function& function,
                                 const std::vector<analysis::LanePattern>& patterns, ir::BlockId block) {
  constexpr std::size_t kMost = 4;
  const ir::Inst& last = function[function.blocks[block].insts.back()];
  if (last.op != ir::Op::cond_br || patterns[last.args[0]].scalar()) return {};
  const ir::Op joins = function[last.args[0]].op;
  if (joins != ir::Op::and_ && joins != ir::Op::or_) return {};
  BoundedBranches found{.if_below = joins == ir::Op::and_};
  std::vector<ir::Value> open{last.args[0]};
  while (!open.empty()) {
    const ir::Value value = open.back();
    open.pop_back();
    if (function[value].block != block || found.comparisons.size() + found.uniform.size() == kMost) return {};
    if (patterns[value].kind == analysis::LanePatternKind::uniform) {
      found.uniform.push_back(value);
    } else if (function[value].op == joins) {
      open.insert(open.end(), function[value].args.begin(), function[value].args.end());
    } else {
      const BoundedBranch comparison = bounded_comparison(function, patterns, value);
      if (comparison.comparison == ir::kNone || comparison.if_below != found.if_below) return {};
      found.comparisons.push_back(comparison);
    }
  }
  return found;
}

}  // namespace quern::cpu::cuts
