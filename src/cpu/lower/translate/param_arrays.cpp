// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/translate/param_arrays.hpp"

namespace quern::cpu::lower {

using ir::Op;
using ir::Value;

namespace {

std::uint32_t end_of(const Piece& piece) { return piece.offset + piece.size; }

}  // namespace

std::vector<Piece> pieces_of_registers(const ptx::Variable& parameter) {
  const std::uint32_t size = ptx::byte_size(parameter.type);
  std::vector<Piece> pieces;
  for (std::uint32_t i = 0; i < parameter.vector; ++i) pieces.push_back({i * size, size});
  return pieces;
}

ParamArray* ParamArrays::find(const ptx::SymbolRef& symbol) {
  switch (symbol.kind) {
    case ptx::SymbolKind::parameter:
      return t_.in_kernel() ? nullptr : &t_.frame().parameters.at(symbol.index);
    case ptx::SymbolKind::return_parameter:
      return &t_.frame().returns.at(symbol.index);
    case ptx::SymbolKind::function_variable:
      if (t_.frame().function->variables.at(symbol.index).space != ptx::Space::param) return nullptr;
      return &t_.frame().variables.at(symbol.index);
    default:
      return nullptr;
  }
}

Value ParamArrays::read(const ParamArray& array, std::uint32_t offset, ir::Type type) {
  if (array.in_local) {
    const Value address = t_.local_address(array.local_offset + std::uint64_t{offset});
    return t_.emit(Op::load, type, {address}, {.space = ir::Space::local, .alignment = 1});
  }
  const std::uint32_t end = offset + ir::byte_size(type);
  const ir::Type bits = integer_type(ir::byte_size(type) * 8);
  Value result = t_.constant(bits, 0);
  for (const ParamArray::Slot& slot : array.slots) {
    if (slot.piece.offset >= end || end_of(slot.piece) <= offset) continue;
    Value part = t_.read_variable(slot.variable);
    if (slot.piece.offset == offset && end_of(slot.piece) == end) return t_.resize(part, type, false);
    if (slot.piece.offset < offset) {
      part = t_.emit(Op::lshr, t_.type_of(part),
                     {part, t_.constant(ir::Type::i32, (offset - slot.piece.offset) * 8)});
    }
    part = t_.resize(part, bits, false);
    if (slot.piece.offset > offset) {
      part = t_.emit(Op::shl, bits, {part, t_.constant(ir::Type::i32, (slot.piece.offset - offset) * 8)});
    }
    result = t_.emit(Op::or_, bits, {result, part});
  }
  return t_.resize(result, type, false);
}

void ParamArrays::write(ParamArray& array, std::uint32_t offset, Value value) {
  if (array.in_local) {
    const Value address = t_.local_address(array.local_offset + std::uint64_t{offset});
    t_.emit(Op::store, ir::Type::none, {address, value}, {.space = ir::Space::local, .alignment = 1});
    return;
  }
  const ir::Type type = t_.type_of(value);
  const std::uint32_t end = offset + ir::byte_size(type);
  const Value bits = ir::is_float(type) ? t_.as(value, integer_type(ir::bit_size(type))) : value;
  for (const ParamArray::Slot& slot : array.slots) {
    if (slot.piece.offset < offset || end_of(slot.piece) > end) continue;
    const Value part = t_.emit(Op::lshr, t_.type_of(bits),
                               {bits, t_.constant(ir::Type::i32, (slot.piece.offset - offset) * 8)});
    t_.write_variable(slot.variable, t_.resize(part, t_.variable_type(slot.variable), false));
  }
}

ParamArray ParamArrays::make(const ParamUse& use) {
  ParamArray array;
  for (const Piece& piece : use.pieces)
    array.slots.push_back({piece, t_.builder().new_variable(integer_type(piece.size * 8))});
  return array;
}

void ParamArrays::store_argument(ParamArray& to, const ptx::Variable& formal, const ptx::Operand& actual) {
  const auto* symbol = actual.as<ptx::SymbolOperand>();
  const ParamArray* from = symbol == nullptr ? nullptr : find(symbol->symbol);
  if (from == nullptr) {
    std::uint32_t offset = 0;
    for (const ptx::Operand& element : t_.elements(actual)) {
      write(to, offset, t_.read(element, formal.type));
      offset += ptx::byte_size(formal.type);
    }
    return;
  }
  for (const ParamArray::Slot& slot : to.slots) {
    write(to, slot.piece.offset, read(*from, slot.piece.offset, t_.variable_type(slot.variable)));
  }
}

void ParamArrays::fetch_result(const ParamArray& from, const ptx::Variable& formal,
                               const ptx::Operand& destination) {
  const auto* symbol = destination.as<ptx::SymbolOperand>();
  ParamArray* to = symbol == nullptr ? nullptr : find(symbol->symbol);
  if (to == nullptr) {
    std::uint32_t offset = 0;
    for (const ptx::Operand& element : t_.elements(destination)) {
      t_.write(element, read(from, offset, ir_type(formal.type)), is_signed(formal.type));
      offset += ptx::byte_size(formal.type);
    }
    return;
  }
  for (const ParamArray::Slot& slot : to->slots) {
    write(*to, slot.piece.offset, read(from, slot.piece.offset, t_.variable_type(slot.variable)));
  }
}

}  // namespace quern::cpu::lower
