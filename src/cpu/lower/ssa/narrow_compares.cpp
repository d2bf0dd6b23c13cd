// SPDX-License-Identifier: Apache-2.0
// PTX has no comparisons of bytes: it widens them first. A warp's 32 bytes are one register, and processors
// compare them as they are.
#include <optional>

#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu::lower {
namespace {

using ir::Icmp;
using ir::Op;
using ir::Value;

Icmp as_unsigned(Icmp compare) {
  switch (compare) {
    case Icmp::slt:
      return Icmp::ult;
    case Icmp::sle:
      return Icmp::ule;
    case Icmp::sgt:
      return Icmp::ugt;
    case Icmp::sge:
      return Icmp::uge;
    case Icmp::eq:
    case Icmp::ne:
    case Icmp::ult:
    case Icmp::ule:
    case Icmp::ugt:
    case Icmp::uge:
      break;
  }
  return compare;
}

/// An element of 8 or 16 bits that was loaded and then widened by `op`. Other numbers may be indices, whose
/// bounds the analysis knows best as they are.
struct Widened {
  Op op;
  Value from;
  ir::Type type;
};

std::optional<Widened> widened(const ir::Function& function, Value value) {
  const ir::Inst& inst = function[value];
  if (inst.op != Op::zext && inst.op != Op::sext) return std::nullopt;
  const ir::Inst& from = function[inst.args[0]];
  if ((from.op != Op::load && from.op != Op::extract) || ir::bit_size(from.type) > 16) return std::nullopt;
  return Widened{inst.op, inst.args[0], from.type};
}

/// The constant that `op` widens to `value`, if there is one.
std::optional<std::uint64_t> narrowed(const ir::Function& function, Value value, const Widened& like) {
  const ir::Inst& inst = function[value];
  if (inst.op != Op::constant) return std::nullopt;
  const unsigned bits = ir::bit_size(like.type), wide = ir::bit_size(inst.type);
  const std::uint64_t low = inst.imm & low_mask(bits);
  const std::uint64_t again =
      like.op == Op::zext ? low : static_cast<std::uint64_t>(ir::sign_extend(low, bits)) & low_mask(wide);
  return again == inst.imm ? std::optional(low) : std::nullopt;
}

/// The value that is compared in place of `value`; ir::kNone: there is none.
Value operand(FunctionBuilder& builder, Value value, const Widened& like) {
  if (const auto other = widened(builder.function, value))
    return other->op == like.op && other->type == like.type ? other->from : ir::kNone;
  const auto number = narrowed(builder.function, value, like);
  return number ? builder.constant(like.type, *number) : ir::kNone;
}

void narrow(FunctionBuilder& builder, Value compare) {
  std::optional<Widened> like;
  for (const Value arg : builder.function[compare].args)
    if (!like) like = widened(builder.function, arg);
  if (!like) return;
  const Value a = operand(builder, builder.function[compare].args[0], *like);
  const Value b = operand(builder, builder.function[compare].args[1], *like);
  if (a == ir::kNone || b == ir::kNone) return;
  ir::Inst& inst = builder.function[compare];
  inst.args = {a, b};
  // Numbers that are widened by zeros are not negative; sext keeps the order of unsigned numbers, too.
  if (like->op == Op::zext) inst.attr.icmp = as_unsigned(inst.attr.icmp);
}

}  // namespace

void narrow_compares(FunctionBuilder& builder) {
  for (const ir::BlockId block : order_blocks(builder.function).blocks)
    // Iterates by index: new constants reallocate the instructions, not the blocks.
    for (const Value value : builder.function.blocks[block].insts)
      if (builder.function[value].op == Op::icmp) narrow(builder, value);
}

}  // namespace quern::cpu::lower
