// SPDX-License-Identifier: Apache-2.0
// Evaluates calls at a file's own level as far as kernels use their results: numbers that Python functions
// compute from numbers, types, and arrays.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "frontend/names.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;
using Arguments = std::vector<Value>;

struct RealFunction {
  std::string_view name;  // of math and of NumPy
  double (*compute)(double);
};
constexpr RealFunction kRealFunctions[] = {
    {"sqrt", std::sqrt},   {"exp", std::exp},     {"exp2", std::exp2},   {"expm1", std::expm1},
    {"log", std::log},     {"log2", std::log2},   {"log10", std::log10}, {"log1p", std::log1p},
    {"sin", std::sin},     {"cos", std::cos},     {"tan", std::tan},     {"asin", std::asin},
    {"acos", std::acos},   {"atan", std::atan},   {"sinh", std::sinh},   {"cosh", std::cosh},
    {"tanh", std::tanh},   {"asinh", std::asinh}, {"acosh", std::acosh}, {"atanh", std::atanh},
    {"erf", std::erf},     {"erfc", std::erfc},   {"fabs", std::fabs},   {"cbrt", std::cbrt},
    {"arcsin", std::asin}, {"arccos", std::acos}, {"arctan", std::atan}};

struct RealFunction2 {
  std::string_view path;
  double (*compute)(double, double);
};
constexpr RealFunction2 kRealFunctions2[] = {{"math.pow", std::pow},
                                             {"math.atan2", std::atan2},
                                             {"math.hypot", std::hypot},
                                             {"math.fmod", std::fmod},
                                             {"math.copysign", std::copysign}};

Value to_float(const Value& value) {
  if (value.is_number() || value.kind == Kind::big) return Value::of(value.as_real());
  if (value.kind != Kind::string || value.text.empty() ||
      value.text.find_first_of("xXpP_(") != std::string::npos)
    return {};
  char* end = nullptr;
  const double number = std::strtod(value.text.c_str(), &end);
  return *end == '\0' ? Value::of(number) : Value{};
}

/// min and max of numbers, or of the numbers in one tuple; the first of equal ones.
Value extremum(const Arguments& arguments, Tok before) {
  const Arguments& all = arguments.size() == 1 ? arguments[0].items : arguments;
  if (all.empty() || (arguments.size() == 1 && arguments[0].kind != Kind::tuple)) return {};
  Value best = all.front();
  for (const Value& each : all) {
    const Value better = fold(before, each, best);
    if (better.kind != Kind::boolean) return {};
    if (!better.is_zero()) best = each;
  }
  return best;
}

Value magnitude(const Value& value) {
  if (value.kind == Kind::complex) return Value::of(std::hypot(value.real, value.imag));
  if (value.kind == Kind::real) return Value::of(std::abs(value.real));
  return Value::of(value.as_whole().negative() ? value.as_whole().negated() : value.as_whole());
}

/// Functions of one real number. Results that are not finite are errors in Python; in NumPy the last place
/// may differ.
Value real_function(std::string_view path, const Value& argument) {
  const bool math = path.starts_with("math.");
  if ((!math && !path.starts_with("numpy.")) || argument.type != nullptr) return {};
  const std::string_view name = path.substr(path.find('.') + 1);
  const double x = argument.as_real();
  if (math && (name == "floor" || name == "ceil" || name == "trunc"))
    return whole_part(name == "floor" ? std::floor(x) : name == "ceil" ? std::ceil(x) : x);
  if (math && (name == "degrees" || name == "radians")) {
    constexpr double kPi = 3.141592653589793;
    return Value::of(name == "degrees" ? x * (180 / kPi) : x * (kPi / 180));
  }
  for (const RealFunction& row : kRealFunctions) {
    const double result = row.name == name ? row.compute(x) : 0;
    if (row.name == name) return std::isfinite(result) || !std::isfinite(x) ? Value::of(result) : Value{};
  }
  return {};
}

/// Of Python's own and math's functions.
Value python_function(const Builtin& row, const Arguments& arguments) {
  if (row.path == "builtins.min" || row.path == "builtins.max")
    return extremum(arguments, row.path == "builtins.min" ? Tok::less : Tok::greater);
  const Value& first = arguments[0];
  if (row.path == "builtins.len") {
    if (first.kind == Kind::array) return first.shape.empty() ? Value{} : Value::of(first.shape[0]);
    return first.kind == Kind::tuple ? Value::of(static_cast<std::int64_t>(first.items.size())) : Value{};
  }
  if (row.path == "builtins.float" && arguments.size() == 1) return to_float(first);
  if (!std::all_of(arguments.begin(), arguments.end(),
                   [](const Value& each) { return each.is_any_number(); }))
    return {};
  if (arguments.size() == 2) {
    if (row.path == "builtins.pow") return fold(Tok::power, first, arguments[1]);
    if (first.kind == Kind::complex || arguments[1].kind == Kind::complex) return {};
    const double x = first.as_real(), y = arguments[1].as_real();
    if (row.path == "builtins.complex") return Value::complex(x, y);
    if (row.path == "math.log")
      return x > 0 && y > 0 && y != 1 ? Value::of(std::log(x) / std::log(y)) : Value{};
    for (const RealFunction2& each : kRealFunctions2)
      if (each.path == row.path && std::isfinite(each.compute(x, y))) return Value::of(each.compute(x, y));
    return {};
  }
  if (arguments.size() != 1) return {};
  if (row.path == "builtins.bool") return Value::boolean(!first.is_zero());
  if ((row.path == "builtins.abs" || row.path == "math.fabs") && first.type == nullptr)
    return row.path == "math.fabs" ? Value::of(std::abs(first.as_real())) : magnitude(first);
  if (first.kind == Kind::complex) return row.path == "builtins.complex" ? first : Value{};
  if (row.path == "builtins.complex") return Value::complex(first.as_real(), 0);
  if (row.path == "builtins.int")
    return first.is_whole() ? Value::of(first.as_whole()) : whole_part(first.as_real());
  if (row.path == "builtins.round")
    return first.is_whole() ? Value::of(first.as_whole()) : whole_part(std::nearbyint(first.as_real()));
  return real_function(row.path, first);
}

}  // namespace

Value fold_single(const TypeTable& types, Tok op, const Value& a, const Value& b) {
  const auto fits = [&](const Value& value) {
    return value.is_number() && (value.type == nullptr || value.type == types.float32);
  };
  if (!fits(a) || !fits(b) || (a.type == nullptr && b.type == nullptr)) return {};
  const auto x = static_cast<float>(a.as_real()), y = static_cast<float>(b.as_real());
  Value result;
  if (op == Tok::plus) result = Value::of(static_cast<double>(x + y));
  if (op == Tok::minus) result = Value::of(static_cast<double>(x - y));
  if (op == Tok::times) result = Value::of(static_cast<double>(x * y));
  if (op == Tok::divide && y != 0) result = Value::of(static_cast<double>(x / y));
  if (result.kind == Kind::real) result.type = types.float32;
  return result;
}

/// Its arguments in order, those with names, and the type of elements among them.
Names::HostCall Names::read_call(const Expr& expr) {
  HostCall call;
  const auto take_dtype = [&](const Expr& item) {
    call.dtype = element_type(item);
    call.odd_dtype = call.odd_dtype || call.dtype == nullptr;
  };
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const bool named = item.kind == ExprKind::keyword;
    const Expr& source = named ? *item.items[0] : item;
    const Value value = evaluate(source);
    const bool is_type = value.kind == Kind::dtype || value.kind == Kind::string ||
                         (value.kind == Kind::builtin && value.builtin->path.starts_with("builtins."));
    if (named && item.name == "dtype" && value.kind != Kind::none) take_dtype(source);
    if (named)
      call.named.emplace_back(item.name, value);
    else if (i > 1 && is_type)
      take_dtype(source);
    else
      call.arguments.push_back(value);
  }
  return call;
}

Value Names::evaluate_call(const Expr& expr) {
  if (Value text = text_call(expr); text.kind != Kind::unknown) return text;
  // The object of a method is evaluated only once: calls may form a chain of any length.
  const Expr& named = *expr.items[0];
  const Value base = named.kind == ExprKind::attribute ? evaluate(*named.items[0]) : Value{};
  if (base.kind == Kind::array) {
    const Value value = evaluate_method(expr, base);
    return value.kind == Kind::unknown ? Value::host(kPythonsOwn) : value;
  }
  const Value callee = named.kind == ExprKind::attribute ? attribute_of(base, named.name) : evaluate(named);
  const std::string path = callee.kind == Kind::host ? callee.text : dotted_text(named);
  if (path == "numba.cuda.declare_device") return declare_device(expr);
  const HostCall call = read_call(expr);
  const Expr* fields = expr.items.size() > 1 ? expr.items[1] : nullptr;
  if (fields != nullptr && fields->kind == ExprKind::keyword)
    fields = fields->name == "dtype" ? fields->items[0] : nullptr;
  if (path == "numpy.dtype" && fields != nullptr) {
    bool align = false;
    for (const auto& [name, value] : call.named) {
      if (name == "dtype" && fields != expr.items[1]) continue;
      if (name != "align" || !value.is_number())
        return Value::host("a type made with an argument that is not read here");
      align = !value.is_zero();
    }
    return record_dtype(*fields, align);
  }
  const bool one = call.arguments.size() == 1 && call.named.empty();
  if (path == "numba.from_dtype" && one && call.arguments[0].kind == Kind::dtype) return call.arguments[0];
  Value value;
  if (callee.kind == Kind::dtype && one && is_number(callee.type)) {
    value = cast(call.arguments[0], callee.type);
    value.type = callee.type;
  } else if (callee.kind == Kind::builtin && call.named.empty() && !call.arguments.empty()) {
    value = python_function(*callee.builtin, call.arguments);
  } else {
    value = numpy_array(path, call);
  }
  return value.kind == Kind::unknown ? Value::host(kPythonsOwn) : value;
}

}  // namespace quern::frontend
