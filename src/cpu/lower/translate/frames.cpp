// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/translate/frames.hpp"

#include <algorithm>
#include <limits>

#include "cpu/lower/translate/activations.hpp"

namespace quern::cpu::lower {

using ir::Op;
using ir::Value;

namespace {

constexpr std::uint32_t kGenericCopyAlign = 16;

ir::Type type_of_piece(const Piece& piece) { return integer_type(piece.size * 8); }

}  // namespace

void Frames::lay_out_kernel_parameters(const ptx::Function& function) {
  std::uint32_t offset = 0;
  for (const ptx::Variable& variable : function.parameters) {
    const std::uint32_t align = std::max(1u, variable.align);
    offset = static_cast<std::uint32_t>(align_up(offset, align));
    const auto size = static_cast<std::uint32_t>(variable.size_bytes());
    t_.builder().function.params.push_back({offset, size, align});
    offset += size;
  }
}

void Frames::set_up(Frame& frame) {
  const ptx::Function& function = *frame.function;
  frame.blocks.assign(function.body.size() + 1, ir::kNone);
  for (const ptx::Register& reg : function.registers) {
    const bool wide = reg.type == ptx::Type::b128;
    const ir::Type type = wide ? ir::Type::i64 : ir_type(reg.type);
    frame.registers.push_back(t_.builder().new_variable(type));
    for (int i = 1; i < reg.vector * (wide ? 2 : 1); ++i) t_.builder().new_variable(type);
  }
  frame.carry = t_.builder().new_variable(ir::Type::i1);
  for (const ptx::Variable& variable : function.variables) {
    std::uint32_t offset = 0;
    if (variable.space == ptx::Space::local)
      offset = reserve_local(frame, variable.size_bytes(), variable.align);
    frame.local_offsets.push_back(offset);
  }
  const auto allocates = [](const ptx::Instruction& i) { return i.opcode == ptx::Opcode::alloca; };
  if (std::any_of(function.body.begin(), function.body.end(), allocates)) {
    frame.stack_offset = reserve_local(frame, kStackBytes, kStackAlign);
    frame.stack_taken = t_.builder().new_variable(ir::Type::i64);
    t_.write_variable(frame.stack_taken, t_.constant(ir::Type::i64, 0));
  }
  if (!function.entry) set_up_params(frame, frame.parameters, function.parameters, frame.facts->parameters);
  set_up_params(frame, frame.returns, function.returns, frame.facts->returns);
  set_up_params(frame, frame.variables, function.variables, frame.facts->variables);
}

std::uint32_t Frames::reserve_local(Frame& frame, std::uint64_t size, std::uint32_t align) {
  const std::uint64_t offset = align_up(frame.local_end, align);
  // lower.cpp rejects oversized frames later; until then the size must not wrap.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() / 2;
  frame.local_end = static_cast<std::uint32_t>(std::min(kMost, offset + std::min(kMost, size)));
  std::uint32_t& end = frame.region == nullptr ? t_.builder().function.local_bytes : frame.region->local_end;
  end = std::max(end, frame.local_end);
  return static_cast<std::uint32_t>(offset);
}

void Frames::set_up_params(Frame& frame, std::vector<ParamArray>& arrays,
                           const std::vector<ptx::Variable>& variables, const std::vector<ParamUse>& uses) {
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
      Variable element = frame.registers[index];
      for (const Piece& piece : pieces_of_registers(variable)) array.slots.push_back({piece, element++});
      continue;
    }
    if (variable.space != ptx::Space::param) continue;
    for (const Piece& piece : uses[i].pieces) {
      array.slots.push_back({piece, t_.builder().new_variable(type_of_piece(piece))});
    }
    array.in_local = uses[i].address_taken && &arrays == &frame.parameters;
    if (array.in_local)
      array.local_offset = reserve_local(frame, variable.size_bytes(), std::max(8u, variable.align));
  }
}

void Frames::declare_arguments(Frame& frame) {
  auto& types = t_.builder().function.argument_types;
  for (std::size_t i = 0; i < frame.parameters.size(); ++i) {
    ParamArray& array = frame.parameters[i];
    for (const ParamArray::Slot& slot : array.slots) {
      const ir::Type type = t_.variable_type(slot.variable);
      const Value value = t_.builder().nullary(Op::arg, type, types.size());
      types.push_back(type);
      if (array.in_local)
        params_.write(array, slot.piece.offset, value);
      else
        t_.write_variable(slot.variable, value);
    }
  }
  for (const ParamArray& array : frame.returns) {
    for (const ParamArray::Slot& slot : array.slots)
      t_.builder().function.result_types.push_back(t_.variable_type(slot.variable));
  }
}

void Frames::declare_end(Frame& frame) {
  const ir::BlockId body = t_.block();
  ended_ = t_.builder().new_variable(ir::Type::i32);
  t_.write_variable(ended_, t_.constant(ir::Type::i32, 0));
  exit_block_ = t_.new_block();
  t_.set_block(exit_block_);
  t_.write_variable(ended_, t_.constant(ir::Type::i32, 1));
  t_.branch(frame.return_block);
  t_.set_block(body);
  t_.builder().function.result_types.push_back(ir::Type::i32);
}

void Frames::emit_results(Frame& frame) {
  std::uint64_t index = 0;
  for (const ParamArray& array : frame.returns) {
    for (const ParamArray::Slot& slot : array.slots) {
      const Value value = t_.read_variable(slot.variable);
      t_.builder().append(t_.block(),
                          {.op = Op::set_result, .imm = index++, .args = {value}, .location = t_.location()});
    }
  }
  if (frame.function->entry || !frame.facts->ends_threads) return;
  const Value ended = t_.read_variable(ended_);
  t_.builder().append(t_.block(),
                      {.op = Op::set_result, .imm = index, .args = {ended}, .location = t_.location()});
}

void Frames::copy_parameter_buffer(Frame& frame) {
  const auto& body = frame.function->body;
  const auto wants = [](const ptx::Instruction& i) {
    return i.opcode == ptx::Opcode::cvta && i.space() == ptx::Space::param && !i.has(ptx::Modifier::to);
  };
  if (frame.function->parameters.empty() || std::none_of(body.begin(), body.end(), wants)) return;
  const ir::Parameter& last = t_.builder().function.params.back();
  const auto bytes = static_cast<std::uint32_t>(align_up(last.offset + last.size, 8));
  parameter_copy_ = reserve_local(frame, bytes, kGenericCopyAlign);
  parameter_copy_bytes_ = bytes;
  for (std::uint32_t at = 0; at < bytes; at += 8) {
    const Value word = t_.builder().nullary(Op::param, ir::Type::i64, at);
    const Value address = t_.builder().nullary(Op::local_address, ir::Type::i64, parameter_copy_ + at);
    t_.emit(Op::store, ir::Type::none, {address, word}, {.space = ir::Space::local, .alignment = 8});
  }
}

}  // namespace quern::cpu::lower
