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
  const ir::Inst& what = function[comparison];
  if (what.op != ir::Op::icmp || what.block != block || reads[comparison] != 1 ||
      patterns[comparison].scalar() || ir::bit_size(function[what.args[0]].type) < 32)
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

}  // namespace quern::cpu::cuts
