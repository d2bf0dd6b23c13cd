// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/translate/ir_builder.hpp"

namespace quern::cpu::lower {

using ir::BlockId;
using ir::Op;
using ir::Value;

ir::Type integer_type(std::uint32_t bits) noexcept {
  switch (bits) {
    case 1:
      return ir::Type::i1;
    case 8:
      return ir::Type::i8;
    case 16:
      return ir::Type::i16;
    case 32:
      return ir::Type::i32;
    case 64:
      return ir::Type::i64;
    default:
      return ir::Type::none;
  }
}

Value IrBuilder::emit(Op op, ir::Type type, std::initializer_list<Value> args, ir::Attributes attr,
                      std::uint64_t imm) {
  return emit(op, type, std::vector<Value>(args), attr, imm);
}

Value IrBuilder::emit(Op op, ir::Type type, std::vector<Value> args, ir::Attributes attr, std::uint64_t imm) {
  ir::Inst inst{
      .op = op, .type = type, .attr = attr, .imm = imm, .args = std::move(args), .location = location_};
  if (const Value known = fold(builder_, inst); known != ir::kNone) return known;
  return builder_.append(block_, std::move(inst));
}

Value IrBuilder::as(Value value, ir::Type type) { return emit(Op::bitcast, type, {value}); }

Value IrBuilder::resize(Value value, ir::Type type, bool sign_extended) {
  const ir::Type from = type_of(value);
  if (from == type) return value;
  const std::uint32_t from_bits = ir::bit_size(from);
  const std::uint32_t to_bits = ir::bit_size(type);
  if (from_bits == to_bits) return as(value, type);
  const Value bits = ir::is_float(from) ? as(value, integer_type(from_bits)) : value;
  const Op op = from_bits > to_bits ? Op::trunc : sign_extended ? Op::sext : Op::zext;
  return as(emit(op, integer_type(to_bits), {bits}), type);
}

Value IrBuilder::logical_not(Value value) {
  const ir::Type type = type_of(value);
  return emit(Op::xor_, type, {value, constant(type, ~std::uint64_t{0})});
}

Value IrBuilder::compare(ir::Icmp how, Value a, Value b) {
  return emit(Op::icmp, ir::Type::i1, {a, b}, {.icmp = how});
}

Value IrBuilder::select(Value condition, Value yes, Value no) {
  return emit(Op::select, type_of(yes), {condition, yes, no});
}

void IrBuilder::write_variable(Variable variable, Value value) {
  if (guard_ != ir::kNone) value = select(guard_, value, read_variable(variable));
  builder_.write(variable, block_, value);
}

void IrBuilder::branch(BlockId to) {
  builder_.append(block_, {.op = Op::br, .location = location_});
  builder_.connect(block_, to);
  block_ = ir::kNone;
}

void IrBuilder::branch_if(Value condition, BlockId yes, BlockId no) {
  if (yes == no) return branch(yes);
  builder_.append(block_, {.op = Op::cond_br, .args = {condition}, .location = location_});
  builder_.connect(block_, yes);
  builder_.connect(block_, no);
  block_ = ir::kNone;
}

void IrBuilder::switch_to(Value index, const std::vector<BlockId>& targets) {
  builder_.append(block_, {.op = Op::switch_br, .args = {index}, .location = location_});
  for (const BlockId target : targets) builder_.connect(block_, target);
  block_ = ir::kNone;
}

void IrBuilder::end(Op op, std::uint64_t imm) {
  builder_.append(block_, {.op = op, .imm = imm, .location = location_});
  block_ = ir::kNone;
}

void IrBuilder::fault(ir::Trap kind) {
  emit(Op::host_call, ir::Type::none, {constant(ir::Type::i64, static_cast<std::uint64_t>(kind))}, {},
       static_cast<std::uint64_t>(ir::HostCall::fault));
}

}  // namespace quern::cpu::lower
