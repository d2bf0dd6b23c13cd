// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/joint.hpp"

#include <algorithm>

namespace quern::cpu::cuts {
namespace {

/// Warps without lanes compute these for nothing.
constexpr std::size_t kMaxHead = 16;

}  // namespace

bool is_joint(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
              const GangPlan& gang, ir::Value value) {
  const ir::Inst& inst = function[value];
  if (inst.op != ir::Op::atomic || inst.attr.atomic != ir::AtomicOp::add || inst.attr.unused_result)
    return false;
  const bool is_integer = inst.type == ir::Type::i32 || inst.type == ir::Type::i64;
  const ir::Value address = inst.args[0];
  return is_integer && gang.shared[address] && !patterns[value].scalar() &&
         patterns[address].kind == analysis::LanePatternKind::uniform;
}

bool may_run_empty(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
                   ir::Value value) {
  const ir::Inst& inst = function[value];
  // A scalar computed from a vector is the value of a running lane.
  return ir::has_trait(inst.op, 'p') &&
         (!patterns[value].scalar() ||
          std::ranges::all_of(inst.args, [&](ir::Value arg) { return patterns[arg].scalar(); }));
}

std::size_t find_joint_head(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
                            const GangPlan& gang, ir::BlockId block) {
  const std::vector<ir::Value>& insts = function.blocks[block].insts;
  for (std::size_t at = 0; at < std::min(insts.size(), kMaxHead); ++at) {
    if (is_joint(function, patterns, gang, insts[at])) return at + 1;
    const ir::Op op = function[insts[at]].op;
    if (op == ir::Op::phi || op == ir::Op::extract) return 0;
    if (!may_run_empty(function, patterns, insts[at])) return 0;
  }
  return 0;
}

}  // namespace quern::cpu::cuts
