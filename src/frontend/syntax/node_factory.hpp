// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontend/syntax/ast.hpp"
#include "frontend/syntax/token_cursor.hpp"

namespace quern::frontend {

/// Deeper nesting of expressions and blocks in the tree is an error, since passes recurse over it.
inline constexpr std::uint32_t kDeepestNesting = 1000;

/// Creates the nodes of the tree. Expressions and statements are numbered within their function.
class NodeFactory : protected TokenCursor {
 protected:
  NodeFactory(const std::vector<Token>& tokens, const SourceText& source, Arena& arena, Report& report)
      : TokenCursor(tokens, source, report), arena_(arena) {}

  struct Numbers {
    std::uint32_t expr = 0, stmt = 0;
  };

  Expr* make(ExprKind kind, Place place, std::vector<Expr*> items = {});
  Stmt* make(StmtKind kind, Place place);
  /// Creates an expression outside the kernel language; `what` describes it in errors.
  Expr* unsupported(Place place, std::string_view what);
  /// Begins the numbering of a nested function, and returns the numbers of the outer one.
  Numbers begin_function();
  /// Stores the function's counts and continues with the numbers of the outer function.
  void end_function(Function& function, Numbers outer);

  Arena& arena_;
  Numbers next_;
};

}  // namespace quern::frontend
