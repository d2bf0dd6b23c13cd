// SPDX-License-Identifier: Apache-2.0
// Checks whether the words and operands of an instruction fit one row of isa.def.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "ptx/forms.hpp"

namespace quern::ptx {

/// The dotted words of one instruction as numbers.
struct WordList {
  std::array<std::uint16_t, 32> words{};
  std::size_t count = 0;
};
WordList words_of(const Instruction& instruction) noexcept;

/// Counts how far the words of an instruction are from a form: words that fit no slot, and required slots
/// that stay empty.
struct WordFit {
  std::size_t misfits = 0;
  std::uint16_t first_misfit = 0;        ///< the first word that fits no slot
  std::optional<std::uint16_t> missing;  ///< the set of words of which one is required
  bool fits() const noexcept { return misfits == 0 && !missing; }
};
WordFit fit_words(const FormTable& table, const Form& form, const WordList& words) noexcept;

enum class FaultKind : std::uint8_t {
  count,           ///< more or fewer operands than the form has
  wrong_kind,      ///< an address for a register, a number for a label, ...
  wrong_type,      ///< a register whose type does not fit the type of the instruction
  wrong_constant,  ///< a number that the type cannot represent
  wrong_value,     ///< a number that the form does not allow
  wrong_special,
  sink,
  negation,
  selector,
  pair,
  vector_length,
  vector_mixed,  ///< elements of different sizes
  immediate_address,
  address_type,
  address_space,
  written_parameter,
};
struct Fault {
  FaultKind kind{};
  std::size_t operand = 0;
  Type wanted = Type::none;
  const OperandSpec* spec = nullptr;
};

class OperandCheck {
 public:
  OperandCheck(const Module& module, const Function& function, const Instruction& instruction)
      : module_(module), function_(function), instruction_(instruction) {}

  /// Returns the first operand or word that does not fit, or nothing.
  std::optional<Fault> check(const Form& form);

  /// "operand 2 is .f32, where .s32 is wanted"
  std::string describe(const Fault& fault) const;

 private:
  bool operand(const OperandSpec& spec, const Operand& operand);
  bool whole(const OperandSpec& spec, const Operand& operand);
  bool vector(const OperandSpec& spec, const Operand& operand, std::size_t length, Type type);
  bool immediate(const OperandSpec& spec, const Operand& operand);
  bool packed(const OperandSpec& spec, const Operand& operand);
  bool single(const OperandSpec& spec, const Operand& operand, Type type);
  bool selects(const OperandSpec& spec, std::int16_t component) const;
  bool reg(const OperandSpec& spec, const RegisterOperand& reg, Type type);
  bool constant(const OperandSpec& spec, const Operand& operand, Type type);
  bool symbol(const OperandSpec& spec, const SymbolOperand& symbol, Type type);
  bool address(const Operand& operand);
  bool address_symbol(const SymbolRef& symbol);
  bool fault(FaultKind kind, Type wanted = Type::none);
  Type wanted(const TypeRule& rule) const noexcept;
  std::string register_type(const Operand& operand) const;

  const Module& module_;
  const Function& function_;
  const Instruction& instruction_;
  Fault fault_;
};

/// True if a register of type `reg` may be an operand of an instruction on `type`; with `wider` also if it
/// has more bits. Source: "Type Checking of Operands" and "Operand Size Exceeding Instruction-Type Size".
bool register_fits(Type reg, Type type, bool wider) noexcept;

}  // namespace quern::ptx
