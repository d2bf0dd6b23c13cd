// SPDX-License-Identifier: Apache-2.0
// (x | c) >> n  where the shift drops all bits of c: the padding of an element of shared memory by one word
// in 32 is computed so for each of a thread's neighbouring elements, which then have one padding.
#include <optional>

#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu::lower {
namespace {

using ir::Op;
using ir::Value;

std::optional<std::uint64_t> number(const ir::Function& function, Value value) {
  if (function[value].op != Op::constant) return std::nullopt;
  return function[value].imm;
}

/// What `value` is without the bits below `count`, if it sets only such bits.
Value without_low_bits(const ir::Function& function, Value value, std::uint64_t count) {
  const ir::Inst& inst = function[value];
  if (inst.op != Op::or_ || count >= ir::bit_size(inst.type)) return ir::kNone;
  for (std::size_t side = 0; side < 2; ++side) {
    const std::optional<std::uint64_t> set = number(function, inst.args[side]);
    if (set && *set >> count == 0) return inst.args[1 - side];
  }
  return ir::kNone;
}

}  // namespace

void forget_lost_bits(FunctionBuilder& builder) {
  ir::Function& function = builder.function;
  for (ir::Inst& inst : function.insts) {
    if (inst.op != Op::lshr && inst.op != Op::ashr) continue;
    const std::optional<std::uint64_t> by = number(function, inst.args[1]);
    if (!by) continue;
    const Value kept = without_low_bits(function, inst.args[0], *by);
    if (kept != ir::kNone) inst.args[0] = kept;
  }
}

}  // namespace quern::cpu::lower
