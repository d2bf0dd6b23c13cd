// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/thread_values.hpp"

#include <algorithm>

#include "cpu/abi/warp_size.hpp"
#include "cpu/ir/fold.hpp"

namespace quern::cpu::cuts {

const std::vector<std::uint64_t>* ThreadValues::find(ir::Value value) {
  auto found = known_.find(value);
  if (found == known_.end()) found = known_.emplace(value, compute(value)).first;
  return found->second.empty() ? nullptr : &found->second;
}

bool ThreadValues::are_equal(ir::Value a, ir::Value b) {
  if (a == b) return true;
  const Bits* const first = find(a);
  const Bits* const second = find(b);  // does not move the first one
  return first != nullptr && second != nullptr && *first == *second;
}

ThreadValues::Bits ThreadValues::compute(ir::Value value) {
  const ir::Inst& inst = function_[value];
  if (inst.op == ir::Op::constant) return Bits(specialisation_.threads(), inst.imm);
  if (inst.op == ir::Op::special) return compute_special(static_cast<ir::Special>(inst.imm));
  if (inst.op == ir::Op::phi || inst.args.empty() || !ir::has_trait(inst.op, 'p')) return {};
  std::vector<const Bits*> operands;
  for (const ir::Value arg : inst.args) {
    operands.push_back(find(arg));
    if (operands.back() == nullptr) return {};
  }
  const std::uint32_t width = ir::bit_size(function_[inst.args[inst.op == ir::Op::select ? 1 : 0]].type);
  Bits result;
  std::vector<std::uint64_t> args(operands.size());
  for (std::uint32_t thread = 0; thread < specialisation_.threads(); ++thread) {
    std::ranges::transform(operands, args.begin(), [&](const Bits* bits) { return (*bits)[thread]; });
    const std::optional<std::uint64_t> folded = ir::fold(inst, width, args);
    if (!folded) return {};
    result.push_back(*folded);
  }
  return result;
}

ThreadValues::Bits ThreadValues::compute_special(ir::Special which) const {
  const auto& [x, y, z] = specialisation_.block;
  Bits result;
  for (std::uint32_t thread = 0; thread < specialisation_.threads(); ++thread) {
    switch (which) {
      case ir::Special::tid_x:
        result.push_back(thread % x);
        break;
      case ir::Special::tid_y:
        result.push_back(thread / x % y);
        break;
      case ir::Special::tid_z:
        result.push_back(thread / x / y);
        break;
      case ir::Special::ntid_x:
        result.push_back(x);
        break;
      case ir::Special::ntid_y:
        result.push_back(y);
        break;
      case ir::Special::ntid_z:
        result.push_back(z);
        break;
      case ir::Special::laneid:
        result.push_back(thread % kWarpSize);
        break;
      default:
        return {};
    }
  }
  return result;
}

}  // namespace quern::cpu::cuts
