// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frontend/emit.hpp"

namespace quern::frontend {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\{:03o}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string escaped_format(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '%' ? std::string("%%") : std::string(1, c);
  return result;
}

}  // namespace

Code Emitter::call_expression(const Expr& expr) {
  const Type callee = instance_.type(*expr.items[0]);
  if (callee->kind == TypeKind::function) return call_function(expr, *instance_.callees.at(expr.id));
  if (callee->kind == TypeKind::builtin) return call_builtin(expr, *callee->builtin);
  // A type: a conversion.
  const Type to = callee->element, from = instance_.type(*expr.items[1]);
  Code code = expression(*expr.items[1]);
  const Carrier carrier = carrier_of(to);
  if (from == to && code.carrier == carrier) return code;
  const bool small = carrier == Carrier::i64 && fits_int(code.carrier);
  if (small) return code;  // the same value, computed on in 64 bits where that matters
  return convert(code, carrier);
}

Code Emitter::call_function(const Expr& expr, const Instance& callee) {
  const Function& function = *callee.scope->function;
  std::vector<std::string> arguments(function.parameters.size());
  std::size_t position = 0;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr* item = expr.items[i];
    std::size_t index = position++;
    if (item->kind == ExprKind::keyword) {
      const auto found = std::find_if(function.parameters.begin(), function.parameters.end(),
                                      [&](const Parameter& p) { return p.name == item->name; });
      index = static_cast<std::size_t>(found - function.parameters.begin());
      item = item->items[0];
      --position;
    }
    const Type to = callee.parameters[index];
    arguments[index] = is_array(to) ? array_value(*item).text : as(*item, to).text;
  }
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].empty())
      arguments[i] =
          constant(unit_.names->evaluate(*function.parameters[i].fallback), callee.parameters[i]).text;
  return call(unit_.function_names.at(&callee), arguments, carrier_of(callee.result));
}

/// A function of float32 or float64: the arguments become what it computes in.
Code Emitter::real_call(const Expr& expr, const Builtin& row, Type result) {
  const Carrier carrier = row.rule == Rule::libdevice32   ? Carrier::f32
                          : row.rule == Rule::libdevice64 ? Carrier::f64
                                                          : carrier_of(result);
  std::vector<std::string> arguments;
  for (std::size_t i = 1; i < expr.items.size(); ++i)
    arguments.push_back(convert(expression(*expr.items[i]), carrier).text);
  return call(row.cuda, arguments, row.rule == Rule::predicate ? Carrier::boolean : carrier);
}

Code Emitter::extremum(const Expr& expr, const Builtin& row) {
  const Type type = instance_.type(expr);
  std::vector<Code> codes;
  bool ints = is_integer(type) && type->is_signed;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    codes.push_back(expression(*expr.items[i]));
    const Range& bounds = range(*expr.items[i]);
    if (codes.back().carrier == Carrier::u32 && bounds.within(0, INT32_MAX))
      codes.back() = convert(codes.back(), Carrier::i32);
    ints = ints && fits_int(codes.back().carrier);
  }
  // CUDA has min and max for int, unsigned, their long long, float and double.
  Carrier carrier = ints ? Carrier::i32 : carrier_of(type);
  if (!ints && fits_int(carrier)) carrier = Carrier::i32;
  if (carrier == Carrier::f16 || carrier == Carrier::bf16) carrier = Carrier::f32;
  // Two floats go to CUDA's function, which passes over NaN; Numba compares everything else one by one.
  bool floats = codes.size() == 2;
  for (std::size_t i = 1; i < expr.items.size(); ++i)
    floats = floats && is_floating(instance_.type(*expr.items[i]));
  const std::string_view function = is_integral(type) || floats ? row.cuda
                                    : row.cuda == "min"         ? "quern::lesser"
                                                                : "quern::greater";
  Code result = convert(codes[0], carrier);
  for (std::size_t i = 1; i < codes.size(); ++i)
    result = call(function, {result.text, convert(codes[i], carrier).text}, carrier);
  return result;
}

Code Emitter::atomic(const Expr& expr, const Builtin& row) {
  const Expr& array = *expr.items[1];
  const Type element = instance_.type(array)->element;
  const bool swap = row.rule == Rule::atomic_swap;
  const Code place = swap ? element_of(array, {Code{"0", Precedence::primary, Carrier::i32}})
                          : this->element(array, *expr.items[2]);
  std::vector<std::string> arguments = {"&" + inside(place, Precedence::primary)};
  for (std::size_t i = swap ? 2 : 3; i < expr.items.size(); ++i)
    arguments.push_back(convert(expression(*expr.items[i]), carrier_of(element)).text);
  return call(row.cuda, arguments, carrier_of(element));
}

/// An array where it is used without a name: what a name would have got.
Code Emitter::make_array(const Expr& expr) {
  const Storage& storage = instance_.storages.at(expr.id);
  if (storage.space == Space::constant) {
    const std::string name = cpp_name(storage.name);
    return {fmt::format("quern::view({})", name), Precedence::primary, Carrier::other};
  }
  const std::string element = cpp_type(storage.element);
  if (storage.space == Space::dynamic_shared)
    return call(fmt::format("quern::dynamic_shared<{}>", element), {}, Carrier::other);
  const std::string name = temporary(storage.space == Space::shared ? "shared" : "local");
  std::string extents;
  for (const std::int64_t extent : storage.extents) extents += fmt::format("[{}]", extent);
  line(
      fmt::format("{}{} {}{};", storage.space == Space::shared ? "__shared__ " : "", element, name, extents));
  return {fmt::format("quern::view({})", name), Precedence::primary, Carrier::other};
}

/// One printf, with spaces between and the line's end behind, as Numba prints.
Code Emitter::print(const Expr& expr) {
  std::string format;
  std::vector<std::string> arguments;
  const auto add = [&](const Code& code, Type type) {
    if (type->kind == TypeKind::boolean) {
      format += "%s";
      arguments.push_back(fmt::format("{} ? \"True\" : \"False\"", inside(code, Precedence::logical_or)));
    } else if (is_integral(type)) {
      format += type->is_signed ? "%lld" : "%llu";
      arguments.push_back(convert(code, type->is_signed ? Carrier::i64 : Carrier::u64).text);
    } else {
      format += "%f";
      arguments.push_back(convert(code, Carrier::f64).text);
    }
  };
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const Type type = instance_.type(item);
    if (i > 1) format += ' ';
    if (type->kind == TypeKind::string) {
      format += escaped_format(instance_.constant(item).text);
    } else if (type->kind == TypeKind::dim3) {
      const std::string_view name = instance_.constant(item).builtin->cuda;
      format += "(%d, %d, %d)";
      for (const char axis : {'x', 'y', 'z'}) arguments.push_back(fmt::format("{}.{}", name, axis));
    } else if (is_tuple(type)) {
      const Code whole = expression(item);
      format += '(';
      for (std::size_t k = 0; k < type->items.size(); ++k) {
        if (k > 0) format += ", ";
        add(this->item(whole, k, type->items[k]), type->items[k]);
      }
      format += type->items.size() == 1 ? ",)" : ")";
    } else {
      add(expression(item), type);
    }
  }
  arguments.insert(arguments.begin(), quoted(format + "\n"));
  return call("printf", arguments, Carrier::other);
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
      return {fmt::format("quern::{}<{}, long long>()", row.cuda, ndim), Precedence::primary,
              ndim == 1 ? Carrier::i64 : Carrier::other};
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
    case Rule::select:
      return {fmt::format("{} ? {} : {}", inside(condition(argument(1)), Precedence::logical_or),
                          inside(convert(expression(argument(2)), carrier), Precedence::logical_or),
                          inside(convert(expression(argument(3)), carrier), Precedence::conditional)),
              Precedence::conditional, carrier};
    case Rule::real1:
    case Rule::real2:
    case Rule::real3:
    case Rule::libdevice32:
    case Rule::libdevice64:
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
      if (is_floating(type))
        return call("fabs", {convert(code, carrier == Carrier::f64 ? Carrier::f64 : Carrier::f32).text},
                    carrier == Carrier::f64 ? Carrier::f64 : Carrier::f32);
      if (!is_integer(type) || !type->is_signed || range(argument(1)).low >= 0) return code;
      if (fits_int(code.carrier)) return call("abs", {code.text}, Carrier::i32);
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
      const std::string a = convert(expression(argument(1)), part).text,
                        b = convert(expression(argument(2)), part).text;
      return {
          fmt::format("{}{{quern::floor_div({}, {}), quern::floor_mod({}, {})}}", cpp_type(type), a, b, a, b),
          Precedence::primary, Carrier::other};
    }
    case Rule::len:
      if (is_tuple(type_of(1))) return constant(instance_.constant(expr), type);
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
