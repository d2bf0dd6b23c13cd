// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ptx/parse/context.hpp"
#include "ptx/parse/operand_parser.hpp"

namespace quern::ptx {

/// Parses guard, opcode, dotted words and operands ("Instruction Statements"), and the forms of call.
class InstructionParser {
 public:
  InstructionParser(ParseContext& context, Function& function, RegisterTable& registers)
      : context_(context),
        tokens_(context.tokens),
        function_(function),
        operands_(context, function, registers) {}

  /// Reads an instruction and appends it to the function's body. `location` is its source location.
  bool parse(std::uint32_t location);

 private:
  bool parse_guard(Instruction& into);
  bool parse_opcode(Instruction& into);
  bool parse_word(Instruction& into);
  bool parse_operands(Instruction& into);
  bool parse_call(Instruction& into);
  bool parse_call_list(Instruction& into, VectorOperand& list);

  ParseContext& context_;
  TokenStream& tokens_;
  Function& function_;
  OperandParser operands_;
};

}  // namespace quern::ptx
