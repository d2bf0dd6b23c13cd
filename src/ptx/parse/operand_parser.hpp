// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ptx/parse/context.hpp"
#include "ptx/parse/register_table.hpp"

namespace quern::ptx {

/// Reads the operands of the function's last instruction ("Instruction Operands").
class OperandParser {
 public:
  OperandParser(ParseContext& context, Function& function, RegisterTable& registers)
      : context_(context), tokens_(context.tokens), function_(function), registers_(registers) {}

  /// Reads an operand, or a pair `a|b`. `slot` is the operand's index if its name may be declared later,
  /// otherwise kNoIndex.
  bool parse(Instruction& into, Operand& operand, std::uint32_t slot);
  /// Reads the name of a register; `what` completes the error "expected ...".
  std::optional<std::uint32_t> parse_register_index(std::string_view what);

 private:
  bool parse_single(Instruction& into, Operand& operand, std::uint32_t slot);
  bool parse_vector(Instruction& into, Operand& operand);
  bool parse_bracket(Instruction& into, Operand& operand);
  bool parse_address(AddressOperand& address);
  bool parse_name(Operand& operand, std::uint32_t slot, std::uint32_t instruction);
  bool parse_register_suffix(RegisterOperand& operand);
  bool parse_symbol_offset(SymbolRef symbol, std::int64_t& offset);
  bool parse_constant_operand(Operand& operand);
  bool fail_unknown(const Token& name);

  ParseContext& context_;
  TokenStream& tokens_;
  Function& function_;
  RegisterTable& registers_;
};

}  // namespace quern::ptx
