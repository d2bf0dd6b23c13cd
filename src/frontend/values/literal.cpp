// SPDX-License-Identifier: Apache-2.0
// Arithmetic on literals. CPython computes it before Numba sees it, with integers of any length: 10**-2 is
// 0.01 and 2**64 - 1 is a uint64, but the operators of the device would give other results.
#include "frontend/values/literal.hpp"

namespace quern::frontend {

bool is_literal(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::integer:
    case ExprKind::real:
    case ExprKind::imaginary:
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

namespace {

/// The result of Python arithmetic on integer literals, up to 128 bits, and whether CPython or Numba computes
/// it.
struct Computed {
  std::optional<BigInteger> value;
  bool by_python = false;        ///< CPython computes it before the program runs
  const Expr* beyond = nullptr;  ///< the part that the device would compute and that does not fit 64 bits
};

bool grows(Tok op) {
  return op == Tok::times || op == Tok::power || op == Tok::left_shift || op == Tok::plus || op == Tok::minus;
}

Computed whole_literal(const Expr& expr) {
  if (expr.kind == ExprKind::unary) {
    Computed inner = whole_literal(*expr.items[0]);
    const Value value = inner.value ? fold_unary(expr.op, Value::of(*inner.value)) : Value{};
    inner.value = value.is_whole() ? std::optional(value.as_whole()) : std::nullopt;
    return inner;
  }
  if (expr.kind == ExprKind::binary) {
    const Computed a = whole_literal(*expr.items[0]), b = whole_literal(*expr.items[1]);
    if (a.beyond != nullptr || b.beyond != nullptr)
      return {{}, false, a.beyond != nullptr ? a.beyond : b.beyond};
    if (!a.value || !b.value || expr.op == Tok::divide) return {};
    if ((expr.op == Tok::power || expr.op == Tok::left_shift) && b.value->negative()) return {};
    const auto result = BigInteger::compute(expr.op, *a.value, *b.value);
    if (result && a.by_python && b.by_python && python_folds(expr.op, *a.value, *b.value))
      return {result, true};
    const bool fits = result && (result->as_int64() || result->as_uint64());
    return {result, false, grows(expr.op) && !fits ? &expr : nullptr};
  }
  const Value value = literal_value(expr);
  return {value.is_whole() ? std::optional(value.as_whole()) : std::nullopt, true};
}

}  // namespace

const Expr* part_beyond_64_bits(const Expr& literal) { return whole_literal(literal).beyond; }

Value literal_value(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::integer: {
      if (!expr.too_large) return Value::of(BigInteger::of_unsigned(expr.integer));
      const auto whole = BigInteger::read(expr.name);
      return whole ? Value::of(*whole) : Value{};
    }
    case ExprKind::real:
      return Value::of(expr.real);
    case ExprKind::imaginary:
      return Value::complex(0, expr.real);
    case ExprKind::boolean:
      return Value::boolean(expr.integer != 0);
    case ExprKind::unary:
      return fold_unary(expr.op, literal_value(*expr.items[0]));
    case ExprKind::binary: {
      const Value a = literal_value(*expr.items[0]), b = literal_value(*expr.items[1]);
      if (a.is_whole() && b.is_whole() && !python_folds(expr.op, a.as_whole(), b.as_whole())) return {};
      return fold(expr.op, a, b);
    }
    default:
      return {};
  }
}

Type type_of_number(const TypeTable& types, const Value& value) {
  if (value.type != nullptr) return value.type;
  switch (value.kind) {
    case Value::Kind::integer:
      return types.int64;
    case Value::Kind::big:
      return value.big.as_uint64() ? types.uint64 : nullptr;
    case Value::Kind::real:
      return types.float64;
    case Value::Kind::boolean:
      return types.boolean;
    case Value::Kind::complex:
      return types.complex128;
    default:
      return nullptr;
  }
}

}  // namespace quern::frontend
