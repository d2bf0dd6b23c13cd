// SPDX-License-Identifier: Apache-2.0
// Translates instructions to IR, one at a time. Each part of the work has a class:
//
//   IrBuilder        instructions, variables and branches of the IR
//   Operands         a PTX operand as a value; source locations and refusals (SourceLocations, Refusals)
//   ParamArrays      .param arrays of calls
//   Frames           the variables and the memory of a function
//   Activations      functions that are called without a machine stack
//   Calls            call instructions
//   Translator       bodies: blocks, labels, guards
//
// The families of instructions (integer.cpp, memory.cpp, ...) are functions over Translator.
#pragma once

#include "cpu/lower/translate/calls.hpp"

namespace quern::cpu::lower {

class Translator;

/// The ways in which a guarded instruction is lowered.
enum class Kind : std::uint8_t {
  pure,     ///< executed unconditionally; the guard selects its result
  effect,   ///< executed in a separate block
  control,  ///< the instruction handles its guard itself
};

/// The function that lowers those forms of an opcode that isa.def assigns to the row's family.
struct Row {
  ptx::Opcode opcode;
  Kind kind;
  void (*lower)(Translator&, const ptx::Instruction&);
};
/// Returns the row that lowers the form number `form` of isa.def, or null for a refused form or ptx::kNoForm.
using FindRow = const Row* (*)(std::uint16_t form);

class Translator final : public Operands {
 public:
  Translator(Program& program, FunctionBuilder& builder, std::string_view file_name, Diagnostics& diagnostics,
             FindRow find_row, CallForm calls = CallForm::functions);

  /// Translates `function` (a kernel or a recursive function) as the function under construction.
  void translate(std::uint32_t function);

  ParamArrays& params() { return params_; }
  const Frames& frames() const { return frames_; }
  Calls& calls() { return calls_; }

  /// Ends the current PTX function (`ret`) or the thread (`exit`).
  void end_function();
  void end_thread();
  ir::BlockId label_block(const ptx::SymbolRef& label);

 private:
  void translate_body();
  std::size_t translate_at(std::size_t position);
  std::size_t guarded_run_end(std::size_t position);
  void translate_guarded(std::size_t first, std::size_t end);
  void lower(const ptx::Instruction& instruction);
  ir::Value guard_value(const ptx::Guard& guard);

  /// Returns the form number of the instruction. A module from a store is not verified again, so its
  /// instructions have no form set.
  std::uint16_t form_of(const ptx::Instruction& instruction);

  const FindRow find_row_;
  const CallForm call_form_;
  ParamArrays params_;
  Frames frames_;
  Activations activations_;
  Calls calls_;
};

}  // namespace quern::cpu::lower
