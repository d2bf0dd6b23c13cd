// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontend/syntax/ast.hpp"
#include "frontend/syntax/token_cursor.hpp"

namespace quern::frontend {

/// Nesting of expressions and blocks in the tree beyond this is an error, since passes recurse over it.
inline constexpr std::uint32_t kDeepestNesting = 1000;

/// Makes the nodes of the tree. Expressions and statements are numbered within their function.
class NodeFactory : protected TokenCursor {
 protected:
  NodeFactory(const std::vector<Token>& tokens, const SourceText& source, Arena& arena, Report& report)
      : TokenCursor(tokens, source, report), arena_(arena) {}

  struct Numbers {
    std::uint32_t expr = 0, stmt = 0;
  };

  Expr* make(ExprKind kind, Place place, std::vector<Expr*> items = {});
  Stmt* make(StmtKind kind, Place place);
  /// An expression outside the kernel language; `what` names it in errors.
  Expr* unsupported(Place place, std::string_view what);
  /// Begins the numbers of a function inside another, and returns those of the outer one.
  Numbers begin_function();
  /// Stores the function's counts and continues with the numbers of the outer function.
  void end_function(Function& function, Numbers outer);

  Arena& arena_;
  Numbers next_;
};

}  // namespace quern::frontend
