// SPDX-License-Identifier: Apache-2.0
// PTX keeps bytes in registers of 16 bits or more, so that each use of one begins with conversions:
//
//   ld.global.u8 %r1, [%rd1]; cvt.u16.u32 %rs1, %r1; and.b16 %rs2, %rs1, 255; cvt.rn.f32.u16 %f1, %rs2
//
// They become one, from the byte to what is computed.
#include "cpu/lower/ssa/passes.hpp"
#include "cpu/lower/ssa/phis.hpp"

namespace quern::cpu::lower {
namespace {

using ir::Op;
using ir::Value;

bool widens(Op op) { return op == Op::zext || op == Op::sext; }

/// An element of 8 or 16 bits that `inst` widens. Larger numbers may be indices, which the analysis knows
/// best as they are.
bool widens_element(const ir::Function& function, const ir::Inst& inst) {
  if (!widens(inst.op)) return false;
  const std::uint32_t bits = ir::bit_size(function[inst.args[0]].type);
  return bits == 8 || bits == 16;
}

/// Makes `inst` the conversion `op` of what its operand converts.
void convert_directly(ir::Inst& inst, Op op, const ir::Inst& operand) {
  inst.op = op;
  inst.args[0] = operand.args[0];
}

void join_truncation(const ir::Function& function, ir::Inst& inst) {
  const ir::Inst& from = function[inst.args[0]];
  if (from.op == Op::trunc) return convert_directly(inst, Op::trunc, from);
  if (!widens_element(function, from)) return;
  const std::uint32_t element = ir::bit_size(function[from.args[0]].type), bits = ir::bit_size(inst.type);
  if (element != bits) convert_directly(inst, element < bits ? from.op : Op::trunc, from);
}

void join_widening(const ir::Function& function, ir::Inst& inst) {
  const ir::Inst& from = function[inst.args[0]];
  if (inst.type == ir::Type::i64) return;  // an index of 32 bits, from which addresses are computed best
  // A number that is widened by zeros is not negative.
  if (widens_element(function, from) && (from.op == inst.op || from.op == Op::zext))
    convert_directly(inst, from.op, from);
}

void join_to_real(const ir::Function& function, ir::Inst& inst) {
  const ir::Inst& from = function[inst.args[0]];
  if (!widens_element(function, from)) return;
  if (from.op == Op::zext) return convert_directly(inst, Op::u_to_f, from);
  if (inst.op == Op::s_to_f) convert_directly(inst, Op::s_to_f, from);
}

/// True if `inst` keeps all bits of a number that was widened by zeros, which is its first operand.
bool masks_nothing(const ir::Function& function, const ir::Inst& inst) {
  const ir::Inst &number = function[inst.args[0]], &mask = function[inst.args[1]];
  if (number.op != Op::zext || !widens_element(function, number) || mask.op != Op::constant) return false;
  const std::uint64_t element = low_mask(ir::bit_size(function[number.args[0]].type));
  return (mask.imm & element) == element;
}

}  // namespace

void join_conversions(FunctionBuilder& builder) {
  ir::Function& function = builder.function;
  Replacements replaced;
  for (const ir::BlockId block : order_blocks(function).blocks)
    for (const Value value : function.blocks[block].insts) {
      ir::Inst& inst = function[value];
      for (Value& arg : inst.args) arg = replaced.find(arg);
      if (inst.op == Op::trunc) join_truncation(function, inst);
      if (widens(inst.op)) join_widening(function, inst);
      if (inst.op == Op::u_to_f || inst.op == Op::s_to_f) join_to_real(function, inst);
      if (inst.op == Op::and_ && masks_nothing(function, inst)) replaced.set(value, inst.args[0]);
    }
  Replacements::apply(replaced, function);
}

}  // namespace quern::cpu::lower
