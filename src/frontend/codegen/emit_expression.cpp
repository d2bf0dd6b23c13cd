// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frontend/codegen/emit.hpp"
#include "frontend/values/literal.hpp"

namespace quern::frontend {

Code Emitter::expression(const Expr& expr) {
  if (order_.mark() != 0)
    if (const Code* code = order_.held_code(expr)) return *code;
  const std::size_t mark = order_.mark();
  order_.hold_operands(expr);
  Code code = folded(expr);
  order_.release(mark);
  return code;
}

Code Emitter::folded(const Expr& expr) {
  const Type type = specialisation_.type(expr);
  const Value& value = specialisation_.constant(expr);
  // Arithmetic on literals is computed here; names are not replaced.
  const bool folds = expr.kind == ExprKind::unary || expr.kind == ExprKind::binary;
  if (expr.kind == ExprKind::attribute && specialisation_.type(*expr.items[0]) == nullptr)
    return constant(value, type);
  if (folds && value.is_any_number() && is_number(type)) {
    bool literal = true;
    for (const Expr* item : expr.items)
      literal = literal && item->kind != ExprKind::name && item->kind != ExprKind::attribute;
    if (literal) return constant(value, type);
  }
  return compute(expr);
}

Code Emitter::compute(const Expr& expr) {
  const Type type = specialisation_.type(expr);
  switch (expr.kind) {
    case ExprKind::name:
      return name(expr);
    case ExprKind::integer:
    case ExprKind::real:
    case ExprKind::imaginary:
    case ExprKind::boolean:
      return constant(literal_value(expr), type);
    case ExprKind::none:
      return integer_code(0);
    case ExprKind::tuple:
      return tuple(expr);
    case ExprKind::attribute:
      return attribute(expr);
    case ExprKind::subscript:
      return arrays_.subscript(expr);
    case ExprKind::call:
      return calls_.call_expression(expr);
    case ExprKind::unary:
      return operators_.unary(expr);
    case ExprKind::binary:
      return operators_.binary(expr, expr.op, *expr.items[0], *expr.items[1]);
    case ExprKind::compare:
      return truths_.compare(expr);
    case ExprKind::logical:
      return truths_.logical(expr);
    case ExprKind::conditional:
      return truths_.conditional(expr);
    default:
      return {};
  }
}

Code Emitter::as(const Expr& expr, Type type) {
  return converted(expression(expr), specialisation_.type(expr), type);
}

/// Writes conversions that C++ does not perform implicitly in assignments and arguments.
Code Emitter::converted(const Code& code, Type from, Type to) {
  if (from == to || from == nullptr) return code;
  const CppType target = cpp_type_of(to);
  if (target == CppType::f16 || target == CppType::bf16 || code.cpp_type == CppType::f16 ||
      code.cpp_type == CppType::bf16 || target == CppType::c64 || target == CppType::c128)
    return convert(code, target);
  return code;
}

Code Emitter::constant(const Value& value, Type type) {
  if (value.kind == Value::Kind::tuple) {
    std::vector<CppText> items;
    for (std::size_t i = 0; i < value.items.size(); ++i)
      items.push_back(constant(value.items[i], type->items[i]).text);
    return braced(type_text(type), items);
  }
  const CppType cpp_type = cpp_type_of(type);
  if (value.kind == Value::Kind::boolean && type->kind == TypeKind::boolean)
    return {value.integer != 0 ? "true" : "false", Precedence::primary, CppType::boolean};
  if (is_floating(type)) {
    const double number = value.as_real();
    const bool single = cpp_type == CppType::f32;
    Code code = real_code(number, single);
    return cpp_type == CppType::f16 || cpp_type == CppType::bf16 ? convert(code, cpp_type) : code;
  }
  if (is_complex(type)) {
    const bool single = cpp_type == CppType::c64;
    return {cpp_text("{}({}, {})", cpp_of(cpp_type), real_literal(value.as_real(), single),
                     real_literal(value.imag, single)),
            Precedence::primary, cpp_type};
  }
  if (value.kind == Value::Kind::big)
    return {cpp_text("{}ULL", *value.big.as_uint64()),
            Precedence::primary,
            CppType::u64,
            {Literal::Form::suffixed},
            {}};
  Code code = integer_code(value.integer);
  return cpp_type == CppType::u64 && value.integer >= 0 ? convert(code, CppType::u64) : code;
}

Code Emitter::variable(std::uint32_t id) {
  const Variable& variable = variables_.all[id];
  if (is_record(variable.type) && !(variable.parameter && !specialisation_.kernel))
    return dereference(variable.name);
  return {variable.name, Precedence::primary, variable.narrow ? CppType::i32 : cpp_type_of(variable.type)};
}

Code Emitter::name(const Expr& expr) {
  const std::uint32_t version = scope_.load(expr);
  if (version != kNoVersion) {
    if (variables_.of_version[version] != kNoVariable) return variable(variables_.of_version[version]);
    return integer_code(0);
  }
  return global(expr, unit_.names->global(expr.name));
}

/// A number of the file's level becomes a constexpr with the same name.
Code Emitter::global(const Expr& expr, const Value& value) {
  const Type type = specialisation_.type(expr);
  if (value.kind == Value::Kind::builtin && value.builtin->facts().syntax == Syntax::integer) {
    // CUDA's warpSize is always 32 but not a constant, so loops up to it would not be unrolled.
    if (value.builtin->rule == Rule::warp_size) return integer_code(32);
    return {device_name(value.builtin->cuda), Precedence::primary, CppType::i32};
  }
  if (value.kind == Value::Kind::tuple) return constant(value, type);
  if (!value.is_any_number()) return {};
  Code code = constant(value, type);
  if (expr.kind != ExprKind::name && value.text.empty()) return code;
  std::string name = cpp_name(expr.kind == ExprKind::name ? expr.name : std::string_view(value.text));
  std::replace(name.begin(), name.end(), '.', '_');  // a member of an enumeration
  const CppText text = is_floating(type) || is_complex(type) ? initialiser(value, type) : code.text;
  unit_.constants.try_emplace(name, cpp_text("constexpr {} {} = {};", cpp_of(code.cpp_type), name, text));
  return {name, Precedence::primary, code.cpp_type};
}

/// True if the expression may be evaluated twice.
bool Emitter::is_simple(const Expr& expr) const {
  switch (expr.kind) {
    case ExprKind::name:
    case ExprKind::integer:
    case ExprKind::real:
    case ExprKind::boolean:
      return true;
    case ExprKind::attribute:
      return is_simple(*expr.items[0]);
    case ExprKind::unary:
      return is_simple(*expr.items[0]);
    case ExprKind::call: {
      const Type callee = specialisation_.type(*expr.items[0]);
      if (callee->kind == TypeKind::dtype && is_number(callee->element)) return is_simple(*expr.items[1]);
      return callee->kind == TypeKind::builtin &&
             ((is_grid(callee->builtin->rule) && is_number(specialisation_.type(expr))) ||
              (callee->builtin->rule == Rule::len && is_simple(*expr.items[1])));
    }
    default:
      return false;
  }
}

Code Emitter::attribute(const Expr& expr) {
  const Expr& base = *expr.items[0];
  const Type type = specialisation_.type(base);
  switch (type->kind) {
    case TypeKind::module_:
      return global(expr, specialisation_.constant(expr));
    case TypeKind::vector:
      return {cpp_text("{}.{}", inside(expression(base), Precedence::primary), expr.name),
              Precedence::primary, cpp_type_of(type->element)};
    case TypeKind::dim3:
      return {cpp_text("{}.{}", type->builtin->cuda, expr.name), Precedence::primary, CppType::u32};
    case TypeKind::record: {
      Code code = arrays_.record_part(base, expr.name);
      code.cpp_type = cpp_type_of(specialisation_.type(expr));
      return code;
    }
    case TypeKind::complex:
      return {cpp_text("{}.{}", inside(expression(base), Precedence::primary), expr.name),
              Precedence::primary, cpp_type_of(specialisation_.type(expr))};
    case TypeKind::array:
      break;
    default:
      if (expr.name != "imag") return expression(base);
      order_.discard(base);
      return constant(Value::of(std::int64_t{0}), specialisation_.type(expr));
  }
  if (is_record(type->element) && is_array(specialisation_.type(expr)) && expr.name != "T")
    return arrays_.field_view(base, expr.name, specialisation_.type(expr));
  if (expr.name == "real" && !is_complex(type->element)) return arrays_.array_value(base);
  if (expr.name == "real" || expr.name == "imag")
    return arrays_.part_view(base, expr.name == "real" ? 0 : size_of(type->element) / 2,
                             specialisation_.type(expr));
  if (specialisation_.constant(expr).kind == Value::Kind::integer) {
    order_.discard(base);
    return constant(specialisation_.constant(expr), specialisation_.type(expr));
  }
  const CppText array = inside(arrays_.array_value(base), Precedence::primary);
  if (expr.name == "size") return {array + ".size()", Precedence::primary, CppType::i64};
  if (expr.name == "nbytes")
    return {cpp_text("{}.size() * {}", array, size_of(type->element)), Precedence::times, CppType::i64};
  if (expr.name == "T")
    return call_of(cpp_text("{}<{}>", device_name("quern::transpose"), type_text(specialisation_.type(expr))),
                   {array}, CppType::other);
  if (expr.name == "strides") return call("quern::strides", {array}, CppType::other);
  return call("quern::shape", {array}, CppType::other);
}

Code Emitter::tuple(const Expr& expr) {
  const Type type = specialisation_.type(expr);
  if (is_valueless(type)) {
    for (const Expr* each : expr.items) order_.discard(*each);
    return {};
  }
  std::vector<CppText> items;
  for (std::size_t i = 0; i < expr.items.size(); ++i) {
    const bool array = is_array(type->items[i]);
    items.push_back(array ? arrays_.array_value(*expr.items[i]).text
                          : convert(expression(*expr.items[i]), cpp_type_of(type->items[i])).text);
  }
  return braced(type_text(type), items);
}

}  // namespace quern::frontend
