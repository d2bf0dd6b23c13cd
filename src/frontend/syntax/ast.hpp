// SPDX-License-Identifier: Apache-2.0
// The syntax tree. Nodes belong to an Arena and refer to each other and to the source text.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/syntax/token.hpp"

namespace quern::frontend {

enum class ExprKind : std::uint8_t {
  name,
  integer,
  real,
  imaginary,
  string,
  boolean,
  none,
  ellipsis,
  tuple,
  list,
  attribute,    ///< items[0] . name
  subscript,    ///< items[0] [ items[1] ]
  slice,        ///< items: start, stop, step; each may be null
  call,         ///< items[0] ( items[1]... ); a keyword argument is a `keyword`
  keyword,      ///< name = items[0]
  unary,        ///< op items[0]
  binary,       ///< items[0] op items[1]
  compare,      ///< items[0] ops[0] items[1] ops[1] ...
  logical,      ///< `and` or `or` of two or more items
  conditional,  ///< items: condition, value if true, value if false
  lambda,       ///< `function`
  unsupported,  ///< unsupported Python syntax; `name` describes it: "a lambda"
  broken,       ///< a syntax error that was reported
};

struct Function;

struct Expr {
  ExprKind kind = ExprKind::broken;
  Place place;
  std::uint32_t id = 0;      ///< within the function, from 0
  std::uint32_t height = 1;  ///< height of the tree below
  Tok op = Tok::end;
  bool too_large = false;  ///< an integer beyond 64 bits
  std::string_view name;   ///< identifier, attribute, keyword; a string's value; an integer as written
  std::uint64_t integer = 0;
  double real = 0;
  std::vector<Expr*> items;
  std::vector<Tok> ops;
  Function* function = nullptr;
};

enum class StmtKind : std::uint8_t {
  expression,
  assign,     ///< targets... = value
  augmented,  ///< targets[0] op= value
  declare,    ///< targets[0]: annotation, without a value
  if_,        ///< value: the condition; body, orelse
  while_,     ///< value: the condition; body, orelse
  for_,       ///< targets[0] in value; body, orelse
  break_,
  continue_,
  return_,  ///< value may be null
  pass,
  function,    ///< `function`, of the name targets[0]
  assert_,     ///< value; targets: the message, if any
  raise,       ///< value may be null
  unsupported  ///< `name` says what: "'try'"
};

struct Stmt {
  StmtKind kind = StmtKind::pass;
  Place place;  ///< first line of a compound statement
  std::uint32_t id = 0;
  Tok op = Tok::end;
  std::string_view name;
  std::vector<Expr*> targets;
  Expr* value = nullptr;
  std::vector<Stmt*> body;
  std::vector<Stmt*> orelse;
  Function* function = nullptr;
  Place skipped;  ///< whole text of an unsupported statement
};

struct Parameter {
  std::string_view name;
  Place place;
  Expr* fallback = nullptr;
  bool captured = false;  ///< a name of the enclosing function, which every call passes
};

/// A function whose body was parsed.
struct Function {
  std::string_view name;
  Place place;  ///< place of the name
  std::vector<Parameter> parameters;
  std::vector<Stmt*> body;
  std::uint32_t expr_count = 0;
  std::uint32_t stmt_count = 0;
  /// Functions of the enclosing function that this one calls, by name. Set after the scope of the enclosing
  /// function was built.
  std::vector<std::pair<std::string_view, Function*>> functions;
};

/// Owns the nodes, whose addresses do not change.
struct Arena {
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::deque<Function> functions;
  std::deque<std::string> texts;
};

}  // namespace quern::frontend
