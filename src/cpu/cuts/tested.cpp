// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/tested.hpp"

#include "cpu/analysis/algebra.hpp"
#include "cpu/analysis/edges.hpp"
#include "cpu/ir/divisions.hpp"

namespace quern::cpu::cuts {

std::vector<ir::Value> tested_operands(const ir::Function& function, const analysis::Analysis& facts,
                                       ir::Value assumed) {
  const ir::Inst& inst = function[assumed];
  const auto unclamped_and = [&](ir::Value index, ir::Value bound) {
    index = analysis::unclamped(function, facts.patterns, index);
    return bound == ir::kNone ? std::vector{index} : std::vector{index, bound};
  };
  if (const auto clamp = analysis::clamp_of(function, facts.patterns, inst))
    return unclamped_and(clamp->index, clamp->bound);
  if (const auto comparison = analysis::edge_comparison_of(function, facts.patterns, inst))
    return unclamped_and(comparison->index, comparison->bound);
  switch (inst.op) {
    case ir::Op::icmp:
    case ir::Op::lshr:
    case ir::Op::ashr: {
      std::vector<ir::Value> numbers = analysis::numbers_of_sign(function, inst);
      std::erase_if(numbers, [&](ir::Value number) { return facts.patterns[number].min >= 0; });
      return numbers;
    }
    case ir::Op::isub:
      return function[ir::divided_for(function, inst)].args;
    default:
      return inst.args;
  }
}

}  // namespace quern::cpu::cuts
