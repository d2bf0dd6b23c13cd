// SPDX-License-Identifier: Apache-2.0
// Side effects of expressions. They matter where C++ leaves the order of evaluation open.
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

bool call_may_fail(const Instance& instance, const Expr& expr) {
  const Type callee = instance.type(*expr.items[0]);
  if (callee == nullptr) return false;
  if (callee->kind == TypeKind::function) {
    const auto found = instance.callees.find(expr.id);
    return found != instance.callees.end() && found->second->may_fail;
  }
  if (callee->kind != TypeKind::builtin || expr.items.size() != 3) return false;
  const Builtin& row = *callee->builtin;
  if (row.rule == Rule::load_hint) return true;
  if (row.rule == Rule::divmod) return instance.may_divide_by_zero(Tok::floor_divide, *expr.items[2]);
  return row.rule == Rule::operator2 &&
         instance.may_divide_by_zero(binary_operator(row.cuda), *expr.items[2]);
}

/// Is this an index or a division that debug builds check?
bool own_may_fail(const Instance& instance, const Expr& expr) {
  if (instance.type(expr) == nullptr) return false;  // never reached
  if (expr.kind == ExprKind::call) return call_may_fail(instance, expr);
  if (expr.kind == ExprKind::binary) return instance.may_divide_by_zero(expr.op, *expr.items[1]);
  if (expr.kind != ExprKind::subscript) return false;
  const Type base = instance.type(*expr.items[0]);
  const Expr& index = *expr.items[1];
  if (base == nullptr) return false;
  if (is_tuple(base))
    return index.kind != ExprKind::slice && instance.constant(index).kind != Value::Kind::integer;
  return is_array(base) && index.kind != ExprKind::slice && index.kind != ExprKind::string;
}

class Finder {
 public:
  explicit Finder(Instance& instance) : instance_(instance) {
    instance_.expr_effects.assign(instance_.scope->function->expr_count, Effects::none);
    instance_.expr_may_fail.assign(instance_.scope->function->expr_count, false);
  }

  bool may_fail() const { return may_fail_; }

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
    if (node.kind == StmtKind::augmented)
      may_fail_ = may_fail_ || instance_.may_divide_by_zero(node.op, *node.value);
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
    bool may_fail = own_may_fail(instance_, expr);
    for (const Expr* item : expr.items) {
      if (item == nullptr) continue;
      found = std::max(found, expression(*item));
      may_fail = may_fail || instance_.expr_may_fail[item->id];
    }
    instance_.expr_may_fail[expr.id] = may_fail;
    may_fail_ = may_fail_ || may_fail;
    return instance_.expr_effects[expr.id] = found;
  }

  Instance& instance_;
  bool may_fail_ = false;
};

}  // namespace

bool Instance::may_divide_by_zero(Tok op, const Expr& divisor) const {
  if (op != Tok::divide && op != Tok::floor_divide && op != Tok::mod) return false;
  const Value& value = constant(divisor);
  if (value.is_number() && value.as_real() != 0) return false;
  const Type divisor_type = type(divisor);
  if (divisor_type == nullptr) return false;  // never reached
  const Range& bounds = ranges[divisor.id];
  return !is_integral(divisor_type) || !bounds.exact || (bounds.low <= 0 && bounds.high >= 0);
}

void find_effects(Instance& instance) {
  Finder finder(instance);
  instance.effects = finder.statements(instance.scope->function->body);
  instance.may_fail = finder.may_fail();
}

}  // namespace quern::frontend
