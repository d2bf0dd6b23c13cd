// SPDX-License-Identifier: Apache-2.0
// Python evaluates operands from left to right, C++ in any order. If the difference is observable, because an
// operand changes memory or takes part in a warp operation, earlier operands are stored in variables.
#include <algorithm>

#include "frontend/emit.hpp"

namespace quern::frontend {
namespace {

/// True if an operand must be computed before a later one.
bool must_hold(Effects own, Effects later) {
  return (own == Effects::writes && later != Effects::none) ||
         (own == Effects::reads && later == Effects::writes);
}

/// Collects the subexpressions in order of evaluation; the parts of an index and of a tuple are operands,
/// too.
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
      return operands;  // C++ computes them as Python does
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

void Emitter::hold_operands(const Expr& expr) {
  if (effects(expr) != Effects::writes || expr.items.empty()) return;
  hold_in_order(operands_of(expr));
}

void Emitter::hold_in_order(const std::vector<const Expr*>& operands) {
  for (std::size_t i = 0; i + 1 < operands.size(); ++i) {
    Effects later = Effects::none;
    for (std::size_t k = i + 1; k < operands.size(); ++k) later = std::max(later, effects(*operands[k]));
    if (must_hold(effects(*operands[i]), later)) hold(*operands[i]);
  }
}

/// For calls that become operators of C++ which leave operands out.
void Emitter::hold_effects(const Expr& call) {
  for (std::size_t i = 1; i < call.items.size(); ++i)
    if (effects(*call.items[i]) == Effects::writes) hold(*call.items[i]);
}

/// Computes the expression now; from here on it is the variable that holds it.
void Emitter::hold(const Expr& expr) {
  const Type type = instance_.type(expr);
  if (held_code(expr) != nullptr || type == nullptr) return;
  if (is_valueless(type)) return;
  if (is_record(type)) return;  // a reference: what it refers to is read later
  if (!is_number(type) && !is_tuple(type) && !is_array(type) && !is_vector(type)) return;
  held_.push_back({&expr, held(is_array(type) ? array_value(expr) : expression(expr), type)});
}

Code Emitter::held(Code code, Type type) {
  const std::string name = temporary("value");
  const bool number = is_number(type) && code.carrier != Carrier::other;
  line(fmt::format("const {} {} = {};", number ? cpp_of(code.carrier) : std::string_view("auto"), name,
                   code.text));
  return {name, Precedence::primary, code.carrier};
}

/// True if it must be computed although its value is not used: it has side effects, or debug builds check it.
bool Emitter::is_kept(const Expr& expr) const {
  return effects(expr) == Effects::writes || (unit_.debug && instance_.expr_may_fail[expr.id]);
}

/// A call that can be a statement of its own. Others are converted or compared: `double(f(x));` would declare
/// x.
bool Emitter::is_statement(const Expr& expr) const {
  if (expr.kind != ExprKind::call) return false;
  const Type callee = instance_.type(*expr.items[0]);
  if (callee->kind == TypeKind::function || instance_.type(expr)->kind == TypeKind::none) return true;
  constexpr Rule kPlain[] = {Rule::atomic,          Rule::atomic_cas,  Rule::atomic_integer,
                             Rule::atomic_unsigned, Rule::atomic_swap, Rule::random};
  return callee->kind == TypeKind::builtin &&
         std::find(std::begin(kPlain), std::end(kPlain), callee->builtin->rule) != std::end(kPlain);
}

/// Computes the side effects of an expression whose value is not used.
void Emitter::discard(const Expr& expr) {
  if (!is_kept(expr)) return;
  const std::string text = expression(expr).text;
  if (text.empty()) return;
  line(is_statement(expr) ? text + ";" : fmt::format("(void)({});", text));
}

const Code* Emitter::held_code(const Expr& expr) const {
  for (const Held& each : held_)
    if (each.expr == &expr) return &each.code;
  return nullptr;
}

/// For expressions that are written more than once.
Code Emitter::once(const Expr& expr) {
  if (is_simple(expr) || held_code(expr) != nullptr) return expression(expr);
  const Type type = instance_.type(expr);
  return held(is_array(type) ? array_value(expr) : expression(expr), type);
}

/// For expressions that are computed only under a condition: the lines that they need go into a function of
/// their own.
Code Emitter::isolated(const Expr& expr) {
  const std::size_t before = lines_.size();
  Code code = is_array(instance_.type(expr)) ? array_value(expr) : expression(expr);
  if (lines_.size() == before) return code;
  std::string text = "[&] { ";
  for (std::size_t i = before; i < lines_.size(); ++i)
    text +=
        lines_[i].text.substr(std::min(lines_[i].text.find_first_not_of(' '), lines_[i].text.size())) + ' ';
  lines_.resize(before);
  return {fmt::format("{}return {}; }}()", text, code.text), Precedence::primary, code.carrier};
}

}  // namespace quern::frontend
