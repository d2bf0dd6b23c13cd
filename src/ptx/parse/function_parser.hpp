// SPDX-License-Identifier: Apache-2.0
// One `.func` or `.entry`. Each part of the work has a class:
//
//   RegisterTable      registers: declared names, ranges of names
//   LocationTable      `.loc`
//   OperandParser      operands
//   InstructionParser  instructions and calls
//   FunctionParser     header, performance directives, scopes, declarations, labels, tables
#pragma once

#include "ptx/parse/context.hpp"
#include "ptx/parse/declaration.hpp"
#include "ptx/parse/instruction_parser.hpp"
#include "ptx/parse/location_table.hpp"
#include "ptx/parse/register_table.hpp"

namespace quern::ptx {

/// Reads one function into the module of `context`; the current token is behind `.func` or `.entry`.
class FunctionParser {
 public:
  FunctionParser(ParseContext& context, Linkage linkage, bool entry);
  FunctionParser(const FunctionParser&) = delete;
  FunctionParser& operator=(const FunctionParser&) = delete;
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
  bool parse_label();
  bool parse_table(const Token& name);
  bool parse_prototype(const Token& name);
  void close_scope();
  void resolve(const ForwardUse& use, SymbolRef symbol);
  void report_unresolved();
  bool declare(const Token& name, Entity entity);

  ParseContext& context_;
  TokenStream& tokens_;
  Function function_;
  Token name_;
  std::uint32_t index_ = kNoIndex;  ///< in Module::functions
  RegisterTable registers_{context_, function_};
  LocationTable locations_{context_, function_};
  InstructionParser instructions_{context_, function_, registers_};
  bool duplicate_ = false;  ///< has a body already: checked, reported and dropped
};

}  // namespace quern::ptx
