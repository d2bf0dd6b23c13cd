// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/syntax/ast.hpp"

namespace quern::frontend {

/// Nesting of expressions and blocks beyond this is an error.
/// Nesting of expressions and blocks in the tree beyond this is an error, since passes recurse over it.
inline constexpr std::uint32_t kDeepestNesting = 1000;
/// Limit for the recursion of the parser itself, which takes far more stack a level; CPython's tokenizer has
/// the same limit for brackets.
inline constexpr std::uint32_t kDeepestBrackets = 200;

/// Recursive descent over tokens, with Python 3.12's grammar. A syntax error is reported once, and parsing
/// continues with the next statement. Python syntax that kernels do not support becomes an `unsupported`
/// node.
class Parser {
 public:
  Parser(const std::vector<Token>& tokens, const SourceText& source, Arena& arena, Report& report)
      : tokens_(tokens), source_(source), arena_(arena), report_(report) {}

  /// The function whose `def` is token `index`.
  Function* parse_function(std::size_t index);
  /// The simple statements of the line that begins at token `index`.
  std::vector<Stmt*> parse_line(std::size_t index);
  /// The expression of a decorator, behind its '@'.
  Expr* parse_decorator(std::size_t index);
  /// The expression between two tokens, or null if they do not enclose exactly one. Comprehensions of one
  /// `for` keep their parts.
  Expr* parse_expression(std::size_t begin, std::size_t end);
  /// The whole input as one expression.
  Expr* parse_only_expression();

 private:
  // Tokens.
  const Token& token() const { return tokens_[at_]; }
  const Token& next_token() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  bool at(Tok kind) const { return token().kind == kind; }
  bool accept(Tok kind);
  bool expect(Tok kind, const char* what);
  void advance();
  void fail(Place place, std::string message, std::string hint = {});
  void skip_line();
  void skip_to_close(Tok close);
  void close(Tok kind, Place open, const char* what);
  Place since(Place first) const;
  bool enter();

  // Statements.
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
  void parameters(Function& function, Tok close);
  Stmt* nested_function();
  struct Numbers {
    std::uint32_t expr = 0, stmt = 0;
  };
  Numbers begin_function();
  void end_function(Function& function, Numbers outer);
  Stmt* make(StmtKind kind, Place place);

  // Expressions.
  Expr* expressions();  ///< a tuple without brackets, too
  Expr* expression();
  Expr* conditional(Expr* first);
  Expr* lambda();
  Expr* disjunction();
  Expr* conjunction();
  Expr* inversion();
  Expr* comparison();
  Expr* binary(int level);
  Expr* unary();
  Expr* power();
  Expr* primary();
  Expr* atom();
  Expr* number();
  Expr* strings();
  Expr* round_brackets();
  Expr* square_brackets();
  Expr* curly_brackets();
  Expr* call(Expr* callee);
  Expr* subscript(Expr* base);
  Expr* index();
  Expr* whole(Expr* expr);
  Expr* target();
  bool comprehension(Expr& node, Tok close);
  Expr* unsupported(Place place, std::string_view what);
  Expr* make(ExprKind kind, Place place, std::vector<Expr*> items = {});

  const std::vector<Token>& tokens_;
  const SourceText& source_;
  Arena& arena_;
  Report& report_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t elifs_ = 0;  // open at once: each is an if in the one before
  std::uint32_t next_expr_ = 0;
  std::uint32_t next_stmt_ = 0;
  bool of_file_ = false;  // of the file's level: comprehensions are read
  bool panic_ = false;    // an error of this statement was reported
};

}  // namespace quern::frontend
