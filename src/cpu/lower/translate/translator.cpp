// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/translate/translator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/forms.hpp"
#include "ptx/ptx.hpp"

namespace quern::cpu::lower {

using ir::BlockId;
using ir::Op;
using ir::Value;

namespace {

bool same_guard(const ptx::Guard& a, const std::optional<ptx::Guard>& b) {
  return b && a.register_index == b->register_index && a.negated == b->negated;
}

/// True if the target has the instruction flush subnormal f32 numbers without .ftz. PTX ISA, "Floating Point
/// Instructions": single precision of sm_1x has no subnormal numbers; "cvt": up to PTX 1.4 it did not flush
/// where source or destination has 64 bits. ptxas follows both when it translates such PTX for later targets.
bool flushes_by_target(const ptx::Module& module, std::uint16_t form, const ptx::Instruction& instruction) {
  if (module.sm >= 20) return false;
  const ptx::FormTable& table = ptx::FormTable::instance();
  if (!table.allows(table.all()[form], ptx::Modifier::ftz)) return false;
  const bool old = module.version_major == 1 && module.version_minor <= 4;
  const bool has_64_bits = std::any_of(instruction.types.begin(), instruction.types.end(),
                                       [](ptx::Type type) { return ptx::bit_size(type) == 64; });
  return instruction.opcode != ptx::Opcode::cvt || !old || !has_64_bits;
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

/// True if the instruction may change the register, since its destination names it.
bool may_write(const ptx::Instruction& instruction, std::uint32_t index) {
  return !instruction.operands.empty() && names_register(instruction.operands[0], index);
}

/// True if some lowered form of the opcode has the word.
bool is_lowered_with(ptx::Opcode opcode, std::size_t word) {
  const ptx::FormTable& table = ptx::FormTable::instance();
  const std::span<const ptx::Form> forms = table.forms_of(opcode);
  return std::any_of(forms.begin(), forms.end(), [&](const ptx::Form& form) {
    return ptx::refusal(form.lowering).empty() &&
           (form.any_words ||
            std::any_of(form.slots.begin(), form.slots.end(),
                        [&](const ptx::WordSlot& slot) { return table.set(slot.set)[word]; }));
  });
}

/// The reason why an instruction is not lowered: the reason of its form, or the word that no lowered form
/// has.
std::string why_not(const ptx::Instruction& instruction, std::uint16_t form_number) {
  const ptx::FormTable& table = ptx::FormTable::instance();
  const std::string_view opcode = ptx::name(instruction.opcode);
  const ptx::Lowering lowering =
      form_number == ptx::kNoForm ? ptx::Lowering::none : table.all()[form_number].lowering;
  if (lowering != ptx::Lowering::none) return std::string(ptx::refusal(lowering));
  const std::span<const ptx::Form> forms = table.forms_of(instruction.opcode);
  if (std::none_of(forms.begin(), forms.end(),
                   [](const ptx::Form& form) { return ptx::refusal(form.lowering).empty(); }))
    return fmt::format("'{}' is not implemented", opcode);
  for (const ptx::Modifier modifier : instruction.modifier_order)
    if (!is_lowered_with(instruction.opcode, ptx::word_index(modifier)))
      return fmt::format("'{}' with .{} is not implemented", opcode, ptx::name(modifier));
  for (const ptx::Type type : instruction.types)
    if (!is_lowered_with(instruction.opcode, ptx::word_index(type)))
      return fmt::format("'{}' with .{} is not implemented", opcode, ptx::name(type));
  return fmt::format("this form of '{}' is not implemented", opcode);
}

}  // namespace

Translator::Translator(Program& program, FunctionBuilder& builder, std::string_view file_name,
                       Diagnostics& diagnostics, FindRow find_row, CallForm calls)
    : Operands(program, builder, file_name, diagnostics),
      find_row_(find_row),
      call_form_(calls),
      params_(*this),
      frames_(*this, params_),
      activations_(*this, params_, frames_, [this] { translate_body(); }),
      calls_(*this, params_, frames_, activations_, calls, [this] { translate_body(); }) {}

void Translator::translate(std::uint32_t function) {
  Frame frame{.function = &program().ptx().functions.at(function), .facts = &program().facts(function)};
  builder().function.name = frame.function->name;
  builder().function.kernel = frame.function->entry;
  set_block(new_block());
  frame.return_block = new_block();
  set_frame(&frame);
  if (frame.function->entry) {
    frames_.set_exit_block(frame.return_block);
    frames_.lay_out_kernel_parameters(*frame.function);
  }
  if (call_form_ == CallForm::activations) activations_.begin();
  frames_.set_up(frame);
  if (frame.function->entry)
    frames_.copy_parameter_buffer(frame);
  else
    frames_.declare_arguments(frame);
  if (!frame.function->entry && frame.facts->ends_threads) frames_.declare_end(frame);
  translate_body();
  set_block(frame.return_block);
  frames_.emit_results(frame);
  end(Op::ret);
  activations_.finish();
}

void Translator::end_function() { branch(frame().return_block); }

void Translator::end_thread() { branch(frames_.exit_block()); }

BlockId Translator::label_block(const ptx::SymbolRef& label) {
  const std::uint32_t position = frame().function->labels.at(label.index).position;
  BlockId& block = frame().blocks.at(position);
  if (block == ir::kNone) block = new_block();
  return block;
}

Value Translator::guard_value(const ptx::Guard& guard) {
  return read({ptx::RegisterOperand{guard.register_index, guard.negated, -1}}, ptx::Type::pred);
}

void Translator::translate_body() {
  const auto size = frame().function->body.size();
  for (std::size_t position = 0; position < size;) {
    if (frame().facts->is_target[position]) {
      BlockId& target = frame().blocks[position];
      if (target == ir::kNone) target = new_block();
      if (block() != ir::kNone) branch(target);
      set_block(target);
    }
    // Code after a terminator is unreachable until the next label.
    position = block() == ir::kNone ? position + 1 : translate_at(position);
  }
  if (frame().facts->is_target[size] && frame().blocks[size] != ir::kNone) {
    if (block() != ir::kNone) branch(frame().blocks[size]);
    set_block(frame().blocks[size]);
  }
  if (block() != ir::kNone) end_function();
}

std::size_t Translator::translate_at(std::size_t position) {
  const ptx::Instruction& instruction = frame().function->body[position];
  begin(instruction);
  const Row* row = find_row_(form_of(instruction));
  if (!instruction.guard || row == nullptr || row->kind == Kind::control) {
    lower(instruction);
    return position + 1;
  }
  if (row->kind == Kind::pure) {
    set_guard(guard_value(*instruction.guard));
    lower(instruction);
    set_guard(ir::kNone);
    return position + 1;
  }
  const std::size_t end = guarded_run_end(position);
  translate_guarded(position, end);
  return end;
}

std::size_t Translator::guarded_run_end(std::size_t position) {
  const auto& body = frame().function->body;
  const ptx::Guard guard = *body[position].guard;
  std::size_t end = position + 1;
  while (end < body.size() && same_guard(guard, body[end].guard) && !frame().facts->is_target[end] &&
         !may_write(body[end - 1], guard.register_index)) {
    const Row* row = find_row_(form_of(body[end]));
    if (row == nullptr || row->kind == Kind::control) break;
    ++end;
  }
  return end;
}

void Translator::translate_guarded(std::size_t first, std::size_t end) {
  const ptx::Guard& guard = *frame().function->body[first].guard;
  const BlockId inside = new_block();
  const BlockId after = new_block();
  const Value condition = guard_value({guard.register_index, false});
  if (guard.negated)
    branch_if(condition, after, inside);
  else
    branch_if(condition, inside, after);
  set_block(inside);
  for (std::size_t position = first; position < end && block() != ir::kNone; ++position) {
    const ptx::Instruction& instruction = frame().function->body[position];
    begin(instruction);
    lower(instruction);
  }
  if (block() != ir::kNone) branch(after);
  set_block(after);
}

std::uint16_t Translator::form_of(const ptx::Instruction& instruction) {
  if (instruction.form != ptx::kNoForm) return instruction.form;
  return ptx::match_form(program().ptx(), *frame().function, instruction);
}

void Translator::lower(const ptx::Instruction& instruction) {
  const std::uint16_t form = form_of(instruction);
  const Row* row = find_row_(form);
  if (row == nullptr) return refuse(why_not(instruction, form));
  if (!flushes_by_target(program().ptx(), form, instruction)) return row->lower(*this, instruction);
  ptx::Instruction flushing = instruction;
  flushing.modifiers.set(static_cast<std::size_t>(ptx::Modifier::ftz));
  row->lower(*this, flushing);
}

}  // namespace quern::cpu::lower
