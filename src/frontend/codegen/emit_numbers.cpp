// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for built-ins on numbers, tuples and iterables.
#include <algorithm>

#include "frontend/builtins/forms.hpp"
#include "frontend/codegen/builtin_code.hpp"

namespace quern::frontend {
namespace {

std::string escaped_format(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '%' ? std::string("%%") : std::string(1, c);
  return result;
}

/// The name of the row's function for numbers of type `of`.
std::string_view real_name(const BuiltinCode& call, Type of) {
  if (is_complex(of)) return complex_function(call.row);
  const std::string_view half = of == call.table().float16 ? half_function(call.row) : std::string_view();
  if (!half.empty()) return half;
  return cpp_type_of(of) == CppType::f32 ? single_function(call.row) : call.row.cuda;
}

std::vector<CppText> arguments_as(const BuiltinCode& call, CppType cpp_type) {
  std::vector<CppText> arguments;
  for (std::size_t i = 1; i <= call.count(); ++i) arguments.push_back(call.as(i, cpp_type));
  return arguments;
}

Code truths(const BuiltinCode& call, Precedence precedence) {
  call.emitter.order().hold_effects(call.expr);
  const Code a = call.emitter.truths().condition(call.argument(1)),
             b = call.emitter.truths().condition(call.argument(2));
  return {cpp_text("{} {} {}", inside(a, Precedence::unary), call.row.cuda, inside(b, Precedence::unary)),
          precedence, CppType::boolean};
}

Code not_of(const Code& code) { return prefix(Tok::k_not, code, CppType::boolean); }

/// The argument, converted to the result type of unary +, - and ~.
Code promoted_argument(const BuiltinCode& call) {
  const Code code = call.code(1);
  return is_integral(call.type) ? convert(convert(code, cpp_type_of(call.type_of(1))), call.cpp_type)
                                : convert(code, call.cpp_type);
}

Code part(const BuiltinCode& call) {
  return {cpp_text("{}.{}", inside(call.code(1), Precedence::primary), call.row.cuda), Precedence::primary,
          call.cpp_type};
}

/// The magnitude of a signed integer that may be negative.
Code integer_magnitude(const BuiltinCode& call) {
  const Code code = call.code(1);
  const Range& range = call.emitter.range(call.argument(1));
  // abs of the least number of a type is that number. A number of a narrower type that C++ holds in an int
  // behaves differently.
  if (!fits_int(code.cpp_type) || (call.type->bits > 32 && range.low <= INT32_MIN))
    return frontend::call("llabs", {convert(code, CppType::i64).text}, CppType::i64);
  const Code size = frontend::call("abs", {code.text}, CppType::i32);
  const bool wraps = call.type->bits < 32 && range.low <= -(std::int64_t{1} << (call.type->bits - 1));
  return wraps ? convert(size, call.cpp_type) : size;
}

}  // namespace

/// A function of float32 or float64: the arguments are converted to the type in which it computes.
Code emit_rules::real_call(const BuiltinCode& call) {
  return frontend::call(real_name(call, call.type), arguments_as(call, call.cpp_type), call.cpp_type);
}

/// An overloaded function: it has one name for float and double.
Code emit_rules::predicate(const BuiltinCode& call) {
  const Type of = real_operand(call.table(), call.type_of(1));
  return frontend::call(call.row.cuda, arguments_as(call, cpp_type_of(of)), CppType::boolean);
}

Code emit_rules::logarithm(const BuiltinCode& call) {
  const std::string_view function = real_name(call, call.type);
  const std::vector<CppText> arguments = arguments_as(call, call.cpp_type);
  const Code number = frontend::call(function, {arguments[0]}, call.cpp_type);
  if (arguments.size() == 1) return number;
  return infix(Tok::divide, number, frontend::call(function, {arguments[1]}, call.cpp_type), call.cpp_type);
}

Code emit_rules::real_power(const BuiltinCode& call) {
  if (!is_whole_exponent(call.type_of(1), call.type_of(2))) return real_call(call);
  const Code base = call.code(1);
  return call.emitter.operators().power(base, call.type_of(1), call.code(2), call.type_of(2), call.type);
}

Code emit_rules::logical_and(const BuiltinCode& call) { return truths(call, Precedence::logical_and); }
Code emit_rules::logical_or(const BuiltinCode& call) { return truths(call, Precedence::logical_or); }
Code emit_rules::logical_xor(const BuiltinCode& call) { return truths(call, Precedence::equality); }
Code emit_rules::logical_not(const BuiltinCode& call) {
  return not_of(call.emitter.truths().condition_of(call.code(1), call.type_of(1)));
}

Code emit_rules::operator1(const BuiltinCode& call) {
  if (call.type->kind == TypeKind::boolean) return not_of(call.code(1));
  return {cpp_text("{}({})", call.row.cuda, promoted_argument(call).text),
          Precedence::unary,
          call.cpp_type,
          {},
          {},
          unary_operator(call.row.cuda)};
}
Code emit_rules::positive(const BuiltinCode& call) {
  return call.type->kind == TypeKind::boolean ? not_of(call.code(1)) : promoted_argument(call);
}

Code emit_rules::operator2(const BuiltinCode& call) {
  const Expr &left = call.argument(1), &right = call.argument(2);
  const Tok op = binary_operator(call.row.cuda);
  const Precedence precedence = precedence_of(op);
  const bool compares = precedence >= Precedence::relation && precedence <= Precedence::equality;
  if (!compares || call.type->kind != TypeKind::boolean)
    return call.emitter.operators().binary(call.expr, op, left, right);
  const Code a = call.code(1);
  return call.emitter.truths().compare_two(op, left, a, right, call.code(2));
}

Code emit_rules::power(const BuiltinCode& call) {
  return call.emitter.operators().binary(call.expr, Tok::power, call.argument(1), call.argument(2));
}

Code emit_rules::divmod(const BuiltinCode& call) {
  const CppType part = cpp_type_of(call.type->items[0]);
  const Code left = call.emitter.order().once(call.argument(1));
  const Code right = call.emitter.operators().checked_divisor(
      Tok::floor_divide, call.emitter.order().once(call.argument(2)), call.argument(2));
  const CppText a = convert(left, part).text, b = convert(right, part).text;
  return braced(type_text(call.type), {frontend::call("quern::floor_div", {a, b}, part).text,
                                       frontend::call("quern::floor_mod", {a, b}, part).text});
}

Code emit_rules::clip(const BuiltinCode& call) {
  const bool whole = is_integral(call.type);
  const CppType in = !is_floating(call.type) ? cpp_type_of(call.table().integer(64, call.type->is_signed))
                     : call.cpp_type == CppType::f64 ? CppType::f64
                                                     : CppType::f32;
  const std::vector<CppText> arguments = arguments_as(call, in);
  const CppText low = frontend::call(whole ? "max" : "quern::maximum", {arguments[0], arguments[1]}, in).text;
  return frontend::call(whole ? "min" : "quern::minimum", {low, arguments[2]}, in);
}

Code emit_rules::real_part(const BuiltinCode& call) {
  return is_complex(call.type_of(1)) ? part(call) : call.code(1);
}
Code emit_rules::imaginary_part(const BuiltinCode& call) {
  return is_complex(call.type_of(1)) ? part(call)
                                     : call.emitter.constant(Value::of(std::int64_t{0}), call.type);
}

Code emit_rules::conjugate(const BuiltinCode& call) {
  const Code number = call.code(1);
  return is_complex(call.type) ? frontend::call(call.row.cuda, {number.text}, call.cpp_type) : number;
}
/// x.conjugate()
Code emit_rules::conjugate_method(const BuiltinCode& call) {
  const Code number = call.emitter.expression(*call.expr.items[0]->items[0]);
  return is_complex(call.type) ? frontend::call(call.row.cuda, {number.text}, call.cpp_type) : number;
}

Code emit_rules::select(const BuiltinCode& call) {
  call.emitter.order().hold_effects(call.expr);
  const Code test = call.emitter.truths().condition(call.argument(1));
  const Code a = convert(call.code(2), call.cpp_type), b = convert(call.code(3), call.cpp_type);
  return {cpp_text("{} ? {} : {}", inside(test, Precedence::logical_or), inside(a, Precedence::logical_or),
                   inside(b, Precedence::conditional)),
          Precedence::conditional, call.cpp_type};
}

Code emit_rules::ldexp(const BuiltinCode& call) {
  return frontend::call("ldexp", {call.as(1, call.cpp_type), call.as(2, CppType::i32)}, call.cpp_type);
}
/// frexp and modf return a tuple. Its first item has the type in which they compute.
Code emit_rules::real_parts(const BuiltinCode& call) {
  return frontend::call(call.row.cuda, {call.as(1, cpp_type_of(call.type->items[0]))}, CppType::other);
}
Code emit_rules::converted_call(const BuiltinCode& call) {
  return frontend::call(call.row.cuda, {call.as(1, call.cpp_type)}, call.cpp_type);
}
Code emit_rules::integer_call(const BuiltinCode& call) {
  return frontend::call(call.row.cuda, {call.as(1, cpp_type_of(call.type_of(1)))}, call.cpp_type);
}
Code emit_rules::bit_count(const BuiltinCode& call) {
  return frontend::call(call.row.cuda, {call.as(1, cpp_type_of(call.type_of(1)))}, CppType::i32);
}

Code emit_rules::absolute(const BuiltinCode& call) {
  if (is_complex(call.type_of(1))) return frontend::call("quern::abs", {call.code(1).text}, call.cpp_type);
  if (is_floating(call.type)) {
    const CppType in = call.cpp_type == CppType::f64 ? CppType::f64 : CppType::f32;
    return frontend::call(in == CppType::f64 ? "fabs" : "fabsf", {call.as(1, in)}, in);
  }
  const bool negative =
      is_integer(call.type) && call.type->is_signed && call.emitter.range(call.argument(1)).low < 0;
  return negative ? integer_magnitude(call) : call.code(1);
}

Code emit_rules::extremum(const BuiltinCode& call) {
  const Type type = call.type;
  std::vector<Code> codes;
  bool ints = is_integer(type) && type->is_signed;
  std::vector<const Expr*> arguments(call.expr.items.begin() + 1, call.expr.items.end());
  const bool of_tuple = arguments.size() == 1;
  if (of_tuple && arguments[0]->kind == ExprKind::tuple)
    arguments.assign(arguments[0]->items.begin(), arguments[0]->items.end());
  for (const Expr* argument : arguments) {
    if (const Type tuple = call.emitter.specialisation().type(*argument); is_tuple(tuple)) {
      const Code whole = call.emitter.order().once(*argument);
      for (std::size_t i = 0; i < tuple->items.size(); ++i)
        codes.push_back(call.emitter.arrays().item(whole, i, tuple->items[i]));
      ints = false;
      break;
    }
    codes.push_back(call.emitter.expression(*argument));
    const Range& bounds = call.emitter.range(*argument);
    if (codes.back().cpp_type == CppType::u32 && bounds.within(0, INT32_MAX))
      codes.back() = convert(codes.back(), CppType::i32);
    ints = ints && fits_int(codes.back().cpp_type);
  }
  // CUDA has min and max for int, unsigned, their long long, float and double.
  CppType cpp_type = ints ? CppType::i32 : cpp_type_of(type);
  if (!ints && fits_int(cpp_type)) cpp_type = CppType::i32;
  if (cpp_type == CppType::f16 || cpp_type == CppType::bf16) cpp_type = CppType::f32;
  // CUDA's function of two floats ignores NaN; Numba compares everything else in order.
  bool floats = codes.size() == 2 && !of_tuple;
  for (std::size_t i = 1; i < call.expr.items.size(); ++i)
    floats = floats && is_floating(call.emitter.specialisation().type(*call.expr.items[i]));
  const bool least = call.row.rule == Rule::least;
  const std::string_view function = is_integral(type) ? (least ? "min" : "max")
                                    : floats          ? call.row.cuda
                                    : least           ? "quern::lesser"
                                                      : "quern::greater";
  Code result = convert(codes[0], cpp_type);
  for (std::size_t i = 1; i < codes.size(); ++i)
    result = frontend::call(function, {result.text, convert(codes[i], cpp_type).text}, cpp_type);
  return result;
}

Code emit_rules::round(const BuiltinCode& call) {
  if (call.count() == 1) return frontend::call("llrint", {call.as(1, CppType::f64)}, CppType::i64);
  const Expr& given = call.argument(2);
  const Expr& digits = given.kind == ExprKind::keyword ? *given.items[0] : given;
  const CppText number = call.as(1, call.cpp_type);
  return frontend::call("quern::round_to", {number, call.emitter.expression(digits).text}, call.cpp_type);
}

Code emit_rules::to_int(const BuiltinCode& call) {
  const Code code = call.code(1);
  return is_integral(call.type_of(1)) ? code : convert(code, CppType::i64);
}

Code emit_rules::to_float(const BuiltinCode& call) {
  if (call.type_of(1)->kind == TypeKind::string)
    return call.emitter.constant(call.emitter.specialisation().constant(call.expr), call.type);
  return is_floating(call.type_of(1)) ? call.code(1) : convert(call.code(1), CppType::f64);
}

Code emit_rules::to_bool(const BuiltinCode& call) {
  return call.emitter.truths().condition(call.argument(1));
}

Code emit_rules::to_complex(const BuiltinCode& call) {
  const CppType part = call.cpp_type == CppType::c64 ? CppType::f32 : CppType::f64;
  std::vector<CppText> arguments;
  for (std::size_t i = 1; i <= call.count(); ++i) {
    const Expr& given = call.argument(i);
    const Expr& item = given.kind == ExprKind::keyword ? *given.items[0] : given;
    const Code code = call.emitter.expression(item);
    const bool complex = is_complex(call.emitter.specialisation().type(item));
    arguments.push_back(complex ? code.text : convert(code, part).text);
  }
  return call_of(cpp_of(call.cpp_type), arguments, call.cpp_type);
}

Code emit_rules::len(const BuiltinCode& call) {
  if (!is_tuple(call.type_of(1))) return call.emitter.arrays().extent(call.argument(1), 0);
  call.emitter.order().discard(call.argument(1));
  return call.emitter.constant(call.emitter.specialisation().constant(call.expr), call.type);
}

/// A function with explicit types: every argument is converted to the type in the form.
Code emit_rules::typed(const BuiltinCode& call) {
  std::vector<Type> types;
  for (std::size_t i = 1; i < call.expr.items.size(); ++i)
    if (call.expr.items[i]->kind != ExprKind::keyword)
      types.push_back(call.emitter.specialisation().type(*call.expr.items[i]));
  const Form form = *choose_form(call.table(), call.row, types);
  std::vector<CppText> arguments;
  for (const Form::Parameter& parameter : form.parameters) arguments.emplace_back(parameter.fallback);
  std::size_t position = 0;
  for (std::size_t i = 1; i < call.expr.items.size(); ++i) {
    const Expr* item = call.expr.items[i];
    std::size_t at = position;
    if (item->kind == ExprKind::keyword) {
      while (form.parameters[at].name != item->name) ++at;
      item = item->items[0];
    } else {
      ++position;
    }
    arguments[at] = convert(call.emitter.expression(*item), cpp_type_of(form.parameters[at].type)).text;
  }
  Code code = frontend::call(form.cuda, arguments, cpp_type_of(form.result));
  if (form.cast.empty()) return code;
  return {form.cast + code.text, Precedence::unary, code.cpp_type};
}

/// Emits one printf, with spaces between the values and a newline at the end, as Numba prints.
Code emit_rules::print(const BuiltinCode& call) {
  std::string format;
  std::vector<CppText> arguments;
  const auto add = [&](const Code& code, Type type) {
    if (type->kind == TypeKind::boolean) {
      format += "%s";
      arguments.push_back(cpp_text("{} ? \"True\" : \"False\"", inside(code, Precedence::logical_or)));
    } else if (is_integral(type)) {
      format += type->is_signed ? "%lld" : "%llu";
      arguments.push_back(convert(code, type->is_signed ? CppType::i64 : CppType::u64).text);
    } else {
      format += "%f";
      arguments.push_back(convert(code, CppType::f64).text);
    }
  };
  for (std::size_t i = 1; i < call.expr.items.size(); ++i) {
    const Expr& item = *call.expr.items[i];
    const Type type = call.emitter.specialisation().type(item);
    if (i > 1) format += ' ';
    if (type->kind == TypeKind::string) {
      format += escaped_format(call.emitter.specialisation().constant(item).text);
    } else if (type->kind == TypeKind::dim3) {
      const std::string_view name = type->builtin->cuda;
      format += "(%d, %d, %d)";
      for (const char axis : {'x', 'y', 'z'}) arguments.push_back(cpp_text("{}.{}", name, axis));
    } else if (is_tuple(type)) {
      const Code whole = call.emitter.order().once(item);
      format += '(';
      for (std::size_t k = 0; k < type->items.size(); ++k) {
        if (k > 0) format += ", ";
        add(call.emitter.arrays().item(whole, k, type->items[k]), type->items[k]);
      }
      format += type->items.size() == 1 ? ",)" : ")";
    } else {
      add(call.emitter.expression(item), type);
    }
  }
  arguments.insert(arguments.begin(), quoted(format + "\n"));
  return frontend::call("printf", arguments, CppType::other);
}

}  // namespace quern::frontend
