// SPDX-License-Identifier: Apache-2.0
// A recursive-descent parser for Python 3.12's grammar. Each part of the work has a class:
//
//   TokenCursor       the current token, syntax errors, panic mode
//   NodeFactory       nodes of the tree and their numbers
//   ExpressionParser  expressions and parameters
//   Parser            statements and functions
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/syntax/expression_parser.hpp"

namespace quern::frontend {

/// A syntax error is reported once, and parsing continues with the next statement. Python syntax that kernels
/// do not support becomes an `unsupported` node.
class Parser : private ExpressionParser {
 public:
  Parser(const std::vector<Token>& tokens, const SourceText& source, Arena& arena, Report& report)
      : ExpressionParser(tokens, source, arena, report) {}

  /// Parses the function whose `def` is token `index`.
  Function* parse_function(std::size_t index);
  /// Parses the simple statements of the line that begins at token `index`.
  std::vector<Stmt*> parse_line(std::size_t index);
  /// Parses the expression of a decorator, after its '@'.
  Expr* parse_decorator(std::size_t index);
  /// Parses the expression between two tokens. Null if they do not enclose exactly one. Comprehensions with
  /// one `for` keep their parts.
  Expr* parse_expression(std::size_t begin, std::size_t end);
  /// Parses the whole input as one expression.
  Expr* parse_only_expression();

 private:
  /// Begins a new tree at token `index`.
  void restart(std::size_t index);
  void block(std::vector<Stmt*>& out);
  void statement(std::vector<Stmt*>& out);
  void simple_statements(std::vector<Stmt*>& out);
  Stmt* simple_statement();
  Stmt* expression_statement();
  Stmt* if_statement();
  Stmt* while_statement();
  Stmt* for_statement();
  Stmt* unsupported_statement();
  void else_block(Stmt* owner);
  Stmt* nested_function();
  /// Parses name, parameters and annotations of a function, beginning at the name.
  void function_header(Function& function);
  Expr* target();

  std::uint32_t elifs_ = 0;  // number of open elifs: each one is nested in the one before
};

}  // namespace quern::frontend
