// SPDX-License-Identifier: Apache-2.0
// The types of literals, and results of operators on known numbers.
#include "frontend/analyse/infer.hpp"

namespace quern::frontend {

/// Null if the expression is no literal.
Type Inference::literal(const Expr& expr) {
  const Value value = literal_value(expr);
  if (!value.is_any_number()) {
    const Expr* beyond = part_beyond_64_bits(expr);
    if (beyond == nullptr) return nullptr;
    return fail(beyond->place, "types", "integers have 64 bits; of reals it is a float: 2.0**100",
                "'{}' does not fit an integer", shown(*beyond));
  }
  for (const Expr* item : expr.items) fill_literal(*item);
  specialisation_.constants[expr.id] = value;
  if (const Type type = type_of_number(types_, value)) return type;
  specialisation_.constants[expr.id] = {};
  return fail(expr.place, "types", "integers have 64 bits", "this number does not fit an integer");
}

/// The parts of a literal do not affect its type. Their types are set for code that walks over expressions.
void Inference::fill_literal(const Expr& expr) {
  for (const Expr* item : expr.items) fill_literal(*item);
  const Value value = literal_value(expr);
  const Type type = value.is_any_number() ? type_of_number(types_, value) : nullptr;
  specialisation_.types[expr.id] = type != nullptr ? type : types_.int64;
  specialisation_.constants[expr.id] = {};
}

/// The known result of an operator on values of names, if the device computes the same as Python.
Value Inference::computed(Tok op, const Value& a, const Value& b, Type type) {
  const bool plain = a.is_number() && b.is_number();
  const bool real = a.kind == Value::Kind::real || b.kind == Value::Kind::real;
  if (!plain || type == nullptr || (real && (op == Tok::mod || op == Tok::floor_divide))) return {};
  const Value value = fold(op, a, b);
  return is_of(value, type) ? value : Value{};
}

}  // namespace quern::frontend
