// SPDX-License-Identifier: Apache-2.0
// Evaluates array expressions at a file's own level, such as TABLE / 16 or np.arange(6).reshape(2, 3). It
// computes only results whose type is certain; the host program can bind all other arrays.
#include <algorithm>

#include "frontend/module/names.hpp"
#include "frontend/values/literal.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;

bool is_plain_real(Type type) { return is_floating(type) && type->bits >= 32; }

/// NumPy's type of an operator's result for elements of these types; null if it is not known. A null type
/// stands for a Python number, of which only the kind affects the result type.
Type element_of(const TypeTable& types, Tok op, Type a, Type b, const Value& number) {
  const Type typed = a != nullptr ? a : b;
  if (!is_integer(typed) && !is_plain_real(typed)) return nullptr;
  const bool one = a == b || ((a == nullptr || b == nullptr) && (number.is_whole() || is_floating(typed)));
  if (one) return op == Tok::divide && is_integer(typed) ? types.float64 : typed;
  if (a == nullptr || b == nullptr) return number.kind == Kind::real ? types.float64 : nullptr;
  const bool wide = (a == types.float64 && (is_integer(b) || is_plain_real(b))) ||
                    (b == types.float64 && (is_integer(a) || is_plain_real(a)));
  return wide ? types.float64 : nullptr;
}

/// The caller rounds to the elements' type when it stores the result: for float32 that is as exact as
/// computing in float32.
Value computed(Tok op, const Value& x, const Value& y, Type type) {
  if (is_integer(type)) {
    const auto whole = BigInteger::compute(op, x.as_whole(), y.as_whole());
    return whole ? Value::of(*whole) : Value{};
  }
  const double a = x.as_real(), b = y.as_real();
  return Value::of(op == Tok::plus ? a + b : op == Tok::minus ? a - b : op == Tok::times ? a * b : a / b);
}

}  // namespace

Value Names::evaluate_elements(const Expr& expr, const Value& left, const Value& right) {
  const bool basic =
      expr.op == Tok::plus || expr.op == Tok::minus || expr.op == Tok::times || expr.op == Tok::divide;
  const bool both = left.kind == Kind::array && right.kind == Kind::array;
  const Value& array = left.kind == Kind::array ? left : right;
  const Value& other = left.kind == Kind::array ? right : left;
  if (!basic || (both ? left.shape != right.shape : !other.is_number())) return {};
  // A name may hold NumPy's float64, and float32 combined with that gives float64.
  const bool sure = is_literal(*expr.items[left.kind == Kind::array ? 1 : 0]) || array.type->bits == 64;
  if (other.kind == Kind::real && other.type == nullptr && is_floating(array.type) && !sure) return {};
  const Type type = element_of(types_, expr.op, left.type, right.type, other);
  if (type == nullptr) return {};
  std::vector<Value> elements;
  for (std::size_t i = 0; i < array.items.size(); ++i) {
    const Value x = cast(left.kind == Kind::array ? left.items[i] : left, type);
    const Value y = cast(right.kind == Kind::array ? right.items[i] : right, type);
    if (x.kind == Kind::unknown || y.kind == Kind::unknown) return {};
    elements.push_back(computed(expr.op, x, y, type));
  }
  return array_of(std::move(elements), array.shape, type);
}

Value Names::evaluate_method(const Expr& expr, const Value& array) {
  const std::string_view name = expr.items[0]->name;
  const bool plain = std::none_of(expr.items.begin(), expr.items.end(),
                                  [](const Expr* item) { return item->kind == ExprKind::keyword; });
  if (!plain || expr.items.size() < 2) return {};
  if (name == "astype" && expr.items.size() == 2) {
    const Type type = element_type(*expr.items[1]);
    return type == nullptr || !is_number(type) || is_record(array.type)
               ? Value{}
               : array_of(array.items, array.shape, type);
  }
  if (name != "reshape") return {};
  Value extents;
  extents.kind = Kind::tuple;
  for (std::size_t i = 1; i < expr.items.size(); ++i) extents.items.push_back(evaluate(*expr.items[i]));
  const auto shape = shape_of(extents.items.size() == 1 ? extents.items[0] : extents);
  if (!shape || std::any_of(shape->begin(), shape->end(), [](std::int64_t n) { return n < -1 || n == 0; }))
    return {};
  std::int64_t count = static_cast<std::int64_t>(array.items.size()), rest = count;
  std::int64_t* open = nullptr;
  std::vector<std::int64_t> whole = *shape;
  for (std::int64_t& extent : whole) {
    if (extent == -1 ? open != nullptr : rest % extent != 0) return {};
    if (extent == -1)
      open = &extent;
    else
      rest /= extent;
  }
  if (open != nullptr) *open = rest;
  if (count == 0 || (open == nullptr && rest != 1)) return {};
  Value result = array;
  result.shape = std::move(whole);
  return result;
}

}  // namespace quern::frontend
