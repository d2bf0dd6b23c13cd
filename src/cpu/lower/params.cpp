// SPDX-License-Identifier: Apache-2.0
// Parameters: a kernel's in its parameter buffer, a function's .param arrays as variables, and the frame of
// an instance.
#include <algorithm>
#include <limits>

#include "cpu/lower/translator.hpp"

namespace quern::cpu::lower {

using ir::Op;
using ir::Value;

namespace {

constexpr std::uint32_t kGenericCopyAlign = 16;

std::uint32_t end_of(const Piece& piece) { return piece.offset + piece.size; }

ir::Type type_of_piece(const Piece& piece) { return integer_type(piece.size * 8); }

}  // namespace

void Translator::translate(std::uint32_t function) {
  Frame frame{.function = &program_.ptx().functions.at(function), .facts = &program_.facts(function)};
  draft_.function.name = frame.function->name;
  draft_.function.kernel = frame.function->entry;
  block_ = new_block();
  frame.return_block = new_block();
  frame_ = &frame;
  if (frame.function->entry) {
    exit_block_ = frame.return_block;
    lay_out_kernel_parameters(*frame.function);
  }
  if (calls_ == CallForm::activations) {
    regions_.record = draft_.new_variable(ir::Type::i64);
    write_variable(regions_.record, constant(ir::Type::i64, 0));
  }
  set_up(frame);
  if (frame.function->entry)
    copy_parameter_buffer(frame);
  else
    declare_arguments(frame);
  if (!frame.function->entry && frame.facts->ends_threads) declare_end(frame);
  translate_body();
  block_ = frame.return_block;
  emit_results(frame);
  end(Op::ret);
  translate_regions();
}

// "Kernel Function Parameters": in order, each at a multiple of its alignment.
void Translator::lay_out_kernel_parameters(const ptx::Function& function) {
  std::uint32_t offset = 0;
  for (const ptx::Variable& variable : function.parameters) {
    const std::uint32_t align = std::max(1u, variable.align);
    offset = static_cast<std::uint32_t>(align_up(offset, align));
    const auto size = static_cast<std::uint32_t>(variable.size_bytes());
    draft_.function.params.push_back({offset, size, align});
    offset += size;
  }
}

void Translator::set_up(Frame& frame) {
  const ptx::Function& function = *frame.function;
  frame.blocks.assign(function.body.size() + 1, ir::kNone);
  for (const ptx::Register& reg : function.registers) {
    const bool wide = reg.type == ptx::Type::b128;
    const ir::Type type = wide ? ir::Type::i64 : ir_type(reg.type);
    frame.registers.push_back(draft_.new_variable(type));
    for (int i = 1; i < reg.vector * (wide ? 2 : 1); ++i) draft_.new_variable(type);
  }
  frame.carry = draft_.new_variable(ir::Type::i1);
  for (const ptx::Variable& variable : function.variables) {
    std::uint32_t offset = 0;
    if (variable.space == ptx::Space::local)
      offset = reserve_local(frame, variable.size_bytes(), variable.align);
    frame.local_offsets.push_back(offset);
  }
  const auto allocates = [](const ptx::Instruction& i) { return i.opcode == ptx::Opcode::alloca; };
  if (std::any_of(function.body.begin(), function.body.end(), allocates)) {
    frame.stack_offset = reserve_local(frame, kStackBytes, kStackAlign);
    frame.stack_taken = draft_.new_variable(ir::Type::i64);
    write_variable(frame.stack_taken, constant(ir::Type::i64, 0));
  }
  if (!function.entry) set_up_params(frame, frame.parameters, function.parameters, frame.facts->parameters);
  set_up_params(frame, frame.returns, function.returns, frame.facts->returns);
  set_up_params(frame, frame.variables, function.variables, frame.facts->variables);
}

std::uint32_t Translator::reserve_local(Frame& frame, std::uint64_t size, std::uint32_t align) {
  const std::uint64_t offset = align_up(frame.local_end, align);
  // Oversized frames are rejected at the end (lower.cpp); until then the size must not wrap.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() / 2;
  frame.local_end = static_cast<std::uint32_t>(std::min(kMost, offset + std::min(kMost, size)));
  std::uint32_t& end = region_ == nullptr ? draft_.function.local_bytes : region_->local_end;
  end = std::max(end, frame.local_end);
  return static_cast<std::uint32_t>(offset);
}

void Translator::set_up_params(Frame& frame, std::vector<ParamArray>& arrays,
                               const std::vector<ptx::Variable>& variables,
                               const std::vector<ParamUse>& uses) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    ParamArray& array = arrays.emplace_back();
    const ptx::Variable& variable = variables[i];
    array.size = variable.size_bytes();
    if (variable.space == ptx::Space::reg) {
      const auto& registers = frame.function->registers;
      const auto same = [&](const ptx::Register& reg) { return reg.name == variable.name; };
      const auto reg = std::find_if(registers.begin(), registers.end(), same);
      if (reg == registers.end()) continue;
      const auto index = static_cast<std::size_t>(reg - registers.begin());
      array.slots.push_back({{0, ptx::byte_size(variable.type)}, frame.registers[index]});
      continue;
    }
    if (variable.space != ptx::Space::param) continue;
    for (const Piece& piece : uses[i].pieces) {
      array.slots.push_back({piece, draft_.new_variable(type_of_piece(piece))});
    }
    array.in_local = uses[i].address_taken && &arrays == &frame.parameters;
    if (array.in_local)
      array.local_offset = reserve_local(frame, variable.size_bytes(), std::max(8u, variable.align));
  }
}

ParamArray* Translator::param_array(const ptx::SymbolRef& symbol) {
  switch (symbol.kind) {
    case ptx::SymbolKind::parameter:
      return in_kernel() ? nullptr : &frame_->parameters.at(symbol.index);
    case ptx::SymbolKind::return_parameter:
      return &frame_->returns.at(symbol.index);
    case ptx::SymbolKind::function_variable:
      if (frame_->function->variables.at(symbol.index).space != ptx::Space::param) return nullptr;
      return &frame_->variables.at(symbol.index);
    default:
      return nullptr;
  }
}

/// The bytes [offset, offset + size of type), assembled from the pieces that hold them; bytes that were never
/// written read as 0.
Value Translator::read_param(const ParamArray& array, std::uint32_t offset, ir::Type type) {
  if (array.in_local) {
    const Value address = local_address(array.local_offset + std::uint64_t{offset});
    return emit(Op::load, type, {address}, {.space = ir::Space::local, .alignment = 1});
  }
  const std::uint32_t end = offset + ir::byte_size(type);
  const ir::Type bits = integer_type(ir::byte_size(type) * 8);
  Value result = constant(bits, 0);
  for (const ParamArray::Slot& slot : array.slots) {
    if (slot.piece.offset >= end || end_of(slot.piece) <= offset) continue;
    Value part = read_variable(slot.variable);
    if (slot.piece.offset == offset && end_of(slot.piece) == end) return resize(part, type, false);
    if (slot.piece.offset < offset) {
      part = emit(Op::lshr, type_of(part), {part, constant(ir::Type::i32, (offset - slot.piece.offset) * 8)});
    }
    part = resize(part, bits, false);
    if (slot.piece.offset > offset) {
      part = emit(Op::shl, bits, {part, constant(ir::Type::i32, (slot.piece.offset - offset) * 8)});
    }
    result = emit(Op::or_, bits, {result, part});
  }
  return resize(result, type, false);
}

void Translator::write_param(ParamArray& array, std::uint32_t offset, Value value) {
  if (array.in_local) {
    const Value address = local_address(array.local_offset + std::uint64_t{offset});
    emit(Op::store, ir::Type::none, {address, value}, {.space = ir::Space::local, .alignment = 1});
    return;
  }
  const ir::Type type = type_of(value);
  const std::uint32_t end = offset + ir::byte_size(type);
  const Value bits = ir::is_float(type) ? as(value, integer_type(ir::bit_size(type))) : value;
  for (const ParamArray::Slot& slot : array.slots) {
    if (slot.piece.offset < offset || end_of(slot.piece) > end) continue;
    const Value part =
        emit(Op::lshr, type_of(bits), {bits, constant(ir::Type::i32, (slot.piece.offset - offset) * 8)});
    write_variable(slot.variable, resize(part, draft_.variable_types[slot.variable], false));
  }
}

void Translator::declare_arguments(Frame& frame) {
  auto& types = draft_.function.argument_types;
  for (std::size_t i = 0; i < frame.parameters.size(); ++i) {
    ParamArray& array = frame.parameters[i];
    for (const ParamArray::Slot& slot : array.slots) {
      const ir::Type type = draft_.variable_types[slot.variable];
      const Value value = draft_.nullary(Op::arg, type, types.size());
      types.push_back(type);
      if (array.in_local)
        write_param(array, slot.piece.offset, value);
      else
        write_variable(slot.variable, value);
    }
  }
  for (const ParamArray& array : frame.returns) {
    for (const ParamArray::Slot& slot : array.slots)
      draft_.function.result_types.push_back(draft_.variable_types[slot.variable]);
  }
}

/// A thread that ends in a function that is called returns, and its last result says so: the caller has it
/// do the same.
void Translator::declare_end(Frame& frame) {
  const ir::BlockId body = block_;
  ended_ = draft_.new_variable(ir::Type::i32);
  write_variable(ended_, constant(ir::Type::i32, 0));
  exit_block_ = block_ = new_block();
  write_variable(ended_, constant(ir::Type::i32, 1));
  branch(frame.return_block);
  block_ = body;
  draft_.function.result_types.push_back(ir::Type::i32);
}

void Translator::emit_results(Frame& frame) {
  std::uint64_t index = 0;
  for (const ParamArray& array : frame.returns) {
    for (const ParamArray::Slot& slot : array.slots) {
      const Value value = read_variable(slot.variable);
      draft_.append(block_, {.op = Op::set_result, .imm = index++, .args = {value}, .location = location_});
    }
  }
  if (frame.function->entry || !frame.facts->ends_threads) return;
  const Value ended = read_variable(ended_);
  draft_.append(block_, {.op = Op::set_result, .imm = index, .args = {ended}, .location = location_});
}

/// The parameter buffer has no generic address here. A kernel that takes one works on a copy in local memory.
void Translator::copy_parameter_buffer(Frame& frame) {
  const auto& body = frame.function->body;
  const auto wants = [](const ptx::Instruction& i) {
    return i.opcode == ptx::Opcode::cvta && i.space() == ptx::Space::param && !i.has(ptx::Modifier::to);
  };
  if (frame.function->parameters.empty() || std::none_of(body.begin(), body.end(), wants)) return;
  const ir::Parameter& last = draft_.function.params.back();
  const auto bytes = static_cast<std::uint32_t>(align_up(last.offset + last.size, 8));
  parameter_copy_ = reserve_local(frame, bytes, kGenericCopyAlign);
  parameter_copy_bytes_ = bytes;
  for (std::uint32_t at = 0; at < bytes; at += 8) {
    const Value word = draft_.nullary(Op::param, ir::Type::i64, at);
    const Value address = draft_.nullary(Op::local_address, ir::Type::i64, parameter_copy_ + at);
    emit(Op::store, ir::Type::none, {address, word}, {.space = ir::Space::local, .alignment = 8});
  }
}

}  // namespace quern::cpu::lower
