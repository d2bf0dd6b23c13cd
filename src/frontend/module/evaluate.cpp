// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/module/decide.hpp"
#include "frontend/module/decorators.hpp"
#include "frontend/module/signature.hpp"
#include "frontend/values/literal.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;

/// np.iinfo(T).max, np.finfo(T).eps and similar.
Value limit_of(std::string_view table, Type type, std::string_view name) {
  if (table == "numpy.iinfo" && is_integer(type)) {
    const std::uint64_t ones = ~std::uint64_t{0} >> (64 - type->bits);
    const std::uint64_t most = type->is_signed ? ones >> 1 : ones;
    if (name == "bits") return Value::of(std::int64_t{type->bits});
    if (name == "min") return Value::of(type->is_signed ? -static_cast<std::int64_t>(most) - 1 : 0);
    if (name == "max") return Value::of(BigInteger::of_unsigned(most));
  }
  if (table != "numpy.finfo" || !is_floating(type)) return {};
  const int digits = type->brain ? 8 : type->bits == 16 ? 11 : type->bits == 32 ? 24 : 53;
  const int exponent = type->bits == 16 && !type->brain ? 16 : type->bits <= 32 ? 128 : 1024;
  const double eps = std::ldexp(1.0, 1 - digits), most = std::ldexp(2.0 - eps, exponent - 1);
  Value value;
  if (name == "eps") value = Value::of(eps);
  if (name == "max") value = Value::of(most);
  if (name == "min") value = Value::of(-most);
  if (name == "tiny" || name == "smallest_normal") value = Value::of(std::ldexp(1.0, 2 - exponent));
  if (name == "bits") return Value::of(std::int64_t{type->bits});
  if (value.kind == Kind::real && type->bits != 64) value.type = type;
  return value;
}

}  // namespace

Value Evaluator::evaluate(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::integer:
    case ExprKind::real:
    case ExprKind::imaginary:
    case ExprKind::boolean: {
      const Value value = literal_value(expr);
      return value.is_any_number() ? value : Value::host("a number beyond 128 bits");
    }
    case ExprKind::none: {
      Value value;
      value.kind = Kind::none;
      return value;
    }
    case ExprKind::string: {
      Value value;
      value.kind = Kind::string;
      value.text = expr.name;
      return value;
    }
    case ExprKind::tuple:
    case ExprKind::list:
      return items(expr);
    case ExprKind::name:
      for (auto inner = inner_names_.rbegin(); inner != inner_names_.rend(); ++inner)
        if (inner->first == expr.name) return inner->second;
      return bindings_.global(expr.name);
    case ExprKind::attribute:
      return attribute(expr);
    case ExprKind::subscript:
      return subscript(expr);
    case ExprKind::call:
      return call(expr);
    case ExprKind::unary: {
      const Value value = fold_unary(expr.op, evaluate(*expr.items[0]));
      return value.is_any_number() ? value : Value::computed();
    }
    case ExprKind::binary:
      return binary(expr);
    case ExprKind::compare:
      return compare(expr);
    case ExprKind::logical:
    case ExprKind::conditional:
      return choice(expr);
    case ExprKind::unsupported:
      return expr.items.size() == 3 ? comprehension(expr) : Value::computed();
    default:
      return Value::computed();
  }
}

std::string dotted_text(const Expr& expr) {
  if (expr.kind == ExprKind::name) return std::string(expr.name);
  if (expr.kind != ExprKind::attribute) return {};
  const std::string base = dotted_text(*expr.items[0]);
  return base.empty() ? base : base + "." + std::string(expr.name);
}

Value Evaluator::binary(const Expr& expr) {
  const Value left = evaluate(*expr.items[0]), right = evaluate(*expr.items[1]);
  Value result = fold(expr.op, left, right);
  if (result.kind == Kind::unknown) result = fold_single(file_.types, expr.op, left, right);
  if (left.kind == Kind::array || right.kind == Kind::array)
    result = fold_elements(file_.types, expr, left, right);
  if (expr.op == Tok::plus && left.kind == Kind::tuple && right.kind == Kind::tuple &&
      left.list == right.list) {
    result = left;
    result.items.insert(result.items.end(), right.items.begin(), right.items.end());
  }
  return result.kind == Kind::unknown ? Value::computed() : result;
}

/// Compares numbers; supports `is` and `is not` with None as well.
Value Evaluator::compare(const Expr& expr) {
  Value result = Value::boolean(true);
  for (std::size_t i = 0; i < expr.ops.size() && !result.is_zero(); ++i) {
    const Value left = evaluate(*expr.items[i]), right = evaluate(*expr.items[i + 1]);
    const bool identity = expr.ops[i] == Tok::k_is || expr.ops[i] == Tok::is_not;
    if (identity && right.kind == Kind::none && (left.kind == Kind::none || left.is_any_number()))
      result = Value::boolean((left.kind == Kind::none) == (expr.ops[i] == Tok::k_is));
    else
      result = fold(expr.ops[i], left, right);
    if (result.kind != Kind::boolean) result = compare_texts(expr.ops[i], left, right);
    if (result.kind != Kind::boolean) return Value::computed();
  }
  return result;
}

/// `a and b`, `a or b`, `a if c else b`, if the deciding values are known.
Value Evaluator::choice(const Expr& expr) {
  const auto truth = [](const Value& value) { return truth_of(value); };
  if (expr.kind == ExprKind::conditional) {
    const std::optional<bool> known = truth(evaluate(*expr.items[0]));
    return known ? evaluate(*expr.items[*known ? 1 : 2]) : Value::computed();
  }
  Value value;
  for (const Expr* item : expr.items) {
    value = evaluate(*item);
    const std::optional<bool> known = truth(value);
    if (!known) return Value::computed();
    if (*known == (expr.op == Tok::k_or)) break;
  }
  return value;
}

Value Evaluator::items(const Expr& expr) {
  Value tuple;
  tuple.kind = Kind::tuple;
  tuple.list = expr.kind == ExprKind::list;
  for (const Expr* item : expr.items) {
    tuple.items.push_back(evaluate(*item));
    if (tuple.items.back().kind == Kind::unknown || tuple.items.back().kind == Kind::host)
      return Value::computed();
  }
  return tuple;
}

/// module.name, array.shape, dtype attributes.
Value Evaluator::attribute(const Expr& expr) {
  // The callee is looked up twice, so it must be a plain name.
  if (const Expr& call = *expr.items[0];
      call.kind == ExprKind::call && call.items.size() == 2 && !dotted_text(*call.items[0]).empty()) {
    const Value callee = evaluate(*call.items[0]);
    const Type type = callee.is_imported("numpy.iinfo") || callee.is_imported("numpy.finfo")
                          ? type_reader_.element_type(*call.items[1])
                          : nullptr;
    const Value limit = type == nullptr ? Value{} : limit_of(callee.text, type, expr.name);
    if (limit.kind != Kind::unknown) return limit;
  }
  return attribute_of(evaluate(*expr.items[0]), expr.name);
}

Value Evaluator::attribute_of(const Value& base, std::string_view name) {
  if (base.kind == Kind::module_ && is_enumeration(base)) return bindings_.member_of(base, name);
  if (base.kind == Kind::module_)
    return bindings_.path_value(canonical(fmt::format("{}.{}", base.text, name)));
  if (base.is_number() && !base.text.empty() && name == "value") return base;
  if (base.kind == Kind::array && name == "shape") {
    Value shape;
    shape.kind = Kind::tuple;
    for (const std::int64_t extent : base.shape) shape.items.push_back(Value::of(extent));
    return shape;
  }
  if (base.kind == Kind::array && name == "size")
    return Value::of(static_cast<std::int64_t>(base.items.size()));
  if (base.is_imported()) return bindings_.path_value(canonical(fmt::format("{}.{}", base.text, name)));
  return Value::computed();
}

Value Evaluator::subscript(const Expr& expr) {
  const Value base = evaluate(*expr.items[0]);
  if (base.kind == Kind::tuple && expr.items[1]->kind == ExprKind::slice)
    return slice_of(base, *expr.items[1]);
  const Value index = expr.items[1]->kind == ExprKind::slice ? Value{} : evaluate(*expr.items[1]);
  if (base.kind == Kind::tuple && index.kind == Kind::integer) {
    const auto count = static_cast<std::int64_t>(base.items.size());
    const std::int64_t at = index.integer < 0 ? index.integer + count : index.integer;
    if (at >= 0 && at < count) return base.items[static_cast<std::size_t>(at)];
  }
  if (base.kind == Kind::dtype) {
    Value value = base;
    value.type = type_reader_.array_type(expr);
    return value;
  }
  return Value::computed();
}

}  // namespace quern::frontend
