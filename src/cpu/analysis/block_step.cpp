// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/block_step.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace quern::cpu::analysis {
namespace {

using Step = std::optional<std::int64_t>;

/// Operations between the number of the block and the value.
constexpr unsigned kMaxDepth = 16;
/// Steps of more bytes lead to other data rather than to the next ones.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

class Steps {
 public:
  Steps(const ir::Function& function, const Analysis& analysis) : function_(function), analysis_(analysis) {}

  Step of(ir::Value value, unsigned depth) {
    if (constant(value)) return 0;
    if (const auto known = known_.find(value); known != known_.end()) return known->second;
    if (depth == 0) return std::nullopt;
    const Step step = computed(function_[value], depth - 1);
    return known_[value] = step && std::abs(*step) <= kMostBytes ? step : std::nullopt;
  }

 private:
  std::optional<std::int64_t> constant(ir::Value value) const {
    const LanePattern& pattern = analysis_.patterns[value];
    if (pattern.kind != LanePatternKind::uniform || !pattern.constant) return std::nullopt;
    return static_cast<std::int64_t>(*pattern.constant);
  }

  Step computed(const ir::Inst& inst, unsigned depth) {
    switch (inst.op) {
      case ir::Op::special:
        return static_cast<ir::Special>(inst.imm) == ir::Special::ctaid_x ? 1 : 0;
      case ir::Op::trunc:
      case ir::Op::zext:
      case ir::Op::sext:
      case ir::Op::to_generic:
      case ir::Op::from_generic:
        return of(inst.args[0], depth);
      case ir::Op::iadd:
      case ir::Op::or_:
        return sum(inst, 1, depth);
      case ir::Op::isub:
        return sum(inst, -1, depth);
      case ir::Op::imul:
        return product(inst, depth);
      case ir::Op::shl:
        return shifted(inst, true, depth);
      case ir::Op::lshr:
      case ir::Op::ashr:
        return shifted(inst, false, depth);
      default:
        return unchanged(inst, depth);
    }
  }

  Step sum(const ir::Inst& inst, std::int64_t sign, unsigned depth) {
    const Step a = of(inst.args[0], depth), b = of(inst.args[1], depth);
    if (!a || !b) return std::nullopt;
    return *a + sign * *b;
  }

  Step product(const ir::Inst& inst, unsigned depth) {
    for (const std::size_t i : {0u, 1u})
      if (const auto factor = constant(inst.args[i])) {
        const Step step = of(inst.args[1 - i], depth);
        if (!step || *step == 0) return step;
        if (std::abs(*factor) > kMostBytes / std::abs(*step)) return std::nullopt;
        return *step * *factor;
      }
    return unchanged(inst, depth);
  }

  Step shifted(const ir::Inst& inst, bool left, unsigned depth) {
    constexpr std::int64_t kMostBits = 20;  // 2^40 at most, twice, is far from the limits of 64 bits
    const auto by = constant(inst.args[1]);
    if (!by || *by < 0 || *by > kMostBits) return unchanged(inst, depth);
    const Step step = of(inst.args[0], depth);
    if (!step) return std::nullopt;
    const std::int64_t unit = std::int64_t{1} << *by;
    if (left) return *step * unit;
    return *step % unit == 0 ? Step(*step / unit) : std::nullopt;
  }

  /// 0 if the result follows from operands that do not change.
  Step unchanged(const ir::Inst& inst, unsigned depth) {
    const bool pure = ir::has_trait(inst.op, 'p') && inst.op != ir::Op::phi;
    if (pure && std::ranges::all_of(inst.args, [&](ir::Value arg) { return of(arg, depth) == 0; })) return 0;
    return std::nullopt;
  }

  const ir::Function& function_;
  const Analysis& analysis_;
  std::map<ir::Value, Step> known_;
};

}  // namespace

std::optional<std::int64_t> block_step(const ir::Function& function, const Analysis& analysis,
                                       ir::Value value) {
  return Steps(function, analysis).of(value, kMaxDepth);
}

bool same_in_all_blocks(const ir::Function& function, ir::Value value) {
  constexpr std::array kOfTheBlock{ir::Special::ctaid_x, ir::Special::ctaid_y, ir::Special::ctaid_z};
  std::set<ir::Value> seen{value};
  for (std::vector<ir::Value> left{value}; !left.empty();) {
    const ir::Inst& inst = function[left.back()];
    left.pop_back();
    if (!ir::has_trait(inst.op, 'p')) return false;
    if (inst.op == ir::Op::special &&
        std::ranges::find(kOfTheBlock, static_cast<ir::Special>(inst.imm)) != kOfTheBlock.end())
      return false;
    for (const ir::Value arg : inst.args)
      if (seen.insert(arg).second) left.push_back(arg);
  }
  return true;
}

}  // namespace quern::cpu::analysis
