// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontend/syntax/node_factory.hpp"

namespace quern::frontend {

/// Limit for the recursion of the parser, which uses much more stack for each level than the passes over the
/// tree. CPython's tokenizer has the same limit for brackets.
inline constexpr std::uint32_t kDeepestBrackets = 200;

/// Parses the expressions of Python 3.12, with one function for each level of the grammar.
class ExpressionParser : protected NodeFactory {
 protected:
  ExpressionParser(const std::vector<Token>& tokens, const SourceText& source, Arena& arena, Report& report)
      : NodeFactory(tokens, source, arena, report) {}

  /// Reports an error and returns false if the nesting is too deep for one more level.
  bool enter();
  Expr* expressions();  ///< one expression, or a tuple without brackets
  Expr* expression();
  Expr* primary();
  void parameters(Function& function, Tok close);

  std::uint32_t depth_ = 0;
  bool of_file_ = false;  // true at the file's level, where comprehensions are parsed

 private:
  Expr* conditional(Expr* first);
  Expr* lambda();
  Expr* disjunction();
  Expr* conjunction();
  Expr* inversion();
  Expr* comparison();
  Expr* binary(int level);
  Expr* unary();
  Expr* power();
  Expr* atom();
  Expr* number();
  Expr* strings();
  Expr* round_brackets();
  Expr* square_brackets();
  Expr* curly_brackets();
  Expr* call(Expr* callee);
  Expr* subscript(Expr* base);
  Expr* index();
  Expr* as_integer(Expr* expr);
  bool comprehension(Expr& node, Tok close);
};

}  // namespace quern::frontend
