// SPDX-License-Identifier: Apache-2.0
// What computing an expression does besides giving a value: where the order matters that C++ leaves open.
#include <algorithm>

#include "frontend/program.hpp"

namespace quern::frontend {
namespace {

struct Row {
  Rule rule;
  Effects effects;
};
constexpr Row kRules[] = {
    {Rule::atomic, Effects::writes},          {Rule::atomic_cas, Effects::writes},
    {Rule::atomic_integer, Effects::writes},  {Rule::atomic_swap, Effects::writes},
    {Rule::atomic_unsigned, Effects::writes}, {Rule::ballot, Effects::writes},
    {Rule::block_vote, Effects::writes},      {Rule::clock, Effects::writes},
    {Rule::grid_sync, Effects::writes},       {Rule::match_all, Effects::writes},
    {Rule::match_any, Effects::writes},       {Rule::nanosleep, Effects::writes},
    {Rule::print, Effects::writes},           {Rule::random, Effects::writes},
    {Rule::roc_fence, Effects::writes},       {Rule::shuffle, Effects::writes},
    {Rule::statement, Effects::writes},       {Rule::store_hint, Effects::writes},
    {Rule::syncwarp, Effects::writes},        {Rule::warp_vote, Effects::writes},
    {Rule::load_hint, Effects::reads},
};

Effects of_call(const Instance& instance, const Expr& expr) {
  const Type callee = instance.type(*expr.items[0]);
  if (callee == nullptr) return Effects::none;
  if (callee->kind == TypeKind::function) {
    const auto found = instance.callees.find(expr.id);
    return found == instance.callees.end() || found->second->inferring ? Effects::writes
                                                                       : found->second->effects;
  }
  if (callee->kind != TypeKind::builtin) return Effects::none;
  for (const Row& row : kRules)
    if (row.rule == callee->builtin->rule) return row.effects;
  return Effects::none;
}

Effects own_effects(const Instance& instance, const Expr& expr) {
  if (expr.kind == ExprKind::call) return of_call(instance, expr);
  if (expr.kind != ExprKind::subscript && expr.kind != ExprKind::attribute) return Effects::none;
  const Type base = instance.type(*expr.items[0]), type = instance.type(expr);
  if (base == nullptr || type == nullptr) return Effects::none;
  const bool element = is_array(base) && expr.kind == ExprKind::subscript && !is_array(type);
  return element || is_record(base) ? Effects::reads : Effects::none;
}

class Finder {
 public:
  explicit Finder(Instance& instance) : instance_(instance) {
    instance_.expr_effects.assign(instance_.scope->function->expr_count, Effects::none);
  }

  Effects statements(const std::vector<Stmt*>& body) {
    Effects found = Effects::none;
    for (const Stmt* node : body)
      if (!instance_.dead[node->id]) found = std::max(found, statement(*node));
    return found;
  }

 private:
  Effects statement(const Stmt& node) {
    Effects found = Effects::none;
    if (node.kind == StmtKind::raise || node.kind == StmtKind::assert_) found = Effects::writes;
    if (node.value != nullptr && node.kind != StmtKind::raise)
      found = std::max(found, expression(*node.value));
    if (node.kind != StmtKind::assert_)
      for (const Expr* each : node.targets) found = std::max(found, target(*each));
    return std::max({found, statements(node.body), statements(node.orelse)});
  }

  Effects target(const Expr& expr) {
    if (expr.kind == ExprKind::name) return Effects::none;
    Effects found = Effects::none;
    if (expr.kind == ExprKind::tuple || expr.kind == ExprKind::list) {
      for (const Expr* item : expr.items) found = std::max(found, target(*item));
      return found;
    }
    expression(expr);
    return Effects::writes;
  }

  Effects expression(const Expr& expr) {
    Effects found = own_effects(instance_, expr);
    for (const Expr* item : expr.items)
      if (item != nullptr) found = std::max(found, expression(*item));
    return instance_.expr_effects[expr.id] = found;
  }

  Instance& instance_;
};

}  // namespace

void find_effects(Instance& instance) {
  instance.effects = Finder(instance).statements(instance.scope->function->body);
}

}  // namespace quern::frontend
