// SPDX-License-Identifier: Apache-2.0
// Parses one `.func` or `.entry`. Each part of the work has a class:
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

/// Reads one function into the module of `context`. The current token is the one after `.func` or `.entry`.
class FunctionParser {
 public:
  FunctionParser(ParseContext& context, Linkage linkage, bool entry);
  FunctionParser(const FunctionParser&) = delete;
  FunctionParser& operator=(const FunctionParser&) = delete;
  /// Returns false after an error from which the caller must recover. After errors inside the body this class
  /// recovers itself.
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
  std::uint32_t index_ = kNoIndex;  ///< index in Module::functions
  RegisterTable registers_{context_, function_};
  LocationTable locations_{context_, function_};
  InstructionParser instructions_{context_, function_, registers_};
  bool duplicate_ = false;  ///< the function has a body already: this one is checked, reported and dropped
};

}  // namespace quern::ptx
