// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/halves.hpp"

#include <cstdint>

namespace quern::cpu::analysis {
namespace {

constexpr std::uint32_t kBits = 16;

class Finder {
 public:
  Finder(const ir::Function& function, const Analysis& analysis)
      : function_(function), analysis_(analysis), halves_(function.insts.size()) {}

  std::vector<bool> run() && {
    for (const ir::BlockId block : analysis_.order)
      for (const ir::Value value : function_.blocks[block].insts) halves_[value] = is_half(value);
    return std::move(halves_);
  }

 private:
  bool fits(ir::Value value) const {
    const LanePattern& pattern = analysis_.patterns[value];
    return pattern.min >= INT16_MIN && pattern.max <= INT16_MAX;
  }

  bool is_half(ir::Value value) const {
    const ir::Inst& inst = function_[value];
    const LanePattern& pattern = analysis_.patterns[value];
    if (pattern.scalar() || pattern.kind == LanePatternKind::undefined) return false;
    if (inst.op == ir::Op::zext || inst.op == ir::Op::sext) {
      const std::uint32_t bits = ir::bit_size(function_[inst.args[0]].type);
      return bits > 1 && bits <= kBits && ir::bit_size(inst.type) > kBits && fits(value);
    }
    if (!may_narrow(inst.op) || ir::bit_size(function_[inst.args.back()].type) <= kBits) return false;
    if (inst.op != ir::Op::icmp && !fits(value)) return false;
    // The leaves of a sum are more than its results, so widening the results costs less. Indices of lanes
    // cost nothing as they are.
    bool any = false;
    for (std::size_t i = inst.op == ir::Op::select ? 1 : 0; i < inst.args.size(); ++i) {
      const ir::Value arg = inst.args[i];
      const bool uniform = analysis_.patterns[arg].kind == LanePatternKind::uniform && fits(arg);
      if (!halves_[arg] && !uniform) return false;
      any |= halves_[arg];
    }
    return any;
  }

  const ir::Function& function_;
  const Analysis& analysis_;
  std::vector<bool> halves_;
};

}  // namespace

bool may_narrow(ir::Op op) {
  switch (op) {
    case ir::Op::iadd:
    case ir::Op::isub:
    case ir::Op::imul:
    case ir::Op::and_:
    case ir::Op::or_:
    case ir::Op::xor_:
    case ir::Op::smin:
    case ir::Op::smax:
    case ir::Op::select:
    case ir::Op::icmp:
      return true;
    default:
      return false;
  }
}

std::vector<bool> find_halves(const ir::Function& function, const Analysis& analysis) {
  return Finder(function, analysis).run();
}

}  // namespace quern::cpu::analysis
