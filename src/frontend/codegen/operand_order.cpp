// SPDX-License-Identifier: Apache-2.0
// Python evaluates operands from left to right, C++ in any order. If an operand changes memory or takes part
// in a warp operation, the difference is observable. Then earlier operands are stored in variables.
#include <algorithm>

#include "frontend/codegen/emit.hpp"

namespace quern::frontend {
namespace {

/// True if an operand must be computed before a later one.
bool must_hold(Effects own, Effects later) {
  return (own == Effects::writes && later != Effects::none) ||
         (own == Effects::reads && later == Effects::writes);
}

/// Collects the subexpressions in the order of evaluation. The parts of an index and of a tuple count as
/// operands.
void collect(const Expr& expr, std::vector<const Expr*>& out) {
  switch (expr.kind) {
    case ExprKind::keyword:
      return collect(*expr.items[0], out);
    case ExprKind::tuple:
    case ExprKind::slice:
      for (const Expr* item : expr.items)
        if (item != nullptr) collect(*item, out);
      return;
    default:
      out.push_back(&expr);
  }
}

std::vector<const Expr*> operands_of(const Expr& expr) {
  std::vector<const Expr*> operands;
  switch (expr.kind) {
    case ExprKind::logical:
    case ExprKind::conditional:
      return operands;  // C++ evaluates these in the same order as Python
    case ExprKind::compare:
      operands.assign(expr.items.begin(), expr.items.begin() + 2);
      return operands;
    case ExprKind::tuple:
      collect(expr, operands);
      return operands;
    default:
      for (std::size_t i = expr.kind == ExprKind::call ? 1 : 0; i < expr.items.size(); ++i)
        if (expr.items[i] != nullptr) collect(*expr.items[i], operands);
      return operands;
  }
}

}  // namespace

void OperandOrder::hold_operands(const Expr& expr) {
  if (emitter_.effects(expr) != Effects::writes || expr.items.empty()) return;
  hold_in_order(operands_of(expr));
}

void OperandOrder::hold_in_order(const std::vector<const Expr*>& operands) {
  for (std::size_t i = 0; i + 1 < operands.size(); ++i) {
    Effects later = Effects::none;
    for (std::size_t k = i + 1; k < operands.size(); ++k)
      later = std::max(later, emitter_.effects(*operands[k]));
    if (must_hold(emitter_.effects(*operands[i]), later)) hold(*operands[i]);
  }
}

/// Handles calls that become C++ operators that may skip operands.
void OperandOrder::hold_effects(const Expr& call) {
  for (std::size_t i = 1; i < call.items.size(); ++i)
    if (emitter_.effects(*call.items[i]) == Effects::writes) hold(*call.items[i]);
}

/// Evaluates the expression now. Later uses read the variable that holds its value.
void OperandOrder::hold(const Expr& expr) {
  const Type type = specialisation_.type(expr);
  if (held_code(expr) != nullptr || type == nullptr) return;
  if (is_valueless(type)) return;
  if (is_record(type)) return;  // it is a reference; its target is read later
  if (!is_number(type) && !is_tuple(type) && !is_array(type) && !is_vector(type)) return;
  temporaries_.push_back(
      {&expr, held(is_array(type) ? emitter_.arrays().array_value(expr) : emitter_.expression(expr), type)});
}

Code OperandOrder::held(Code code, Type type) {
  const std::string name = emitter_.temporary("value");
  const bool number = is_number(type) && code.cpp_type != CppType::other;
  emitter_.lines().add(
      cpp_text("const {} {} = {};", number ? cpp_of(code.cpp_type) : CppText("auto"), name, code.text));
  return {name, Precedence::primary, code.cpp_type};
}

/// True if the expression must be evaluated although its value is not used: it has side effects, or debug
/// builds check it.
bool OperandOrder::is_kept(const Expr& expr) const {
  return emitter_.effects(expr) == Effects::writes || (unit_.debug && specialisation_.expr_may_fail[expr.id]);
}

/// True for a call that can be a C++ statement. Other calls are converted or compared: `double(f(x));` would
/// declare x.
bool OperandOrder::is_statement(const Expr& expr) const {
  if (expr.kind != ExprKind::call) return false;
  const Type callee = specialisation_.type(*expr.items[0]);
  if (callee->kind == TypeKind::function || specialisation_.type(expr)->kind == TypeKind::none) return true;
  return callee->kind == TypeKind::builtin && callee->builtin->facts().syntax == Syntax::statement;
}

/// Emits the side effects of an expression whose value is not used.
void OperandOrder::discard(const Expr& expr) {
  if (!is_kept(expr)) return;
  const CppText text = emitter_.expression(expr).text;
  if (text.empty()) return;
  emitter_.lines().add(is_statement(expr) ? text + ";" : cpp_text("(void)({});", text));
}

const Code* OperandOrder::held_code(const Expr& expr) const {
  for (const Temporary& each : temporaries_)
    if (each.expr == &expr) return &each.code;
  return nullptr;
}

/// Handles expressions that are written more than once.
Code OperandOrder::once(const Expr& expr) {
  if (emitter_.is_simple(expr) || held_code(expr) != nullptr) return emitter_.expression(expr);
  const Type type = specialisation_.type(expr);
  return held(is_array(type) ? emitter_.arrays().array_value(expr) : emitter_.expression(expr), type);
}

/// Handles expressions that are evaluated only under a condition: the lines that they need become a separate
/// function.
Code OperandOrder::isolated(const Expr& expr) {
  const std::size_t before = emitter_.lines().mark();
  Code code =
      is_array(specialisation_.type(expr)) ? emitter_.arrays().array_value(expr) : emitter_.expression(expr);
  if (emitter_.lines().mark() == before) return code;
  CppText text = "[&] { ";
  for (const Line& line : emitter_.lines().cut(before)) text += line.text + " ";
  return {cpp_text("{}return {}; }}()", text, code.text), Precedence::primary, code.cpp_type};
}

}  // namespace quern::frontend
