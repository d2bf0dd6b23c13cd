// SPDX-License-Identifier: Apache-2.0
#include "frontend/analyse/fold_branches.hpp"

#include "frontend/values/literal.hpp"

namespace quern::frontend {
namespace {

std::optional<bool> truth_of(const Value& value) {
  return value.is_any_number() ? std::optional(!value.is_zero()) : std::nullopt;
}

}  // namespace

/// Handles `x is None` for a parameter x. The outcome is known for these argument types, so the other branch
/// need not be well-typed.
std::optional<bool> KnownOutcomes::about_none(const Expr& expr) const {
  if (expr.kind == ExprKind::unary && expr.op == Tok::k_not) {
    const std::optional<bool> inner = about_none(*expr.items[0]);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (expr.kind != ExprKind::compare || expr.ops.size() != 1 || expr.items[1]->kind != ExprKind::none ||
      expr.items[0]->kind != ExprKind::name)
    return std::nullopt;
  const std::uint32_t version = scope_.load(*expr.items[0]);
  if (version == kNoVersion || scope_.versions[version].kind != Version::Kind::parameter) return std::nullopt;
  const bool none = specialisation_.version_types[version] == none_;
  if (expr.ops[0] == Tok::k_is || expr.ops[0] == Tok::equal) return none;
  if (expr.ops[0] == Tok::is_not || expr.ops[0] == Tok::not_equal) return !none;
  return std::nullopt;
}

std::uint32_t KnownOutcomes::tested(const Expr& name) const {
  const auto first = scope_.first_loads.find(name.id);
  return first_test_ && first != scope_.first_loads.end() ? first->second : scope_.load(name);
}

/// True for a number literal, a name that holds one on every path, and `a.ndim`; not for arithmetic on names.
bool KnownOutcomes::is_fixed(const Expr& expr) const {
  if (expr.kind == ExprKind::attribute) return expr.name == "ndim";
  if (expr.kind != ExprKind::name) return is_literal(expr);
  const std::uint32_t version = tested(expr);
  return version == kNoVersion || fixed_[version];
}

const Value& KnownOutcomes::fixed_value(const Expr& expr) const {
  const std::uint32_t version = expr.kind == ExprKind::name ? tested(expr) : kNoVersion;
  return version == kNoVersion ? specialisation_.constant(expr) : specialisation_.version_constants[version];
}

std::optional<bool> KnownOutcomes::outcome(const Expr& expr) const {
  if (const std::optional<bool> known = about_none(expr)) return known;
  if (is_fixed(expr)) return truth_of(fixed_value(expr));
  if (expr.kind == ExprKind::unary && expr.op == Tok::k_not) {
    const std::optional<bool> inner = outcome(*expr.items[0]);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (expr.kind == ExprKind::compare) return comparison(expr);
  if (expr.kind != ExprKind::logical) return std::nullopt;
  std::optional<bool> known;
  for (const Expr* item : expr.items) {
    known = outcome(*item);
    if (!known || *known == (expr.op == Tok::k_or)) return known;
  }
  return known;
}

/// For a chain of comparisons, evaluates as many leading comparisons as are known.
std::optional<bool> KnownOutcomes::comparison(const Expr& chain) const {
  for (std::size_t i = 0; i < chain.ops.size(); ++i) {
    const Expr &left = *chain.items[i], &right = *chain.items[i + 1];
    if (!is_fixed(left) || !is_fixed(right)) return std::nullopt;
    const std::optional<bool> known = truth_of(fold(chain.ops[i], fixed_value(left), fixed_value(right)));
    if (known != true) return known;
  }
  return true;
}

/// Evaluates a loop's condition for its first test.
std::optional<bool> KnownOutcomes::at_first_test(const Expr& condition) {
  first_test_ = true;
  const std::optional<bool> known = outcome(condition);
  first_test_ = false;
  return known;
}

}  // namespace quern::frontend
