// SPDX-License-Identifier: Apache-2.0
#include "frontend/syntax/node_factory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace quern::frontend {

Expr* NodeFactory::make(ExprKind kind, Place place, std::vector<Expr*> items) {
  Expr& node = arena_.exprs.emplace_back();
  node.kind = kind;
  node.place = place;
  node.id = next_.expr++;
  for (const Expr* item : items)
    if (item != nullptr) node.height = std::max(node.height, item->height + 1);
  node.items = std::move(items);
  if (node.height > kDeepestNesting)
    fail(place, fmt::format("this expression is nested more than {} deep", kDeepestNesting),
         "split it, with names for its parts");
  return &node;
}

Stmt* NodeFactory::make(StmtKind kind, Place place) {
  Stmt& node = arena_.stmts.emplace_back();
  node.kind = kind;
  node.place = place;
  node.id = next_.stmt++;
  return &node;
}

Expr* NodeFactory::unsupported(Place place, std::string_view what) {
  Expr* node = make(ExprKind::unsupported, place);
  node->name = what;
  return node;
}

NodeFactory::Numbers NodeFactory::begin_function() { return std::exchange(next_, {}); }

void NodeFactory::end_function(Function& function, Numbers outer) {
  function.expr_count = next_.expr;
  function.stmt_count = next_.stmt;
  next_ = outer;
}

}  // namespace quern::frontend
