// SPDX-License-Identifier: Apache-2.0
// Conditions, comparisons, and expressions that depend on conditions.
#include <algorithm>
#include <tuple>

#include "frontend/codegen/emit.hpp"

namespace quern::frontend {

Code TruthCode::condition(const Expr& expr) {
  return condition_of(emitter_.expression(expr), specialisation_.type(expr));
}

Code TruthCode::condition_of(const Code& code, Type type) {
  if (type->kind == TypeKind::boolean) return code;
  if (is_tuple(type)) return {type->items.empty() ? "false" : "true", Precedence::primary, CppType::boolean};
  if (type->kind == TypeKind::none) return {"false", Precedence::primary, CppType::boolean};
  if (is_complex(type))
    return {cpp_text("{} != 0", inside(code, Precedence::relation)), Precedence::equality, CppType::boolean};
  if (code.cpp_type == CppType::f16 || code.cpp_type == CppType::bf16)
    return {cpp_text("float({}) != 0", code.text), Precedence::equality, CppType::boolean};
  return {cpp_text("{} != 0", inside(code, Precedence::relation)), Precedence::equality, CppType::boolean};
}

/// a < b < c means a < b and b < c; b is evaluated once, and c only if a < b.
Code TruthCode::compare(const Expr& expr) {
  const std::size_t count = expr.items.size();
  const auto operand = [&](std::size_t i) {
    const Type type = specialisation_.type(*expr.items[i]);
    if (type->kind == TypeKind::range) return emitter_.loops().range_code(*expr.items[i]);
    if (!is_tuple(type) && !is_number(type)) return Code{"0"};
    return i < 2 ? emitter_.expression(*expr.items[i]) : emitter_.order().isolated(*expr.items[i]);
  };
  std::vector<Comparison> parts;
  Code left = operand(0), only;
  for (std::size_t i = 1; i < count; ++i) {
    Code right = operand(i);
    Comparison part;
    if (i + 1 < count && written_twice(*expr.items[i])) {
      if (i == 1) {
        right = emitter_.order().held(right, specialisation_.type(*expr.items[i]));
      } else {
        const std::string name = emitter_.temporary("middle");
        part.before = cpp_text("const auto {} = {}; ", name, right.text);
        right = {name, Precedence::primary, right.cpp_type};
      }
    }
    only = compare_two(expr.ops[i - 1], *expr.items[i - 1], left, *expr.items[i], right);
    part.test = inside(only, Precedence::logical_and);
    parts.push_back(std::move(part));
    left = right;
  }
  return count == 2 ? only : joined(parts);
}

/// True if the expression can be written twice without a variable: a name, a number, or arithmetic on these.
bool TruthCode::written_twice(const Expr& expr) const {
  if (emitter_.is_simple(expr) || emitter_.order().held_code(expr) != nullptr) return false;
  return expr.kind != ExprKind::binary || emitter_.effects(expr) != Effects::none;
}

Code TruthCode::joined(const std::vector<Comparison>& parts) {
  const bool plain =
      std::all_of(parts.begin(), parts.end(), [](const Comparison& part) { return part.before.empty(); });
  CppText text = plain ? "" : "[&] { ";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (plain)
      text += (i == 0 ? "" : " && ") + parts[i].test;
    else if (i + 1 < parts.size())
      text += cpp_text("{}if (!({})) return false; ", parts[i].before, parts[i].test);
    else
      text += cpp_text("{}return {}; }}()", parts[i].before, parts[i].test);
  }
  return {text, plain ? Precedence::logical_and : Precedence::primary, CppType::boolean};
}

/// The type in which Numba compares two values; for tuples, that of each pair of items. Nothing if their
/// lengths differ.
Type TruthCode::compared(Type a, Type b) const {
  if (!is_tuple(a)) return operation(*unit_.types, Tok::equal, a, b)->operand;
  if (a->items.size() != b->items.size()) return nullptr;
  std::vector<Type> items;
  for (std::size_t i = 0; i < a->items.size(); ++i) {
    items.push_back(compared(a->items[i], b->items[i]));
    if (items.back() == nullptr) return nullptr;
  }
  return unit_.types->tuple(std::move(items));
}

/// Converts each pair of items of two tuples to the type in which they are compared.
std::pair<Type, Type> TruthCode::compared_parts(Type a, Type b) const {
  std::vector<Type> x = a->items, y = b->items;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (is_tuple(x[i]))
      std::tie(x[i], y[i]) = compared_parts(x[i], y[i]);
    else
      x[i] = y[i] = compared(x[i], y[i]);
  return {unit_.types->tuple(std::move(x)), unit_.types->tuple(std::move(y))};
}

CppText TruthCode::tuple_as(const Code& tuple, Type from, Type to) {
  return from == to ? tuple.text : cpp_text("{}({})", type_text(to), tuple.text);
}

Code TruthCode::compare_two(Tok op, const Expr& left, const Code& a, const Expr& right, const Code& b) {
  const Type left_type = specialisation_.type(left), right_type = specialisation_.type(right);
  const auto truth = [](bool value) {
    return Code{value ? "true" : "false", Precedence::primary, CppType::boolean};
  };
  if (left_type->kind == TypeKind::none || right_type->kind == TypeKind::none)
    return truth((left_type == right_type) == (op == Tok::k_is || op == Tok::equal));
  // for Booleans
  if (op == Tok::k_is || op == Tok::is_not) op = op == Tok::k_is ? Tok::equal : Tok::not_equal;
  if (op == Tok::k_in || op == Tok::not_in) {
    std::vector<Type> met;
    for (const Type item : right_type->items) met.push_back(compared(left_type, item));
    const Code code = right_type->kind == TypeKind::range
                          ? call_of(b.text + ".contains", {a.text}, CppType::boolean)
                          : call("quern::item_in", {a.text, tuple_as(b, right_type, unit_.types->tuple(met))},
                                 CppType::boolean);
    return op == Tok::k_in ? code : Code{"!" + code.text, Precedence::unary, CppType::boolean};
  }
  if (is_tuple(left_type) && op != Tok::equal && op != Tok::not_equal) {
    const auto [x, y] = compared_parts(left_type, right_type);
    return call("quern::item_ordered",
                {tuple_as(a, left_type, x), tuple_as(b, right_type, y),
                 cpp_text("[](auto x, auto y) {{ return x {} y; }}", text_of(op))},
                CppType::boolean);
  }
  if (is_tuple(left_type)) {
    Code code{"false", Precedence::primary, CppType::boolean};
    if (const Type met = compared(left_type, right_type))
      code = call("quern::item_equal", {tuple_as(a, left_type, met), tuple_as(b, right_type, met)},
                  CppType::boolean);
    return op == Tok::equal ? code : Code{"!" + code.text, Precedence::unary, CppType::boolean};
  }
  const Type operand = operation(*unit_.types, op, left_type, right_type)->operand;
  Code x = a, y = b;
  if (is_integral(left_type) && is_integral(right_type)) {
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    const Range &p = emitter_.range(left), &q = emitter_.range(right);
    if (x.cpp_type == CppType::u32 && p.within(0, INT32_MAX) && is_signed(y.cpp_type) && q.low < 0)
      x = convert(x, CppType::i32);
    if (y.cpp_type == CppType::u32 && q.within(0, INT32_MAX) && is_signed(x.cpp_type) && p.low < 0)
      y = convert(y, CppType::i32);
    const bool same_sign =
        is_signed(promoted(x.cpp_type, y.cpp_type)) || (!is_signed(x.cpp_type) && !is_signed(y.cpp_type));
    const auto harmless = [](const Code& signed_side, const Range& of) {
      return !is_signed(signed_side.cpp_type) || (of.low >= 0 && of.exact);
    };
    if (!same_sign && harmless(x, p) && harmless(y, q)) {
      // Neither side is negative, so C++'s unsigned comparison gives the correct result.
    } else if (!same_sign ||
               (is_floating(operand) && !p.within(-kExact, kExact) && !q.within(-kExact, kExact))) {
      const CppType wide = is_floating(operand) ? CppType::f64 : CppType::i64;
      x = convert(x, wide);
      if (wide == CppType::f64 || y.cpp_type == CppType::u64)
        y = convert(y, wide);
      else if (x.cpp_type != wide)
        y = convert(y, wide);
    }
  } else {
    meet(x, y, cpp_type_of(operand));
  }
  return infix(op, x, y, CppType::boolean);
}

Code TruthCode::logical(const Expr& expr) {
  const std::vector<const Expr*> operands = specialisation_.operands(expr);
  if (operands.size() == 1) return emitter_.expression(*operands[0]);
  const Type type = specialisation_.type(expr);
  const bool and_ = expr.op == Tok::k_and;
  const bool all_truths = std::all_of(operands.begin(), operands.end(), [&](const Expr* item) {
    return specialisation_.type(*item)->kind == TypeKind::boolean;
  });
  if (all_truths) {
    const Precedence precedence = precedence_of(expr.op);
    std::vector<CppText> parts;
    for (const Expr* item : operands) {
      const Code code = item == operands[0] ? emitter_.expression(*item) : emitter_.order().isolated(*item);
      // a && b || c is easily misread
      const bool mixed = code.precedence == Precedence::logical_and && !and_;
      parts.push_back(mixed ? cpp_text("({})", code.text) : inside(code, precedence));
    }
    return {join(parts, and_ ? " && " : " || "), precedence, CppType::boolean};
  }
  // The value of the expression is the operand that decides.
  const CppType cpp_type = cpp_type_of(type);
  Code result = convert(emitter_.order().isolated(*operands.back()), cpp_type);
  for (std::size_t i = operands.size() - 1; i-- > 0;) {
    const Code value = convert(
        i == 0 ? emitter_.expression(*operands[i]) : emitter_.order().isolated(*operands[i]), cpp_type);
    result = call(and_ ? "quern::both" : "quern::either",
                  {value.text, cpp_text("[&] {{ return {}; }}", result.text)}, cpp_type);
  }
  return result;
}

Code TruthCode::conditional(const Expr& expr) {
  if (const std::optional<bool> known = specialisation_.known_choice(expr))
    return emitter_.order().isolated(*expr.items[*known ? 1 : 2]);
  const Type type = specialisation_.type(expr);
  const Code test = condition(*expr.items[0]);
  Code a = emitter_.order().isolated(*expr.items[1]), b = emitter_.order().isolated(*expr.items[2]);
  CppType cpp_type = cpp_type_of(type);
  if (is_number(type)) {
    if (is_integral(type) && fits_int(a.cpp_type) && fits_int(b.cpp_type) && is_signed(cpp_type)) {
      cpp_type = a.cpp_type == b.cpp_type ? a.cpp_type : CppType::i32;  // C++ widens only different types
    } else if (promoted(a.cpp_type, b.cpp_type) != cpp_type || !is_plain(a.cpp_type) ||
               !is_plain(b.cpp_type)) {
      a = convert(a, cpp_type);
      b = convert(b, cpp_type);
    }
  } else if (is_record(type) || is_vector(type)) {
  } else if (specialisation_.type(*expr.items[1]) != type || specialisation_.type(*expr.items[2]) != type) {
    a.text = cpp_text("{}({})", type_text(type), a.text);
    b.text = cpp_text("{}({})", type_text(type), b.text);
  }
  return {cpp_text("{} ? {} : {}", inside(test, Precedence::logical_or), inside(a, Precedence::logical_or),
                   inside(b, Precedence::conditional)),
          Precedence::conditional, cpp_type};
}

}  // namespace quern::frontend
