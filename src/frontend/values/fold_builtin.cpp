// SPDX-License-Identifier: Apache-2.0
#include "frontend/values/fold_builtin.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace quern::frontend {
namespace {

using Kind = Value::Kind;
using Values = std::vector<Value>;

struct RealFunction {
  std::string_view cuda;  // the column `cuda` of its row
  double (*compute)(double);
};
constexpr RealFunction kRealFunctions[] = {
    {"sqrt", std::sqrt}, {"exp", std::exp},     {"exp2", std::exp2},   {"expm1", std::expm1},
    {"log", std::log},   {"log2", std::log2},   {"log10", std::log10}, {"log1p", std::log1p},
    {"sin", std::sin},   {"cos", std::cos},     {"tan", std::tan},     {"asin", std::asin},
    {"acos", std::acos}, {"atan", std::atan},   {"sinh", std::sinh},   {"cosh", std::cosh},
    {"tanh", std::tanh}, {"asinh", std::asinh}, {"acosh", std::acosh}, {"atanh", std::atanh},
    {"erf", std::erf},   {"erfc", std::erfc},   {"fabs", std::fabs},   {"cbrt", std::cbrt}};

// These are functions of math only: NumPy's return whole numbers as floats, or round differently.
constexpr double kDegree = 180 / 3.141592653589793, kRadian = 3.141592653589793 / 180;
constexpr RealFunction kAngles[] = {{"quern::degrees", [](double x) { return x * kDegree; }},
                                    {"quern::radians", [](double x) { return x * kRadian; }}};
constexpr RealFunction kWhole[] = {{"floor", std::floor}, {"ceil", std::ceil}, {"trunc", std::trunc}};

struct RealFunction2 {
  std::string_view cuda;
  double (*compute)(double, double);
};
constexpr RealFunction2 kRealFunctions2[] = {{"pow", std::pow},
                                             {"atan2", std::atan2},
                                             {"hypot", std::hypot},
                                             {"fmod", std::fmod},
                                             {"copysign", std::copysign}};

template <class Function, std::size_t count>
const Function* find_row(const Function (&rows)[count], std::string_view cuda) {
  const Function* found =
      std::find_if(rows, rows + count, [&](const Function& row) { return row.cuda == cuda; });
  return found == rows + count ? nullptr : found;
}

bool is_pythons(const Builtin& row) {
  return row.module() == BuiltinModule::python || row.module() == BuiltinModule::math;
}

bool are_numbers(const Values& arguments, std::size_t count) {
  return arguments.size() == count && std::all_of(arguments.begin(), arguments.end(),
                                                  [](const Value& each) { return each.is_any_number(); });
}
/// True if the arguments are `count` real numbers, and the function is one of Python's own.
bool are_reals(const Builtin& row, const Values& arguments, std::size_t count) {
  return is_pythons(row) && are_numbers(arguments, count) &&
         std::none_of(arguments.begin(), arguments.end(),
                      [](const Value& each) { return each.kind == Kind::complex; });
}

/// min and max of numbers, or of the numbers in one tuple. Of equal numbers, returns the first.
Value extremum(const Builtin& row, const Values& arguments, Tok before) {
  if (!is_pythons(row)) return {};
  const Values& all = arguments.size() == 1 ? arguments[0].items : arguments;
  if (all.empty() || (arguments.size() == 1 && arguments[0].kind != Kind::tuple)) return {};
  Value best = all.front();
  for (const Value& each : all) {
    const Value better = fold(before, each, best);
    if (better.kind != Kind::boolean) return {};
    if (!better.is_zero()) best = each;
  }
  return best;
}

/// The functions of the column `fold` of rules.def.
namespace fold_rules {

Value unknown(const Builtin&, const Values&) { return {}; }

Value least(const Builtin& row, const Values& arguments) { return extremum(row, arguments, Tok::less); }
Value greatest(const Builtin& row, const Values& arguments) { return extremum(row, arguments, Tok::greater); }

Value len(const Builtin&, const Values& arguments) {
  const Value& first = arguments[0];
  if (first.kind == Kind::array) return first.shape.empty() ? Value{} : Value::of(first.shape[0]);
  return first.kind == Kind::tuple ? Value::of(static_cast<std::int64_t>(first.items.size())) : Value{};
}

Value to_float(const Builtin&, const Values& arguments) {
  const Value& value = arguments[0];
  if (arguments.size() != 1) return {};
  if (value.is_number() || value.kind == Kind::big) return Value::of(value.as_real());
  if (value.kind != Kind::string || value.text.empty() ||
      value.text.find_first_of("xXpP_(") != std::string::npos)
    return {};
  char* end = nullptr;
  const double number = std::strtod(value.text.c_str(), &end);
  return *end == '\0' ? Value::of(number) : Value{};
}

Value to_bool(const Builtin& row, const Values& arguments) {
  return is_pythons(row) && are_numbers(arguments, 1) ? Value::boolean(!arguments[0].is_zero()) : Value{};
}

Value to_int(const Builtin& row, const Values& arguments) {
  if (!are_reals(row, arguments, 1)) return {};
  const Value& value = arguments[0];
  return value.is_whole() ? Value::of(value.as_whole()) : whole_part(value.as_real());
}

Value round(const Builtin& row, const Values& arguments) {
  if (!are_reals(row, arguments, 1)) return {};
  const Value& value = arguments[0];
  return value.is_whole() ? Value::of(value.as_whole()) : whole_part(std::nearbyint(value.as_real()));
}

Value to_complex(const Builtin& row, const Values& arguments) {
  if (are_reals(row, arguments, 2)) return Value::complex(arguments[0].as_real(), arguments[1].as_real());
  if (!are_numbers(arguments, 1)) return {};
  return arguments[0].kind == Kind::complex ? arguments[0] : Value::complex(arguments[0].as_real(), 0);
}

Value magnitude(const Builtin& row, const Values& arguments) {
  if (!is_pythons(row) || !are_numbers(arguments, 1) || arguments[0].type != nullptr) return {};
  const Value& value = arguments[0];
  if (value.kind == Kind::complex) return Value::of(std::hypot(value.real, value.imag));
  if (value.kind == Kind::real) return Value::of(std::abs(value.real));
  return Value::of(value.as_whole().negative() ? value.as_whole().negated() : value.as_whole());
}

Value power(const Builtin& row, const Values& arguments) {
  return is_pythons(row) && are_numbers(arguments, 2) ? fold(Tok::power, arguments[0], arguments[1])
                                                      : Value{};
}

/// Functions of one real number. In Python, results that are not finite are errors; in NumPy the last digit
/// may differ.
Value real1(const Builtin& row, const Values& arguments) {
  if ((!is_pythons(row) && row.module() != BuiltinModule::numpy) || !are_numbers(arguments, 1)) return {};
  const Value& argument = arguments[0];
  if (argument.kind == Kind::complex || argument.type != nullptr) return {};
  const double x = argument.as_real();
  if (is_pythons(row)) {
    if (const RealFunction* whole = find_row(kWhole, row.cuda)) return whole_part(whole->compute(x));
    if (const RealFunction* angle = find_row(kAngles, row.cuda)) return Value::of(angle->compute(x));
  }
  const RealFunction* found = find_row(kRealFunctions, row.cuda);
  if (found == nullptr) return {};
  const double result = found->compute(x);
  return std::isfinite(result) || !std::isfinite(x) ? Value::of(result) : Value{};
}

Value real2(const Builtin& row, const Values& arguments) {
  const RealFunction2* found = find_row(kRealFunctions2, row.cuda);
  if (found == nullptr || !are_reals(row, arguments, 2)) return {};
  const double result = found->compute(arguments[0].as_real(), arguments[1].as_real());
  return std::isfinite(result) ? Value::of(result) : Value{};
}

Value logarithm(const Builtin& row, const Values& arguments) {
  if (arguments.size() == 1) return real1(row, arguments);
  if (!are_reals(row, arguments, 2)) return {};
  const double x = arguments[0].as_real(), base = arguments[1].as_real();
  return x > 0 && base > 0 && base != 1 ? Value::of(std::log(x) / std::log(base)) : Value{};
}

}  // namespace fold_rules
}  // namespace

Value fold_builtin(const Builtin& row, const Values& arguments) {
  constexpr Value (*kFold[])(const Builtin&, const Values&) = {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) \
  &fold_rules::fold,
#include "frontend/builtins/rules.def"
  };
  return arguments.empty() ? Value{} : kFold[static_cast<std::size_t>(row.rule)](row, arguments);
}

}  // namespace quern::frontend
