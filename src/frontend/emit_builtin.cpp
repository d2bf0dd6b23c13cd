// SPDX-License-Identifier: Apache-2.0
// Emits C++ for the rules of builtins.def.
#include <algorithm>

#include "frontend/emit.hpp"
#include "frontend/forms.hpp"

namespace quern::frontend {

/// One axis of cuda.grid(n) or cuda.gridsize(n), as one writes it in CUDA C++: a function of ours would cost
/// NVRTC a twentieth of its time. Along y and z there are less than 2**32 threads.
Code Emitter::grid_axis(const Builtin& row, std::size_t axis) {
  const char name = "xyz"[axis];
  const std::string_view wide = axis == 0 ? "(long long)" : "";
  const Carrier carrier = axis == 0 ? Carrier::i64 : Carrier::u32;
  if (row.cuda == "gridsize")
    return {fmt::format("{0}gridDim.{1} * blockDim.{1}", wide, name), Precedence::times, carrier};
  return {fmt::format("{0}blockIdx.{1} * blockDim.{1} + threadIdx.{1}", wide, name), Precedence::plus,
          carrier};
}

Code Emitter::call_builtin(const Expr& expr, const Builtin& row) {
  const Type type = instance_.type(expr);
  const Carrier carrier = carrier_of(type);
  const auto argument = [&](std::size_t i) -> const Expr& { return *expr.items[i]; };
  const auto type_of = [&](std::size_t i) { return instance_.type(*expr.items[i]); };
  const auto plain = [&](Carrier result) {
    std::vector<std::string> arguments;
    for (std::size_t i = 1; i < expr.items.size(); ++i) arguments.push_back(expression(*expr.items[i]).text);
    return call(row.cuda, arguments, result);
  };
  switch (row.rule) {
    case Rule::statement:
    case Rule::syncwarp:
    case Rule::nanosleep:
    case Rule::roc_fence:
      return plain(Carrier::other);
    case Rule::block_vote:
    case Rule::ballot: {
      const std::size_t last = expr.items.size() - 1;
      std::vector<std::string> arguments;
      if (last == 2) arguments.push_back(convert(expression(argument(1)), Carrier::u32).text);
      arguments.push_back(condition(argument(last)).text);
      Code code = call(row.cuda, arguments, Carrier::i32);
      return row.rule == Rule::ballot ? convert(Code{code.text, code.precedence, Carrier::u32}, Carrier::i32)
                                      : code;
    }
    case Rule::warp_vote:
      return {fmt::format("{}({}, {}) != 0", row.cuda, convert(expression(argument(1)), Carrier::u32).text,
                          condition(argument(2)).text),
              Precedence::equality, Carrier::boolean};
    case Rule::grid: {
      const std::int64_t ndim = instance_.constant(argument(1)).integer;
      if (ndim == 1) return grid_axis(row, 0);
      std::vector<std::string> axes;
      for (std::size_t axis = 0; axis < static_cast<std::size_t>(ndim); ++axis)
        axes.push_back(grid_axis(row, axis).text);
      return {fmt::format("{}{{{}}}", cpp_type(type), fmt::join(axes, ", ")), Precedence::primary,
              Carrier::other};
    }
    case Rule::roc_place:
      return plain(row.cuda.ends_with("<long long>") ? Carrier::i64 : Carrier::u32);
    case Rule::roc_dims:
    case Rule::lane_mask:
      return plain(Carrier::u32);
    case Rule::clock:
      return plain(Carrier::i64);
    case Rule::shared_array:
    case Rule::local_array:
    case Rule::const_array:
      return make_array(expr);
    case Rule::atomic:
    case Rule::atomic_integer:
    case Rule::atomic_unsigned:
    case Rule::atomic_cas:
    case Rule::atomic_swap:
      return atomic(expr, row);
    case Rule::shuffle:
      return call(row.cuda,
                  {convert(expression(argument(1)), Carrier::u32).text,
                   convert(expression(argument(2)), carrier).text, expression(argument(3)).text},
                  carrier);
    case Rule::match_any:
    case Rule::match_all: {
      const Carrier value = carrier_of(type_of(2));
      const Code code = call(
          row.cuda,
          {convert(expression(argument(1)), Carrier::u32).text, convert(expression(argument(2)), value).text},
          row.rule == Rule::match_any ? Carrier::u32 : Carrier::other);
      return row.rule == Rule::match_any ? convert(code, Carrier::i32) : code;
    }
    case Rule::same_integer:
    case Rule::find_first:
    case Rule::bit_reverse:
      return call(row.cuda, {convert(expression(argument(1)), carrier_of(type_of(1))).text},
                  row.rule == Rule::same_integer ? Carrier::i32 : carrier);
    case Rule::typed:
      return typed_call(expr, row);
    case Rule::load_hint:
    case Rule::store_hint:
      return element_hint(expr, row);
    case Rule::over_tuple:
      return plain(carrier);
    case Rule::operator1: {
      const Code code = expression(argument(1));
      if (row.cuda == "not")
        return {"!" + inside(condition_of(code, type_of(1)), Precedence::unary), Precedence::unary,
                Carrier::boolean};
      if (type->kind == TypeKind::boolean)
        return {"!" + inside(code, Precedence::unary), Precedence::unary, Carrier::boolean};
      const Code wide = is_integral(type) ? convert(convert(code, carrier_of(type_of(1))), carrier)
                                          : convert(code, carrier);
      return row.cuda == "+" ? wide
                             : Code{fmt::format("{}({})", row.cuda, wide.text), Precedence::unary, carrier};
    }
    case Rule::operator2: {
      const Tok op = binary_operator(row.cuda);
      if (type->kind == TypeKind::boolean && precedence_of(op) >= Precedence::relation &&
          precedence_of(op) <= Precedence::equality)
        return compare_two(op, argument(1), expression(argument(1)), argument(2), expression(argument(2)));
      return binary(expr, op, argument(1), argument(2));
    }
    case Rule::truths: {
      hold_effects(expr);
      const Code a = condition(argument(1)), b = condition(argument(2));
      const Precedence precedence = row.cuda == "&&"   ? Precedence::logical_and
                                    : row.cuda == "||" ? Precedence::logical_or
                                                       : Precedence::equality;
      return {fmt::format("{} {} {}", inside(a, Precedence::unary), row.cuda, inside(b, Precedence::unary)),
              precedence, Carrier::boolean};
    }
    case Rule::clip: {
      const Carrier in = is_floating(type) ? (carrier == Carrier::f64 ? Carrier::f64 : Carrier::f32)
                                           : carrier_of(unit_.types->integer(64, type->is_signed));
      const auto part = [&](std::size_t i) { return convert(expression(argument(i)), in).text; };
      const bool whole = is_integral(type);
      const std::string low = call(whole ? "max" : "quern::maximum", {part(1), part(2)}, in).text;
      return call(whole ? "min" : "quern::minimum", {low, part(3)}, in);
    }
    case Rule::part: {
      if (!is_complex(type_of(1)))
        return row.cuda == "real" ? expression(argument(1)) : constant(Value::of(std::int64_t{0}), type);
      return {fmt::format("{}.{}", inside(expression(argument(1)), Precedence::primary), row.cuda),
              Precedence::primary, carrier};
    }
    case Rule::conjugate: {
      const Code number = expression(row.most == 0 ? *expr.items[0]->items[0] : argument(1));
      return is_complex(type) ? call(row.cuda, {number.text}, carrier) : number;
    }
    case Rule::random: {
      std::vector<std::string> arguments = {array_value(argument(1)).text};
      for (std::size_t i = 2; i < expr.items.size(); ++i) arguments.push_back(expression(argument(i)).text);
      return call(row.cuda.substr(row.cuda.find(' ') + 1), arguments, carrier);
    }
    case Rule::this_grid:
      return plain(Carrier::other);
    case Rule::grid_sync:
      return {inside(expression(*expr.items[0]->items[0]), Precedence::primary) + ".sync()",
              Precedence::primary, Carrier::other};
    case Rule::select:
      hold_effects(expr);
      return {fmt::format("{} ? {} : {}", inside(condition(argument(1)), Precedence::logical_or),
                          inside(convert(expression(argument(2)), carrier), Precedence::logical_or),
                          inside(convert(expression(argument(3)), carrier), Precedence::conditional)),
              Precedence::conditional, carrier};
    case Rule::real2:
      if (row.cuda != "pow" || !is_whole_exponent(type_of(1), type_of(2))) return real_call(expr, row, type);
      return power(expression(argument(1)), type_of(1), expression(argument(2)), type_of(2), type);
    case Rule::real1:
    case Rule::real3:
    case Rule::logarithm:
      return real_call(expr, row, type);
    case Rule::predicate:
      return real_call(expr, row, real_operand(*unit_.types, type_of(1)));
    case Rule::ldexp:
      return call("ldexp",
                  {convert(expression(argument(1)), carrier).text,
                   convert(expression(argument(2)), Carrier::i32).text},
                  carrier);
    case Rule::frexp:
    case Rule::modf:
      return call(row.cuda, {convert(expression(argument(1)), carrier_of(type->items[0])).text},
                  Carrier::other);
    case Rule::sign:
    case Rule::square:
      return call(row.cuda, {convert(expression(argument(1)), carrier).text}, carrier);
    case Rule::absolute: {
      const Code code = expression(argument(1));
      if (is_complex(type_of(1))) return call("quern::abs", {code.text}, carrier);
      if (is_floating(type)) {
        const Carrier in = carrier == Carrier::f64 ? Carrier::f64 : Carrier::f32;
        return call(in == Carrier::f64 ? "fabs" : "fabsf", {convert(code, in).text}, in);
      }
      if (!is_integer(type) || !type->is_signed || range(argument(1)).low >= 0) return code;
      // abs of the least number of its type is that number; a number of a narrower type that is carried as an
      // int differs.
      if (fits_int(code.carrier) && (type->bits <= 32 || range(argument(1)).low > INT32_MIN)) {
        const Code size = call("abs", {code.text}, Carrier::i32);
        const bool wraps =
            type->bits < 32 && range(argument(1)).low <= -(std::int64_t{1} << (type->bits - 1));
        return wraps ? convert(size, carrier) : size;
      }
      return call("llabs", {convert(code, Carrier::i64).text}, Carrier::i64);
    }
    case Rule::extremum:
      return extremum(expr, row);
    case Rule::round: {
      if (expr.items.size() == 2)
        return call("llrint", {convert(expression(argument(1)), Carrier::f64).text}, Carrier::i64);
      const Expr& digits = argument(2).kind == ExprKind::keyword ? *argument(2).items[0] : argument(2);
      return call("quern::round_to",
                  {convert(expression(argument(1)), carrier).text, expression(digits).text}, carrier);
    }
    case Rule::to_int: {
      const Code code = expression(argument(1));
      return is_integral(type_of(1)) ? code : convert(code, Carrier::i64);
    }
    case Rule::to_float:
      if (type_of(1)->kind == TypeKind::string) return constant(instance_.constant(expr), type);
      return is_floating(type_of(1)) ? expression(argument(1))
                                     : convert(expression(argument(1)), Carrier::f64);
    case Rule::to_bool:
      return condition(argument(1));
    case Rule::to_complex: {
      const Carrier part = carrier == Carrier::c64 ? Carrier::f32 : Carrier::f64;
      std::vector<std::string> arguments;
      for (std::size_t i = 1; i < expr.items.size(); ++i) {
        const Expr& item = argument(i).kind == ExprKind::keyword ? *argument(i).items[0] : argument(i);
        const Code code = expression(item);
        arguments.push_back(is_complex(instance_.type(item)) ? code.text : convert(code, part).text);
      }
      return call(cpp_of(carrier), arguments, carrier);
    }
    case Rule::power:
      return binary(expr, Tok::power, argument(1), argument(2));
    case Rule::divmod: {
      const Carrier part = carrier_of(type->items[0]);
      const Code left = once(argument(1));
      const Code right = checked_divisor(Tok::floor_divide, once(argument(2)), argument(2));
      const std::string a = convert(left, part).text, b = convert(right, part).text;
      return {
          fmt::format("{}{{quern::floor_div({}, {}), quern::floor_mod({}, {})}}", cpp_type(type), a, b, a, b),
          Precedence::primary, Carrier::other};
    }
    case Rule::len:
      if (is_tuple(type_of(1))) {
        discard(argument(1));
        return constant(instance_.constant(expr), type);
      }
      return extent(argument(1), 0);
    case Rule::print:
      return print(expr);
    case Rule::range:
    case Rule::enumerate:
    case Rule::zip:
    case Rule::dim3:
    case Rule::int_value:
      break;
  }
  return {};
}

}  // namespace quern::frontend
