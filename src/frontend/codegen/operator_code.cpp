// SPDX-License-Identifier: Apache-2.0
#include "frontend/analyse/range_arithmetic.hpp"
#include "frontend/codegen/emit.hpp"

namespace quern::frontend {
namespace {

// An inexact range is that of numbers that do not wrap, and these may.
Range certain(const Range& range) { return range.exact ? range : Range{}; }

bool is_bitwise(Tok op) { return op == Tok::bit_and || op == Tok::bit_or || op == Tok::bit_xor; }

}  // namespace

/// `-x` or `~x` of an integer that is unsigned or narrower than 64 bits.
Code OperatorCode::negated(const Expr& expr, Code code, Type own) {
  const CppType cpp_type = cpp_type_of(own);
  const bool word = own->bits >= 32;
  if (word) code = convert(code, cpp_type);
  const Code result = prefix(expr.op, code, word ? cpp_type : CppType::i32);
  const bool fits = own->is_signed && (expr.op == Tok::invert ||
                                       emitter_.range(*expr.items[0]).low > -(1LL << (own->bits - 1)));
  return word || fits ? result : convert(result, cpp_type);
}

Code OperatorCode::unary(const Expr& expr) {
  const Expr& operand = *expr.items[0];
  const Type type = specialisation_.type(expr);
  if (expr.op == Tok::k_not) {
    return prefix(Tok::k_not, emitter_.truths().condition(operand), CppType::boolean);
  }
  Code code = emitter_.expression(operand);
  if (expr.op == Tok::invert && type->kind == TypeKind::boolean)
    return prefix(Tok::k_not, code, CppType::boolean);
  if (is_integral(type)) {
    // Numba negates and inverts in the operand's own type, and then widens.
    const Type own = specialisation_.type(operand);
    if (is_integer(own) && expr.op != Tok::plus && (!own->is_signed || own->bits < 64))
      return negated(expr, code, own);
    const bool narrow = fits_int(code.cpp_type) &&
                        (expr.op != Tok::minus || emitter_.range(expr).within(INT32_MIN, INT32_MAX));
    if (narrow)
      code.cpp_type = CppType::i32;
    else
      code = convert(code, cpp_type_of(type));
  }
  if (expr.op == Tok::plus) return code;
  if (expr.op == Tok::minus && is_integral(type) &&
      may_wrap(Tok::minus, {0, 0, true}, emitter_.range(operand), code.cpp_type))
    return wrapping(Tok::minus, integer_code(0), code, code.cpp_type);
  return prefix(expr.op, code, code.cpp_type);
}

Code OperatorCode::binary(const Expr& expr, Tok op, const Expr& left, const Expr& right) {
  const Type a = specialisation_.type(left), b = specialisation_.type(right),
             result = specialisation_.type(expr);
  if (is_tuple(result)) {
    std::vector<CppText> items;
    for (const Expr* side : {&left, &right}) {
      const Code whole = emitter_.order().once(*side);
      const Type type = specialisation_.type(*side);
      for (std::size_t i = 0; i < type->items.size(); ++i)
        items.push_back(emitter_.arrays().item(whole, i, type->items[i]).text);
    }
    return braced(type_text(result), items);
  }
  // The square of a simple expression is emitted as a product.
  const Value& exponent = specialisation_.constant(right);
  if (op == Tok::power && exponent.kind == Value::Kind::integer && exponent.integer == 2 &&
      emitter_.is_simple(left) && !is_complex(a))
    return operate(Tok::times, emitter_.expression(left), a, emitter_.expression(left), a, result,
                   emitter_.range(expr), emitter_.range(left), emitter_.range(left));
  const Code x = emitter_.expression(left);
  return operate(op, x, a, checked_divisor(op, emitter_.expression(right), right), b, result,
                 emitter_.range(expr), emitter_.range(left), emitter_.range(right));
}

/// In debug builds, division by zero ends the thread and is reported.
Code OperatorCode::checked_divisor(Tok op, const Code& code, const Expr& expr) {
  if (!unit_.debug || !specialisation_.may_divide_by_zero(op, expr)) return code;
  return call("quern::debug::divisor", {code.text, cpp_text("{}", unit_.source->line_of(expr.place.begin))},
              code.cpp_type);
}

Code OperatorCode::operate(Tok op, const Code& left, Type left_type, const Code& right, Type right_type,
                           Type result, const Range& range, const Range& left_range,
                           const Range& right_range) {
  const CppType cpp_type = cpp_type_of(result);
  if (op == Tok::power) return power(left, left_type, right, right_type, result);
  if (is_integral(left_type) && is_integral(right_type)) {
    if (op == Tok::divide)
      return infix(op, convert(left, CppType::f64), convert(right, CppType::f64), CppType::f64);
    if (result->kind == TypeKind::boolean)
      return {infix(op, left, right, CppType::boolean).text, precedence_of(op), CppType::boolean};
    return integer_operation(op, left, right, cpp_type, range, left_range, right_range);
  }
  if (is_complex(result)) {
    const Code a = convert(left, cpp_type), b = convert(right, cpp_type);
    return infix(op, a, b, cpp_type);
  }
  Code a = left, b = right;
  meet(a, b, cpp_type);
  if (op == Tok::floor_divide || op == Tok::mod)
    return call(op == Tok::mod ? "quern::floor_mod" : "quern::floor_div",
                {convert(a, cpp_type).text, convert(b, cpp_type).text}, cpp_type);
  return infix(op, a, b, cpp_type);
}

Code OperatorCode::integer_operation(Tok op, Code left, Code right, CppType result, const Range& range,
                                     const Range& left_range, const Range& right_range) {
  constexpr std::int64_t kLeast = INT32_MIN, kMost = INT32_MAX;
  // Unsigned words whose values fit an int, such as threadIdx.x, are treated as int.
  const auto as_int = [&](Code& code, const Range& of) {
    if (code.cpp_type == CppType::u32 && of.within(0, kMost) && result == CppType::i64)
      code = convert(code, CppType::i32);
  };
  as_int(left, left_range);
  as_int(right, right_range);
  const bool ints = fits_int(left.cpp_type) && fits_int(right.cpp_type);
  const bool shift_fits = right_range.within(0, 31);
  const bool narrow =
      ints && (is_bitwise(op) ? result == CppType::i64
                              : range.within(kLeast, kMost) && (op != Tok::right_shift || shift_fits) &&
                                    (op != Tok::left_shift || (shift_fits && left_range.low >= 0)));
  const bool positive = left_range.low >= 0 && left_range.exact && right_range.low > 0 && right_range.exact;
  if ((op == Tok::floor_divide || op == Tok::mod) && !positive) {
    const CppType in = narrow && left_range.within(kLeast + 1, kMost) && right_range.within(kLeast, kMost)
                           ? CppType::i32
                           : result;
    return call(op == Tok::mod ? "quern::floor_mod" : "quern::floor_div",
                {convert(left, in).text, convert(right, in).text}, in);
  }
  if (narrow) return infix(op, left, right, CppType::i32);
  if (may_wrap(op, left_range, right_range, result)) return wrapping(op, left, right, result);
  if (op == Tok::left_shift || op == Tok::right_shift) return infix(op, convert(left, result), right, result);
  if (promoted(left.cpp_type, right.cpp_type) == result) return infix(op, left, right, result);
  // Converting one operand also converts the other. If the signs differ, both are converted.
  if (left.cpp_type == CppType::u64 || right.cpp_type == CppType::u64)
    return infix(op, convert(left, result), convert(right, result), result);
  const bool literal_left = left.literal.form != Literal::Form::none && !left.literal.negative;
  if (literal_left) return infix(op, left, convert(right, result), result);
  return infix(op, convert(left, result), right, result);
}

bool OperatorCode::may_wrap(Tok op, const Range& left, const Range& right, CppType cpp_type) {
  if (op != Tok::plus && op != Tok::minus && op != Tok::times) return false;
  const Range range = of_operator(op, certain(left), certain(right));
  if (cpp_type == CppType::i64) return !range.exact;
  return cpp_type == CppType::i32 && !range.within(INT32_MIN, INT32_MAX);
}

Code OperatorCode::power(const Code& left, Type left_type, const Code& right, Type right_type, Type result) {
  const CppType cpp_type = cpp_type_of(result);
  if (is_complex(result))
    return call("quern::power", {convert(left, cpp_type).text, convert(right, cpp_type).text}, cpp_type);
  if (is_integral(right_type)) {
    static_cast<void>(left_type);
    const CppType exponent = right.cpp_type == CppType::u64 ? CppType::u64 : CppType::i64;
    return call(
        "quern::power",
        {convert(left, cpp_type).text, fits_int(right.cpp_type) ? right.text : convert(right, exponent).text},
        cpp_type);
  }
  return call("pow", {convert(left, cpp_type).text, convert(right, cpp_type).text}, cpp_type);
}

}  // namespace quern::frontend
