// SPDX-License-Identifier: Apache-2.0
// Conditions, comparisons, and expressions that select by them.
#include <algorithm>
#include <tuple>

#include "frontend/emit.hpp"

namespace quern::frontend {

Code Emitter::condition(const Expr& expr) { return condition_of(expression(expr), instance_.type(expr)); }

Code Emitter::condition_of(const Code& code, Type type) {
  if (type->kind == TypeKind::boolean) return code;
  if (is_tuple(type)) return {type->items.empty() ? "false" : "true", Precedence::primary, Carrier::boolean};
  if (type->kind == TypeKind::none) return {"false", Precedence::primary, Carrier::boolean};
  if (is_complex(type))
    return {fmt::format("{} != 0", inside(code, Precedence::relation)), Precedence::equality,
            Carrier::boolean};
  if (code.carrier == Carrier::f16 || code.carrier == Carrier::bf16)
    return {fmt::format("float({}) != 0", code.text), Precedence::equality, Carrier::boolean};
  return {fmt::format("{} != 0", inside(code, Precedence::relation)), Precedence::equality, Carrier::boolean};
}

/// a < b < c is a < b and b < c, with b computed once and c only if it matters.
Code Emitter::compare(const Expr& expr) {
  const std::size_t count = expr.items.size();
  const auto operand = [&](std::size_t i) {
    const Type type = instance_.type(*expr.items[i]);
    if (type->kind == TypeKind::range) return range_code(*expr.items[i]);
    if (!is_tuple(type) && !is_number(type)) return Code{"0"};
    return i < 2 ? expression(*expr.items[i]) : isolated(*expr.items[i]);
  };
  std::vector<Comparison> parts;
  Code left = operand(0), only;
  for (std::size_t i = 1; i < count; ++i) {
    Code right = operand(i);
    Comparison part;
    if (i + 1 < count && written_twice(*expr.items[i])) {
      if (i == 1) {
        right = held(right, instance_.type(*expr.items[i]));
      } else {
        const std::string name = temporary("middle");
        part.before = fmt::format("const auto {} = {}; ", name, right.text);
        right = {name, Precedence::primary, right.carrier};
      }
    }
    only = compare_two(expr.ops[i - 1], *expr.items[i - 1], left, *expr.items[i], right);
    part.test = inside(only, Precedence::logical_and);
    parts.push_back(std::move(part));
    left = right;
  }
  return count == 2 ? only : joined(parts);
}

/// True if the expression needs no variable: a name, a number, arithmetic on these.
bool Emitter::written_twice(const Expr& expr) const {
  if (is_simple(expr) || held_code(expr) != nullptr) return false;
  return expr.kind != ExprKind::binary || effects(expr) != Effects::none;
}

Code Emitter::joined(const std::vector<Comparison>& parts) {
  const bool plain =
      std::all_of(parts.begin(), parts.end(), [](const Comparison& part) { return part.before.empty(); });
  std::string text = plain ? "" : "[&] { ";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (plain)
      text += (i == 0 ? "" : " && ") + parts[i].test;
    else if (i + 1 < parts.size())
      text += fmt::format("{}if (!({})) return false; ", parts[i].before, parts[i].test);
    else
      text += fmt::format("{}return {}; }}()", parts[i].before, parts[i].test);
  }
  return {text, plain ? Precedence::logical_and : Precedence::primary, Carrier::boolean};
}

/// The type in which Numba compares two values; for tuples, each pair of items. Nothing if their lengths
/// differ.
Type Emitter::compared(Type a, Type b) const {
  if (!is_tuple(a)) return operation(*unit_.types, Tok::equal, a, b)->operand;
  if (a->items.size() != b->items.size()) return nullptr;
  std::vector<Type> items;
  for (std::size_t i = 0; i < a->items.size(); ++i) {
    items.push_back(compared(a->items[i], b->items[i]));
    if (items.back() == nullptr) return nullptr;
  }
  return unit_.types->tuple(std::move(items));
}

/// Converts each pair of items of two tuples to the type of their comparison.
std::pair<Type, Type> Emitter::compared_parts(Type a, Type b) const {
  std::vector<Type> x = a->items, y = b->items;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (is_tuple(x[i]))
      std::tie(x[i], y[i]) = compared_parts(x[i], y[i]);
    else
      x[i] = y[i] = compared(x[i], y[i]);
  return {unit_.types->tuple(std::move(x)), unit_.types->tuple(std::move(y))};
}

std::string Emitter::tuple_as(const Code& tuple, Type from, Type to) {
  return from == to ? tuple.text : fmt::format("{}({})", cpp_type(to), tuple.text);
}

Code Emitter::compare_two(Tok op, const Expr& left, const Code& a, const Expr& right, const Code& b) {
  const Type left_type = instance_.type(left), right_type = instance_.type(right);
  const auto truth = [](bool value) {
    return Code{value ? "true" : "false", Precedence::primary, Carrier::boolean};
  };
  if (left_type->kind == TypeKind::none || right_type->kind == TypeKind::none)
    return truth((left_type == right_type) == (op == Tok::k_is || op == Tok::equal));
  if (op == Tok::k_is || op == Tok::is_not) op = op == Tok::k_is ? Tok::equal : Tok::not_equal;  // of truths
  if (op == Tok::k_in || op == Tok::not_in) {
    std::vector<Type> met;
    for (const Type item : right_type->items) met.push_back(compared(left_type, item));
    const Code code = right_type->kind == TypeKind::range
                          ? call(b.text + ".contains", {a.text}, Carrier::boolean)
                          : call("quern::item_in", {a.text, tuple_as(b, right_type, unit_.types->tuple(met))},
                                 Carrier::boolean);
    return op == Tok::k_in ? code : Code{"!" + code.text, Precedence::unary, Carrier::boolean};
  }
  if (is_tuple(left_type) && op != Tok::equal && op != Tok::not_equal) {
    const auto [x, y] = compared_parts(left_type, right_type);
    return call("quern::item_ordered",
                {tuple_as(a, left_type, x), tuple_as(b, right_type, y),
                 fmt::format("[](auto x, auto y) {{ return x {} y; }}", text_of(op))},
                Carrier::boolean);
  }
  if (is_tuple(left_type)) {
    Code code{"false", Precedence::primary, Carrier::boolean};
    if (const Type met = compared(left_type, right_type))
      code = call("quern::item_equal", {tuple_as(a, left_type, met), tuple_as(b, right_type, met)},
                  Carrier::boolean);
    return op == Tok::equal ? code : Code{"!" + code.text, Precedence::unary, Carrier::boolean};
  }
  const Type operand = operation(*unit_.types, op, left_type, right_type)->operand;
  Code x = a, y = b;
  if (is_integral(left_type) && is_integral(right_type)) {
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    const Range &p = range(left), &q = range(right);
    if (x.carrier == Carrier::u32 && p.within(0, INT32_MAX) && is_signed(y.carrier) && q.low < 0)
      x = convert(x, Carrier::i32);
    if (y.carrier == Carrier::u32 && q.within(0, INT32_MAX) && is_signed(x.carrier) && p.low < 0)
      y = convert(y, Carrier::i32);
    const bool same_sign =
        is_signed(promoted(x.carrier, y.carrier)) || (!is_signed(x.carrier) && !is_signed(y.carrier));
    const auto harmless = [](const Code& signed_side, const Range& of) {
      return !is_signed(signed_side.carrier) || (of.low >= 0 && of.exact);
    };
    if (!same_sign && harmless(x, p) && harmless(y, q)) {
      // Neither side is negative, so C++'s unsigned comparison is right.
    } else if (!same_sign ||
               (is_floating(operand) && !p.within(-kExact, kExact) && !q.within(-kExact, kExact))) {
      const Carrier wide = is_floating(operand) ? Carrier::f64 : Carrier::i64;
      x = convert(x, wide);
      if (wide == Carrier::f64 || y.carrier == Carrier::u64)
        y = convert(y, wide);
      else if (x.carrier != wide)
        y = convert(y, wide);
    }
  } else {
    meet(x, y, carrier_of(operand));
  }
  return infix(op, x, y, Carrier::boolean);
}

Code Emitter::logical(const Expr& expr) {
  const std::vector<const Expr*> operands = instance_.operands(expr);
  if (operands.size() == 1) return expression(*operands[0]);
  const Type type = instance_.type(expr);
  const bool and_ = expr.op == Tok::k_and;
  const bool all_truths = std::all_of(operands.begin(), operands.end(), [&](const Expr* item) {
    return instance_.type(*item)->kind == TypeKind::boolean;
  });
  if (all_truths) {
    const Precedence precedence = precedence_of(expr.op);
    std::vector<std::string> parts;
    for (const Expr* item : operands) {
      const Code code = item == operands[0] ? expression(*item) : isolated(*item);
      const bool mixed = code.precedence == Precedence::logical_and && !and_;  // a && b || c is misread
      parts.push_back(mixed ? fmt::format("({})", code.text) : inside(code, precedence));
    }
    return {fmt::format("{}", fmt::join(parts, and_ ? " && " : " || ")), precedence, Carrier::boolean};
  }
  // The operand that decides is the value.
  const Carrier carrier = carrier_of(type);
  Code result = convert(isolated(*operands.back()), carrier);
  for (std::size_t i = operands.size() - 1; i-- > 0;) {
    const Code value = convert(i == 0 ? expression(*operands[i]) : isolated(*operands[i]), carrier);
    result = call(and_ ? "quern::both" : "quern::either",
                  {value.text, fmt::format("[&] {{ return {}; }}", result.text)}, carrier);
  }
  return result;
}

Code Emitter::conditional(const Expr& expr) {
  if (const std::optional<bool> known = instance_.known_choice(expr))
    return isolated(*expr.items[*known ? 1 : 2]);
  const Type type = instance_.type(expr);
  const Code test = condition(*expr.items[0]);
  Code a = isolated(*expr.items[1]), b = isolated(*expr.items[2]);
  Carrier carrier = carrier_of(type);
  if (is_number(type)) {
    if (is_integral(type) && fits_int(a.carrier) && fits_int(b.carrier) && is_signed(carrier)) {
      carrier = Carrier::i32;
    } else if (promoted(a.carrier, b.carrier) != carrier || !is_plain(a.carrier) || !is_plain(b.carrier)) {
      a = convert(a, carrier);
      b = convert(b, carrier);
    }
  } else if (is_record(type) || is_vector(type)) {
  } else if (instance_.type(*expr.items[1]) != type || instance_.type(*expr.items[2]) != type) {
    a.text = fmt::format("{}({})", cpp_type(type), a.text);
    b.text = fmt::format("{}({})", cpp_type(type), b.text);
  }
  return {fmt::format("{} ? {} : {}", inside(test, Precedence::logical_or), inside(a, Precedence::logical_or),
                      inside(b, Precedence::conditional)),
          Precedence::conditional, carrier};
}

}  // namespace quern::frontend
