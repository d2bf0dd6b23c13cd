// SPDX-License-Identifier: Apache-2.0
// Bodies: blocks, labels, guards, and ends of functions.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "cpu/lower/translator.hpp"

namespace quern::cpu::lower {

using ir::BlockId;
using ir::Op;
using ir::Value;

namespace {

bool same_guard(const ptx::Guard& a, const std::optional<ptx::Guard>& b) {
  return b && a.register_index == b->register_index && a.negated == b->negated;
}

bool names_register(const ptx::Operand& operand, std::uint32_t index) {
  if (const auto* reg = operand.as<ptx::RegisterOperand>()) return reg->index == index;
  const auto any = [index](const std::vector<ptx::Operand>& elements) {
    return std::any_of(elements.begin(), elements.end(),
                       [index](const ptx::Operand& o) { return names_register(o, index); });
  };
  if (const auto* list = operand.as<ptx::VectorOperand>()) return any(list->elements);
  if (const auto* pair = operand.as<ptx::PairOperand>()) return any(pair->elements);
  return false;
}

/// May change the register: it is named in the destination.
bool may_write(const ptx::Instruction& instruction, std::uint32_t index) {
  return !instruction.operands.empty() && names_register(instruction.operands[0], index);
}

/// The reason why an instruction is deliberately not supported.
std::string why_not(ptx::Opcode opcode) {
  using Opcode = ptx::Opcode;
  struct Family {
    std::string_view reason;
    std::initializer_list<Opcode> opcodes;
  };
  static const Family kFamilies[] = {
      {"textures and surfaces are not supported",
       {Opcode::tex, Opcode::tld4, Opcode::txq, Opcode::istypep, Opcode::suld, Opcode::sust, Opcode::sured,
        Opcode::suq}},
      {"matrix instructions (tensor cores) are not supported",
       {Opcode::mma, Opcode::wmma, Opcode::ldmatrix, Opcode::stmatrix, Opcode::movmatrix, Opcode::wgmma,
        Opcode::tcgen05}},
      {"it needs a target above sm_89",
       {Opcode::elect, Opcode::mapa, Opcode::getctarank, Opcode::multimem, Opcode::tensormap,
        Opcode::griddepcontrol, Opcode::clusterlaunchcontrol, Opcode::setmaxnreg}},
  };
  for (const Family& family : kFamilies)
    if (std::find(family.opcodes.begin(), family.opcodes.end(), opcode) != family.opcodes.end())
      return std::string(family.reason);
  return fmt::format("'{}' is not implemented", ptx::name(opcode));
}

/// The first modifier that the row does not know, or null.
const ptx::Modifier* unknown_modifier(const Row& row, const ptx::Instruction& instruction) {
  for (const ptx::Modifier& modifier : instruction.modifier_order) {
    if (std::find(row.modifiers.begin(), row.modifiers.end(), modifier) == row.modifiers.end())
      return &modifier;
  }
  return nullptr;
}

}  // namespace

void Translator::branch(BlockId to) {
  draft_.append(block_, {.op = Op::br, .location = location_});
  draft_.connect(block_, to);
  block_ = ir::kNone;
}

void Translator::branch_if(Value condition, BlockId yes, BlockId no) {
  if (yes == no) return branch(yes);
  draft_.append(block_, {.op = Op::cond_br, .args = {condition}, .location = location_});
  draft_.connect(block_, yes);
  draft_.connect(block_, no);
  block_ = ir::kNone;
}

void Translator::switch_to(Value index, const std::vector<BlockId>& targets) {
  draft_.append(block_, {.op = Op::switch_br, .args = {index}, .location = location_});
  for (const BlockId target : targets) draft_.connect(block_, target);
  block_ = ir::kNone;
}

void Translator::end(Op op, std::uint64_t imm) {
  draft_.append(block_, {.op = op, .imm = imm, .location = location_});
  block_ = ir::kNone;
}

void Translator::fault(ir::Trap kind) {
  emit(Op::host_call, ir::Type::none, {constant(ir::Type::i64, static_cast<std::uint64_t>(kind))}, {},
       static_cast<std::uint64_t>(ir::HostCall::fault));
}

void Translator::end_function() { branch(frame_->return_block); }

void Translator::end_thread() { branch(exit_block_); }

BlockId Translator::label_block(const ptx::SymbolRef& label) {
  const std::uint32_t position = frame_->function->labels.at(label.index).position;
  BlockId& block = frame_->blocks.at(position);
  if (block == ir::kNone) block = new_block();
  return block;
}

Value Translator::guard_value(const ptx::Guard& guard) {
  return read({ptx::RegisterOperand{guard.register_index, guard.negated, -1}}, ptx::Type::pred);
}

void Translator::translate_body() {
  const auto size = frame_->function->body.size();
  for (std::size_t position = 0; position < size;) {
    if (frame_->facts->is_target[position]) {
      BlockId& block = frame_->blocks[position];
      if (block == ir::kNone) block = new_block();
      if (block_ != ir::kNone) branch(block);
      block_ = block;
    }
    // Code after a terminator is dead until the next label.
    position = block_ == ir::kNone ? position + 1 : translate_at(position);
  }
  if (frame_->facts->is_target[size] && frame_->blocks[size] != ir::kNone) {
    if (block_ != ir::kNone) branch(frame_->blocks[size]);
    block_ = frame_->blocks[size];
  }
  if (block_ != ir::kNone) end_function();
}

/// Translates the instruction there and any that share its guarded block; returns the position after them.
std::size_t Translator::translate_at(std::size_t position) {
  const ptx::Instruction& instruction = frame_->function->body[position];
  instruction_ = &instruction;
  location_ = locate(instruction);
  const Row* row = row_of(instruction);
  if (!instruction.guard || row == nullptr || row->kind == Kind::control) {
    lower(instruction);
    return position + 1;
  }
  if (row->kind == Kind::pure) {
    guard_ = guard_value(*instruction.guard);
    lower(instruction);
    guard_ = ir::kNone;
    return position + 1;
  }
  const std::size_t end = guarded_run_end(position);
  translate_guarded(position, end);
  return end;
}

/// Neighbours under one guard share a block, as long as nothing changes the predicate in between.
std::size_t Translator::guarded_run_end(std::size_t position) const {
  const auto& body = frame_->function->body;
  const ptx::Guard guard = *body[position].guard;
  std::size_t end = position + 1;
  while (end < body.size() && same_guard(guard, body[end].guard) && !frame_->facts->is_target[end] &&
         !may_write(body[end - 1], guard.register_index)) {
    const Row* row = row_of(body[end]);
    if (row == nullptr || row->kind == Kind::control) break;
    ++end;
  }
  return end;
}

void Translator::translate_guarded(std::size_t begin, std::size_t end) {
  const ptx::Guard& guard = *frame_->function->body[begin].guard;
  const BlockId inside = new_block();
  const BlockId after = new_block();
  const Value condition = guard_value({guard.register_index, false});
  if (guard.negated)
    branch_if(condition, after, inside);
  else
    branch_if(condition, inside, after);
  block_ = inside;
  for (std::size_t position = begin; position < end && block_ != ir::kNone; ++position) {
    instruction_ = &frame_->function->body[position];
    location_ = locate(*instruction_);
    lower(*instruction_);
  }
  if (block_ != ir::kNone) branch(after);
  block_ = after;
}

void Translator::lower(const ptx::Instruction& instruction) {
  const Row* row = row_of(instruction);
  if (row == nullptr) return refuse(why_not(instruction.opcode));
  if (const ptx::Modifier* modifier = unknown_modifier(*row, instruction)) {
    return refuse(
        fmt::format("'{}' with .{} is not implemented", ptx::name(instruction.opcode), ptx::name(*modifier)));
  }
  if (instruction.types.size() > row->types) {
    return refuse(fmt::format("'{}' with operands of different types is not implemented",
                              ptx::name(instruction.opcode)));
  }
  row->lower(*this, instruction);
}

}  // namespace quern::cpu::lower
