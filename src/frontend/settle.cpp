// SPDX-License-Identifier: Apache-2.0
// Conditions whose outcome is known before anything runs. Numba leaves such branches out before it looks at
// types, and Python's compiler what stands beside a number in `and` and `or`, so that types agree only if the
// same is left out here: docs/language.md.
#include "frontend/infer.hpp"

namespace quern::frontend {
namespace {

bool is_literal(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::integer:
    case ExprKind::real:
    case ExprKind::boolean:
      return true;
    case ExprKind::unary:
      return is_literal(*expr.items[0]);
    case ExprKind::binary:
      return is_literal(*expr.items[0]) && is_literal(*expr.items[1]);
    default:
      return false;
  }
}

std::optional<bool> truth_of(const Value& value) {
  if (!value.is_number()) return std::nullopt;
  return value.kind == Value::Kind::real ? value.real != 0 : value.integer != 0;
}

bool compares_numbers(Tok op) {
  switch (op) {
    case Tok::equal:
    case Tok::not_equal:
    case Tok::less:
    case Tok::less_equal:
    case Tok::greater:
    case Tok::greater_equal:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<bool> Inference::about_none(const Expr& expr) const {
  if (expr.kind == ExprKind::unary && expr.op == Tok::k_not) {
    const std::optional<bool> inner = about_none(*expr.items[0]);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (expr.kind != ExprKind::compare || expr.ops.size() != 1 || expr.items[1]->kind != ExprKind::none ||
      expr.items[0]->kind != ExprKind::name)
    return std::nullopt;
  const std::uint32_t version = scope_.load(*expr.items[0]);
  if (version == kNoVersion || scope_.versions[version].kind != Version::Kind::parameter) return std::nullopt;
  const bool none = instance_.version_types[version] == types_.none;
  if (expr.ops[0] == Tok::k_is || expr.ops[0] == Tok::equal) return none;
  if (expr.ops[0] == Tok::is_not || expr.ops[0] == Tok::not_equal) return !none;
  return std::nullopt;
}

/// A number that stands there, or a name for one: of the module, or assigned once in the whole function.
bool Inference::is_fixed(const Expr& expr) const {
  if (is_literal(expr)) return true;
  if (expr.kind != ExprKind::name) return false;
  const std::uint32_t version = scope_.load(expr);
  return version == kNoVersion || fixed_[version];
}

std::optional<bool> Inference::settled(const Expr& expr) const {
  if (const std::optional<bool> known = about_none(expr)) return known;
  if (is_fixed(expr)) return truth_of(instance_.constant(expr));
  if (expr.kind == ExprKind::unary && expr.op == Tok::k_not) {
    const std::optional<bool> inner = settled(*expr.items[0]);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (expr.kind == ExprKind::compare && expr.ops.size() == 1 && compares_numbers(expr.ops[0]) &&
      is_fixed(*expr.items[0]) && is_fixed(*expr.items[1]))
    return truth_of(
        fold(expr.ops[0], instance_.constant(*expr.items[0]), instance_.constant(*expr.items[1])));
  if (expr.kind != ExprKind::logical) return std::nullopt;
  const std::vector<const Expr*> left = instance_.operands(expr);
  return left.size() == 1 ? settled(*left[0]) : std::nullopt;
}

}  // namespace quern::frontend
