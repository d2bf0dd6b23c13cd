// SPDX-License-Identifier: Apache-2.0
// Finds the names that a function captures from the enclosing function.
#include <set>

#include "frontend/analyse/scope.hpp"

namespace quern::frontend {
namespace {

class Walker {
 public:
  std::vector<std::string_view> run(const Function& function) {
    for (const Parameter& parameter : function.parameters) bound_.insert(parameter.name);
    statements(function.body);
    std::vector<std::string_view> names;
    for (const std::string_view name : read_)
      if (!bound_.contains(name)) names.push_back(name);
    return names;
  }

 private:
  void statements(const std::vector<Stmt*>& body) {
    for (const Stmt* node : body) {
      if (node->value != nullptr) expression(*node->value);
      if (node->kind != StmtKind::assert_)
        for (const Expr* each : node->targets) target(*each, node->kind == StmtKind::augmented);
      if (node->function != nullptr) inner(*node->function);
      statements(node->body);
      statements(node->orelse);
    }
  }

  void target(const Expr& expr, bool reads) {
    if (expr.kind == ExprKind::name) {
      bound_.insert(expr.name);
      if (reads) add(expr.name);
    } else if (expr.kind == ExprKind::tuple || expr.kind == ExprKind::list) {
      for (const Expr* item : expr.items) target(*item, reads);
    } else {
      expression(expr);
    }
  }

  void expression(const Expr& expr) {
    if (expr.kind == ExprKind::name) add(expr.name);
    if (expr.function != nullptr) inner(*expr.function);
    for (const Expr* item : expr.items)
      if (item != nullptr) expression(*item);
  }

  void inner(const Function& function) {
    for (const std::string_view name : free_names(function)) add(name);
  }

  void add(std::string_view name) {
    if (seen_.insert(name).second) read_.push_back(name);
  }

  std::set<std::string_view> bound_;
  std::set<std::string_view> seen_;
  std::vector<std::string_view> read_;
};

}  // namespace

std::vector<std::string_view> free_names(const Function& function) { return Walker().run(function); }

}  // namespace quern::frontend
