// SPDX-License-Identifier: Apache-2.0
// One `.func` or `.entry`: header, performance directives, body.
#pragma once

#include <map>
#include <tuple>

#include "ptx/context.hpp"
#include "ptx/declaration.hpp"
#include "ptx/expression.hpp"

namespace quern::ptx {

/// Reads one function into the module of `context`; the current token is behind `.func` or `.entry`.
class FunctionParser {
 public:
  FunctionParser(ParseContext& context, Linkage linkage, bool entry);
  /// False after an error that leaves the text to be recovered by the caller; errors inside the body are
  /// recovered here.
  bool parse();

 private:
  // function_header.cpp
  bool parse_header();
  bool parse_performance();
  bool parse_dimensions(std::array<std::uint32_t, 3>& into);
  bool declare_parameters(const std::vector<Variable>& parameters, SymbolKind kind);
  bool enter_into_module();

  // function_body.cpp
  bool parse_body();
  bool parse_statement();
  bool parse_directive();
  bool parse_registers();
  bool parse_register_names(const DeclarationHead& head);
  bool parse_variables(Space space);
  bool enter_static_variable(const Token& name, Variable variable);
  bool parse_loc();
  bool parse_label();
  bool parse_table(const Token& name);
  bool parse_prototype(const Token& name);
  void close_scope();
  void resolve(const ForwardUse& use, SymbolRef symbol);
  void report_unresolved();
  bool declare(const Token& name, Entity entity);
  /// The declaration of a register: its number, and the index among its numbered names.
  using DeclarationOrder = std::pair<std::uint32_t, std::uint32_t>;
  std::optional<std::uint32_t> add_register(std::string_view name, Type type, std::uint8_t vector,
                                            DeclarationOrder order);
  void sort_registers();
  std::uint32_t add_location(SourceLocation location);
  std::uint32_t location_at(std::uint32_t file, std::uint32_t line, std::uint32_t column);

  // instruction_parser.cpp
  bool parse_instruction();
  bool parse_guard(Instruction& into);
  bool parse_opcode(Instruction& into);
  bool parse_word(Instruction& into);
  bool parse_operands(Instruction& into);
  bool parse_call(Instruction& into);
  bool parse_call_list(Instruction& into, VectorOperand& list);

  // operand_parser.cpp; `slot` is the operand's index if a name may be declared later, kNoIndex if it may
  // not.
  bool parse_operand(Instruction& into, Operand& operand, std::uint32_t slot);
  bool parse_single(Instruction& into, Operand& operand, std::uint32_t slot);
  bool parse_vector(Instruction& into, Operand& operand);
  bool parse_bracket(Instruction& into, Operand& operand);
  bool parse_address(AddressOperand& address);
  bool parse_name(Operand& operand, std::uint32_t slot, std::uint32_t instruction);
  bool parse_register_suffix(RegisterOperand& operand);
  bool parse_symbol_offset(SymbolRef symbol, std::int64_t& offset);
  bool parse_constant_operand(Operand& operand);
  std::optional<std::uint32_t> parse_register_index(std::string_view what);
  std::optional<Entity> find(const Token& name);
  bool fail_unknown(const Token& name);

  ParseContext& context_;
  TokenStream& tokens_;
  Function function_;
  Token name_;
  std::uint32_t index_ = kNoIndex;  ///< in Module::functions
  std::uint32_t location_ = kNoIndex;
  std::uint32_t next_declaration_ = 0;
  std::vector<DeclarationOrder> register_order_;  ///< beside Function::registers
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::string, std::uint32_t>, std::uint32_t>
      locations_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> last_location_at_;
  bool duplicate_ = false;  ///< has a body already: checked, reported and dropped
};

}  // namespace quern::ptx
