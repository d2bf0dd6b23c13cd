// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/translate/operands.hpp"

#include <fmt/format.h>
#include <bit>

namespace quern::cpu::lower {

using ir::Op;
using ir::Value;

ir::Type ir_type(ptx::Type type) noexcept {
  switch (type) {
    case ptx::Type::f16:
      return ir::Type::f16;
    case ptx::Type::bf16:
      return ir::Type::bf16;
    case ptx::Type::f32:
      return ir::Type::f32;
    case ptx::Type::f64:
      return ir::Type::f64;
    default:
      break;
  }
  switch (ptx::kind(type)) {
    // These formats exist for matrices and conversions only; no operation computes with them.
    case ptx::TypeKind::floating:
    case ptx::TypeKind::opaque:
      return ir::Type::none;
    case ptx::TypeKind::packed:
      return half_of(type) == ptx::Type::none ? ir::Type::none : ir::Type::i32;
    default:
      return integer_type(ptx::bit_size(type));
  }
}

bool is_signed(ptx::Type type) noexcept { return ptx::kind(type) == ptx::TypeKind::signed_; }

ptx::Type half_of(ptx::Type type) noexcept {
  switch (type) {
    case ptx::Type::f16x2:
      return ptx::Type::f16;
    case ptx::Type::bf16x2:
      return ptx::Type::bf16;
    case ptx::Type::u16x2:
      return ptx::Type::u16;
    case ptx::Type::s16x2:
      return ptx::Type::s16;
    default:
      return ptx::Type::none;
  }
}

void Operands::begin(const ptx::Instruction& instruction) {
  instruction_ = &instruction;
  set_location(locations_.locate(*frame_, instruction));
}

void Operands::resume(const ptx::Instruction& instruction, std::uint32_t location) {
  instruction_ = &instruction;
  set_location(location);
}

void Operands::refuse(std::string_view reason) {
  refusals_.add(*frame_->function, *instruction_, builder().function.locations, location(), reason);
}

const ptx::Operand& Operands::operand(const ptx::Instruction& instruction, std::size_t index) {
  static const ptx::Operand none{};
  if (index < instruction.operands.size()) return instruction.operands[index];
  refuse(fmt::format("operand {} is missing", index + 1));
  return none;
}

Value Operands::read(const ptx::Operand& operand, ptx::Type type) {
  const ir::Type wanted = ir_type(type);
  if (wanted == ir::Type::none) {
    refuse(fmt::format("values of type .{} are not implemented", ptx::name(type)));
    return builder().nullary(Op::undef, ir::Type::i32, 0);
  }
  if (const auto* reg = operand.as<ptx::RegisterOperand>()) {
    const Value value = read_register(*reg);
    return resize(value, wanted, false);
  }
  if (const auto* number = operand.as<ptx::IntegerOperand>()) {
    if (wanted == ir::Type::i1) return constant(wanted, number->bits != 0 ? 1 : 0);
    return constant(wanted, number->bits);
  }
  if (const auto* number = operand.as<ptx::FloatOperand>()) return read_float(*number, type);
  if (const auto* special = operand.as<ptx::SpecialOperand>())
    return resize(read_special(special->which), wanted, false);
  if (const auto* symbol = operand.as<ptx::SymbolOperand>()) {
    return resize(symbol_address(symbol->symbol, symbol->offset), wanted, false);
  }
  refuse("an operand is not a value");
  return builder().nullary(Op::undef, wanted, 0);
}

Value Operands::read_register(const ptx::RegisterOperand& reg) {
  const ptx::Register& declared = frame_->function->registers.at(reg.index);
  if (ir_type(declared.type) == ir::Type::none) {
    refuse(fmt::format("register {} is of type .{}, which is not implemented", declared.name,
                       ptx::name(declared.type)));
    return builder().nullary(Op::undef, ir::Type::i32, 0);
  }
  if (reg.component >= declared.vector) {
    refuse("parts of registers are not implemented");
    return builder().nullary(Op::undef, ir_type(declared.type), 0);
  }
  const auto component = static_cast<Variable>(reg.component < 0 ? 0 : reg.component);
  const Value value = read_variable(frame_->registers[reg.index] + component);
  return reg.negated ? logical_not(value) : value;
}

Value Operands::read_float(const ptx::FloatOperand& number, ptx::Type type) {
  if (ptx::bit_size(type) == 32) {
    const auto single = static_cast<std::uint32_t>(number.bits);
    if (number.single) return constant(ir_type(type), single);
    return constant(ir_type(type),
                    std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(number.bits))));
  }
  if (ptx::bit_size(type) == 64) {
    if (!number.single) return constant(ir_type(type), number.bits);
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(number.bits));
    return constant(ir_type(type), std::bit_cast<std::uint64_t>(static_cast<double>(single)));
  }
  refuse(fmt::format("a floating-point constant of type .{} is not implemented", ptx::name(type)));
  return constant(ir_type(type), 0);
}

void Operands::write(const ptx::Operand& operand, Value value, bool sign_extended) {
  if (is_sink(operand)) return;
  const auto* reg = operand.as<ptx::RegisterOperand>();
  if (reg == nullptr) return refuse("the destination is not a register");
  const ptx::Register& declared = frame_->function->registers.at(reg->index);
  const ir::Type type = ir_type(declared.type);
  if (type == ir::Type::none) {
    return refuse(fmt::format("register {} is of type .{}, which is not implemented", declared.name,
                              ptx::name(declared.type)));
  }
  if (reg->component >= declared.vector) return refuse("parts of registers are not implemented");
  if (ir::bit_size(type) < ir::bit_size(type_of(value))) {
    return refuse(fmt::format("register {} is too narrow for the result", declared.name));
  }
  const auto component = static_cast<Variable>(reg->component < 0 ? 0 : reg->component);
  write_variable(frame_->registers[reg->index] + component, resize(value, type, sign_extended));
}

std::vector<ptx::Operand> Operands::elements(const ptx::Operand& operand) {
  if (const auto* list = operand.as<ptx::VectorOperand>()) return list->elements;
  if (const auto* pair = operand.as<ptx::PairOperand>()) return pair->elements;
  const auto* reg = operand.as<ptx::RegisterOperand>();
  if (reg == nullptr || reg->component >= 0) return {operand};
  const std::uint8_t count = frame_->function->registers.at(reg->index).vector;
  if (count <= 1) return {operand};
  std::vector<ptx::Operand> result;
  for (std::int8_t i = 0; i < count; ++i) result.push_back({ptx::RegisterOperand{reg->index, false, i}});
  return result;
}

ptx::Type Operands::register_type(const ptx::Operand& operand) const {
  const auto* reg = operand.as<ptx::RegisterOperand>();
  return reg == nullptr ? ptx::Type::none : frame_->function->registers.at(reg->index).type;
}

Value Operands::local_address(std::uint64_t offset) {
  return frame_->region == nullptr ? builder().nullary(Op::local_address, ir::Type::i64, offset)
                                   : record_field(offset);
}

Value Operands::record_field(std::uint64_t offset) {
  return emit(Op::iadd, ir::Type::i64, {read_variable(record_), constant(ir::Type::i64, offset)});
}

}  // namespace quern::cpu::lower
