// SPDX-License-Identifier: Apache-2.0
// Instructions -> IR, one at a time. Each part of the work has a class:
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

/// The way in which a guard on an instruction is implemented.
enum class Kind : std::uint8_t {
  pure,     ///< always done; its result is selected
  effect,   ///< in a block of its own
  control,  ///< does it itself
};

/// The function that lowers the forms of an opcode that isa.def gives to the row's family.
struct Row {
  ptx::Opcode opcode;
  Kind kind;
  void (*lower)(Translator&, const ptx::Instruction&);
};
/// Gives the row that lowers a form of isa.def (its number, or ptx::kNoForm), or null.
using FindRow = const Row* (*)(std::uint16_t form);

class Translator final : public Operands {
 public:
  Translator(Program& program, FunctionBuilder& builder, std::string_view file_name, Diagnostics& diagnostics,
             FindRow find_row, CallForm calls = CallForm::functions);

  /// Translates `function` (a kernel or a recursive function) as the one function that is built.
  void translate(std::uint32_t function);

  ParamArrays& params() { return params_; }
  const Frames& frames() const { return frames_; }
  Calls& calls() { return calls_; }

  /// `ret` of the current PTX function; `exit` of the thread.
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

  /// The number of its form in isa.def; a module from a store is not verified again and has none noted.
  std::uint16_t form_of(const ptx::Instruction& instruction);

  const FindRow find_row_;
  const CallForm call_form_;
  ParamArrays params_;
  Frames frames_;
  Activations activations_;
  Calls calls_;
};

}  // namespace quern::cpu::lower
