// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frontend/emit.hpp"
#include "frontend/forms.hpp"

namespace quern::frontend {
namespace {

std::string escaped_format(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '%' ? std::string("%%") : std::string(1, c);
  return result;
}

}  // namespace

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

Code Emitter::call_expression(const Expr& expr) {
  const Type callee = instance_.type(*expr.items[0]);
  // A call that gives the function may do more than that.
  if (expr.items[0]->kind == ExprKind::call && effects(*expr.items[0]) == Effects::writes)
    line(expression(*expr.items[0]).text + ";");
  if (callee->kind == TypeKind::function && !callee->function->external.empty())
    return call_external(expr, *callee->function);
  if (callee->kind == TypeKind::function) return call_function(expr, *instance_.callees.at(expr.id));
  if (callee->kind == TypeKind::builtin) return call_builtin(expr, *callee->builtin);
  // A type: a conversion.
  if (is_vector(callee->element)) return make_vector(expr, callee->element);
  const Type to = callee->element, from = instance_.type(*expr.items[1]);
  Code code = expression(*expr.items[1]);
  const Carrier carrier = carrier_of(to);
  if (from == to && code.carrier == carrier) return code;
  const bool small = carrier == Carrier::i64 && fits_int(code.carrier);
  if (small) return code;  // the same value, computed on in 64 bits where that matters
  return convert(code, carrier);
}

/// A function of linked CUDA C++. Numba's calling convention passes the address of the result; a wrapper
/// function does so.
Code Emitter::call_external(const Expr& expr, const Declaration& callee) {
  const SignatureTypes& signature = callee.signatures.front();
  std::string types, parameters, passed;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const std::string type = cpp_type(signature.parameters[i]);
    types += (types.empty() ? "" : ", ") + type;
    parameters += fmt::format("{}{} x{}", i == 0 ? "" : ", ", type, i);
    passed += fmt::format(", x{}", i);
  }
  const std::string result = cpp_type(signature.result), comma = types.empty() ? "" : ", ";
  std::string name = callee.external;
  if (callee.c_abi) {
    unit_.linked.try_emplace(name, fmt::format("extern \"C\" __device__ {} {}({});\n", result, name, types));
  } else {
    name = "call_" + callee.external;
    const bool none = signature.result->kind == TypeKind::none;
    unit_.linked.try_emplace(
        callee.external, fmt::format("extern \"C\" __device__ int {0}({1}*{2}{3});\nstatic __device__ {1} "
                                     "{4}({5}) {{{6} {0}({7}{8});{9} }}\n",
                                     callee.external, result, comma, types, name, parameters,
                                     none ? "" : fmt::format(" {} result;", result),
                                     none ? "nullptr" : "&result", passed, none ? "" : " return result;"));
  }
  for (const std::string& file : callee.options.links) unit_.links.insert(file);
  std::vector<std::string> arguments;
  for (std::size_t i = 1; i < expr.items.size(); ++i)
    arguments.push_back(convert(expression(*expr.items[i]), carrier_of(signature.parameters[i - 1])).text);
  return call(name, arguments, carrier_of(signature.result));
}

/// float32x4(xy, 0, 1): a number for each part.
Code Emitter::make_vector(const Expr& expr, Type to) {
  const Carrier carrier = carrier_of(to->element);
  std::vector<std::string> parts;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const Type type = instance_.type(item);
    if (!is_vector(type)) {
      parts.push_back(convert(expression(item), carrier).text);
      continue;
    }
    const Code whole = once(item);
    for (unsigned k = 0; k < type->ndim; ++k)
      parts.push_back(convert({fmt::format("{}.{}", whole.text, "xyzw"[k]), Precedence::primary,
                               carrier_of(type->element)},
                              carrier)
                          .text);
  }
  return {fmt::format("{}{{{}}}", cpp_type(to), fmt::join(parts, ", ")), Precedence::primary, Carrier::other};
}

/// A function with types of its own: every argument is converted to the form's type.
Code Emitter::typed_call(const Expr& expr, const Builtin& row) {
  std::vector<Type> types;
  for (std::size_t i = 1; i < expr.items.size(); ++i)
    if (expr.items[i]->kind != ExprKind::keyword) types.push_back(instance_.type(*expr.items[i]));
  const Form form = *choose_form(*unit_.types, row, types);
  std::vector<std::string> arguments;
  for (const Form::Parameter& parameter : form.parameters) arguments.emplace_back(parameter.fallback);
  std::size_t position = 0;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr* item = expr.items[i];
    std::size_t at = position;
    if (item->kind == ExprKind::keyword) {
      while (form.parameters[at].name != item->name) ++at;
      item = item->items[0];
    } else {
      ++position;
    }
    arguments[at] = convert(expression(*item), carrier_of(form.parameters[at].type)).text;
  }
  Code code = call(form.cuda, arguments, carrier_of(form.result));
  if (form.cuda.starts_with('(')) code.precedence = Precedence::unary;
  return code;
}

/// cuda.ldcg(array, index) and cuda.stcg(array, index, value): CUDA's function of the element's address.
Code Emitter::element_hint(const Expr& expr, const Builtin& row) {
  const Expr& array = *expr.items[1];
  const Carrier carrier = carrier_of(instance_.type(array)->element);
  std::vector<std::string> arguments = {"&" + inside(element(array, *expr.items[2]), Precedence::primary)};
  if (row.rule == Rule::store_hint) arguments.push_back(convert(expression(*expr.items[3]), carrier).text);
  return call(row.cuda, arguments, row.rule == Rule::store_hint ? Carrier::other : carrier);
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
    if (is_valueless(to)) {
      discard(*item);
      continue;
    }
    arguments[index] = is_array(to) ? array_value(*item).text : as(*item, to).text;
  }
  const std::vector<std::uint32_t>& captured = scope_.captures(expr);
  const std::size_t own = arguments.size() - captured.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i >= own)
      arguments[i] = captured_value(captured[i - own]);
    else if (arguments[i].empty() && !is_valueless(callee.parameters[i]))
      arguments[i] =
          constant(unit_.names->default_value(*callee.declaration, *function.parameters[i].fallback),
                   callee.parameters[i])
              .text;
  }
  for (std::size_t i = arguments.size(); i-- > 0;)
    if (is_valueless(callee.parameters[i]))
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
  return call(unit_.function_names.at(&callee), arguments, carrier_of(callee.result));
}

/// Returns the value that a nested function captures from this one.
std::string Emitter::captured_value(std::uint32_t version) {
  const std::uint32_t id = variables_.of_version[version];
  if (id == kNoVariable) return "0";
  return variables_.all[id].storage != nullptr ? fmt::format("quern::view({})", variables_.all[id].name)
                                               : variable(id).text;
}

/// A function of float32 or float64: the arguments are converted to the type in which it computes.
Code Emitter::real_call(const Expr& expr, const Builtin& row, Type result) {
  const Carrier carrier = carrier_of(result);
  const std::string_view other = is_complex(result)               ? complex_function(row)
                                 : result == unit_.types->float16 ? half_function(row)
                                                                  : std::string_view();
  std::vector<std::string> arguments;
  for (std::size_t i = 1; i < expr.items.size(); ++i)
    arguments.push_back(convert(expression(*expr.items[i]), carrier).text);
  std::string function(other.empty() ? row.cuda : other);
  // sqrtf, not an overload of sqrt: NVRTC chooses among a dozen of those each time.
  if (other.empty() && carrier == Carrier::f32 && row.rule != Rule::predicate &&
      !function.starts_with("quern::"))
    function += 'f';
  if (row.rule == Rule::logarithm && arguments.size() == 2)
    return infix(Tok::divide, call(function, {arguments[0]}, carrier),
                 call(function, {arguments[1]}, carrier), carrier);
  return call(function, arguments, row.rule == Rule::predicate ? Carrier::boolean : carrier);
}

Code Emitter::extremum(const Expr& expr, const Builtin& row) {
  const Type type = instance_.type(expr);
  std::vector<Code> codes;
  bool ints = is_integer(type) && type->is_signed;
  std::vector<const Expr*> arguments(expr.items.begin() + 1, expr.items.end());
  const bool of_tuple = arguments.size() == 1;
  if (of_tuple && arguments[0]->kind == ExprKind::tuple)
    arguments.assign(arguments[0]->items.begin(), arguments[0]->items.end());
  for (const Expr* argument : arguments) {
    if (const Type tuple = instance_.type(*argument); is_tuple(tuple)) {
      const Code whole = once(*argument);
      for (std::size_t i = 0; i < tuple->items.size(); ++i) codes.push_back(item(whole, i, tuple->items[i]));
      ints = false;
      break;
    }
    codes.push_back(expression(*argument));
    const Range& bounds = range(*argument);
    if (codes.back().carrier == Carrier::u32 && bounds.within(0, INT32_MAX))
      codes.back() = convert(codes.back(), Carrier::i32);
    ints = ints && fits_int(codes.back().carrier);
  }
  // CUDA has min and max for int, unsigned, their long long, float and double.
  Carrier carrier = ints ? Carrier::i32 : carrier_of(type);
  if (!ints && fits_int(carrier)) carrier = Carrier::i32;
  if (carrier == Carrier::f16 || carrier == Carrier::bf16) carrier = Carrier::f32;
  // Two floats go to CUDA's function, which passes over NaN; Numba compares everything else one by one.
  bool floats = codes.size() == 2 && !of_tuple;
  for (std::size_t i = 1; i < expr.items.size(); ++i)
    floats = floats && is_floating(instance_.type(*expr.items[i]));
  const bool least = row.cuda.ends_with("min") || row.cuda.ends_with("minimum");
  const std::string_view function = is_integral(type) ? (least ? "min" : "max")
                                    : floats          ? row.cuda
                                    : least           ? "quern::lesser"
                                                      : "quern::greater";
  Code result = convert(codes[0], carrier);
  for (std::size_t i = 1; i < codes.size(); ++i)
    result = call(function, {result.text, convert(codes[i], carrier).text}, carrier);
  return result;
}

namespace {

/// CUDA C++ has some of its operations not for long long: quern's header adds them, which costs NVRTC time,
/// so only kernels that need it name it.
std::string_view atomic_function(std::string_view cuda, Carrier carrier) {
  constexpr std::pair<std::string_view, std::string_view> kAdded[] = {{"atomicAdd", "quern::atomic_add"},
                                                                      {"atomicExch", "quern::atomic_exch"},
                                                                      {"atomicCAS", "quern::atomic_cas"}};
  for (const auto& [of_cuda, of_quern] : kAdded)
    if (carrier == Carrier::i64 && cuda == of_cuda) return of_quern;
  return cuda;
}

}  // namespace

Code Emitter::atomic(const Expr& expr, const Builtin& row) {
  const Expr& array = *expr.items[1];
  const Type element = instance_.type(array)->element;
  const bool swap = row.rule == Rule::atomic_swap;
  const Code place = swap ? element_of(array, {Code{"0", Precedence::primary, Carrier::i32}})
                          : this->element(array, *expr.items[2]);
  std::vector<std::string> arguments = {"&" + inside(place, Precedence::primary)};
  for (std::size_t i = swap ? 2 : 3; i < expr.items.size(); ++i)
    arguments.push_back(convert(expression(*expr.items[i]), carrier_of(element)).text);
  return call(atomic_function(row.cuda, carrier_of(element)), arguments, carrier_of(element));
}

/// An array that is used without a name gets the same code as a named one.
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
      const std::string_view name = type->builtin->cuda;
      format += "(%d, %d, %d)";
      for (const char axis : {'x', 'y', 'z'}) arguments.push_back(fmt::format("{}.{}", name, axis));
    } else if (is_tuple(type)) {
      const Code whole = once(item);
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

}  // namespace quern::frontend
