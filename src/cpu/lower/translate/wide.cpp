// SPDX-License-Identifier: Apache-2.0
// Values of type .b128, which instructions only move. Each is two words, and each word is a variable.
#include "cpu/lower/translate/wide.hpp"

namespace quern::cpu::lower {

using ir::Op;
using ir::Type;
using ir::Value;
using Wide = Operands::Wide;

Wide Operands::read_wide(const ptx::Operand& operand) {
  if (const auto* number = operand.as<ptx::IntegerOperand>()) {
    const bool negative = !number->is_unsigned && static_cast<std::int64_t>(number->bits) < 0;
    return {constant(Type::i64, number->bits), constant(Type::i64, negative ? ~std::uint64_t{0} : 0)};
  }
  const auto* reg = operand.as<ptx::RegisterOperand>();
  if (reg == nullptr || register_type(operand) != ptx::Type::b128) {
    refuse("the operand is not a register of 128 bits");
    return {constant(Type::i64, 0), constant(Type::i64, 0)};
  }
  const Variable low = frame_->registers[reg->index];
  return {read_variable(low), read_variable(low + 1)};
}

void Operands::write_wide(const ptx::Operand& operand, const Wide& value) {
  if (is_sink(operand)) return;
  const auto* reg = operand.as<ptx::RegisterOperand>();
  if (reg == nullptr || register_type(operand) != ptx::Type::b128)
    return refuse("the destination is not a register of 128 bits");
  const Variable low = frame_->registers[reg->index];
  write_variable(low, value[0]);
  write_variable(low + 1, value[1]);
}

namespace {

/// For a value in `count` parts: the number of bits of a part, and its type.
std::uint32_t part_bits(std::size_t count) { return 128 / static_cast<std::uint32_t>(count); }
ptx::Type part_type(std::uint32_t bits) { return bits == 64 ? ptx::Type::b64 : ptx::Type::b32; }

/// Packs the parts; the first element is the least significant.
Wide pack(Translator& t, const std::vector<ptx::Operand>& elements) {
  const std::uint32_t bits = part_bits(elements.size());
  Wide result{t.constant(Type::i64, 0), t.constant(Type::i64, 0)};
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto at = static_cast<std::uint32_t>(i) * bits;
    const Value part = t.resize(t.read(elements[i], part_type(bits)), Type::i64, false);
    Value& word = result[at / 64];
    word = t.emit(Op::or_, Type::i64,
                  {word, t.emit(Op::shl, Type::i64, {part, t.constant(Type::i32, at % 64)})});
  }
  return result;
}

void unpack(Translator& t, const std::vector<ptx::Operand>& elements, const Wide& value) {
  const std::uint32_t bits = part_bits(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto at = static_cast<std::uint32_t>(i) * bits;
    const Value shifted = t.emit(Op::lshr, Type::i64, {value[at / 64], t.constant(Type::i32, at % 64)});
    t.write(elements[i], t.resize(shifted, integer_type(bits), false));
  }
}

}  // namespace

bool is_wide(ptx::Type type) noexcept { return type == ptx::Type::b128; }

void move_wide(Translator& t, const ptx::Instruction& in) {
  const auto to = t.elements(t.operand(in, 0));
  const auto from = t.elements(t.operand(in, 1));
  const Wide value = from.size() > 1 ? pack(t, from) : t.read_wide(from[0]);
  if (to.size() > 1) return unpack(t, to, value);
  t.write_wide(to[0], value);
}

}  // namespace quern::cpu::lower
