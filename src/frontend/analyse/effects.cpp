// SPDX-License-Identifier: Apache-2.0
// Finds side effects of expressions. They matter if C++ does not specify the order of evaluation.
#include <algorithm>

#include "frontend/analyse/program.hpp"

namespace quern::frontend {
namespace {

Effects of_call(const Specialisation& specialisation, const Expr& expr) {
  const Type callee = specialisation.type(*expr.items[0]);
  if (callee == nullptr) return Effects::none;
  if (callee->kind == TypeKind::function) {
    const auto found = specialisation.callees.find(expr.id);
    return found == specialisation.callees.end() || found->second->inferring ? Effects::writes
                                                                             : found->second->effects;
  }
  return callee->kind == TypeKind::builtin ? callee->builtin->facts().effects : Effects::none;
}

Effects own_effects(const Specialisation& specialisation, const Expr& expr) {
  if (expr.kind == ExprKind::call) return of_call(specialisation, expr);
  if (expr.kind != ExprKind::subscript && expr.kind != ExprKind::attribute) return Effects::none;
  const Type base = specialisation.type(*expr.items[0]), type = specialisation.type(expr);
  if (base == nullptr || type == nullptr) return Effects::none;
  const bool element = is_array(base) && expr.kind == ExprKind::subscript && !is_array(type);
  return element || is_record(base) ? Effects::reads : Effects::none;
}

bool call_may_fail(const Specialisation& specialisation, const Expr& expr) {
  const Type callee = specialisation.type(*expr.items[0]);
  if (callee == nullptr) return false;
  if (callee->kind == TypeKind::function) {
    const auto found = specialisation.callees.find(expr.id);
    return found != specialisation.callees.end() && found->second->may_fail;
  }
  if (callee->kind != TypeKind::builtin || expr.items.size() != 3) return false;
  switch (callee->builtin->facts().debug_check) {
    case DebugCheck::never:
      return false;
    case DebugCheck::index:
      return true;
    case DebugCheck::divisor:
      return specialisation.may_divide_by_zero(binary_operator(callee->builtin->cuda), *expr.items[2]);
  }
  return false;
}

/// True if the expression itself is an index or a division that debug builds check.
bool own_may_fail(const Specialisation& specialisation, const Expr& expr) {
  if (specialisation.type(expr) == nullptr) return false;  // unreachable
  if (expr.kind == ExprKind::call) return call_may_fail(specialisation, expr);
  if (expr.kind == ExprKind::binary) return specialisation.may_divide_by_zero(expr.op, *expr.items[1]);
  if (expr.kind != ExprKind::subscript) return false;
  const Type base = specialisation.type(*expr.items[0]);
  const Expr& index = *expr.items[1];
  if (base == nullptr) return false;
  if (is_tuple(base))
    return index.kind != ExprKind::slice && specialisation.constant(index).kind != Value::Kind::integer;
  return is_array(base) && index.kind != ExprKind::slice && index.kind != ExprKind::string;
}

class EffectFinder {
 public:
  explicit EffectFinder(Specialisation& specialisation) : specialisation_(specialisation) {
    specialisation_.expr_effects.assign(specialisation_.scope->function->expr_count, Effects::none);
    specialisation_.expr_may_fail.assign(specialisation_.scope->function->expr_count, false);
  }

  bool may_fail() const { return may_fail_; }

  Effects statements(const std::vector<Stmt*>& body) {
    Effects found = Effects::none;
    for (const Stmt* node : body)
      if (!specialisation_.dead[node->id]) found = std::max(found, statement(*node));
    return found;
  }

 private:
  Effects statement(const Stmt& node) {
    Effects found = Effects::none;
    if (node.kind == StmtKind::raise || node.kind == StmtKind::assert_) found = Effects::writes;
    if (node.kind == StmtKind::augmented)
      may_fail_ = may_fail_ || specialisation_.may_divide_by_zero(node.op, *node.value);
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
    Effects found = own_effects(specialisation_, expr);
    bool may_fail = own_may_fail(specialisation_, expr);
    for (const Expr* item : expr.items) {
      if (item == nullptr) continue;
      found = std::max(found, expression(*item));
      may_fail = may_fail || specialisation_.expr_may_fail[item->id];
    }
    specialisation_.expr_may_fail[expr.id] = may_fail;
    may_fail_ = may_fail_ || may_fail;
    return specialisation_.expr_effects[expr.id] = found;
  }

  Specialisation& specialisation_;
  bool may_fail_ = false;
};

}  // namespace

bool Specialisation::may_divide_by_zero(Tok op, const Expr& divisor) const {
  if (op != Tok::divide && op != Tok::floor_divide && op != Tok::mod) return false;
  const Value& value = constant(divisor);
  if (value.is_number() && value.as_real() != 0) return false;
  const Type divisor_type = type(divisor);
  if (divisor_type == nullptr) return false;  // unreachable
  const Range& bounds = ranges[divisor.id];
  return !is_integral(divisor_type) || !bounds.exact || (bounds.low <= 0 && bounds.high >= 0);
}

void find_effects(Specialisation& specialisation) {
  EffectFinder finder(specialisation);
  specialisation.effects = finder.statements(specialisation.scope->function->body);
  specialisation.may_fail = finder.may_fail();
}

}  // namespace quern::frontend
