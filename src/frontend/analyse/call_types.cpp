// SPDX-License-Identifier: Apache-2.0
// Type inference for calls of functions of the file, and of types as functions.
#include <algorithm>

#include "frontend/analyse/call_types.hpp"

namespace quern::frontend {
namespace {

/// True for types that have no C++ type and carry more information than the type itself.
bool cannot_be_passed(Type type) {
  switch (type->kind) {
    case TypeKind::string:
    case TypeKind::slice:
    case TypeKind::ellipsis:
    case TypeKind::module_:
    case TypeKind::range:
    case TypeKind::enumerate:
    case TypeKind::zip:
      return true;
    default:
      return false;
  }
}

}  // namespace

/// The value of a parameter of this type in every call: the function or type itself.
Value valueless_constant(Type type) {
  Value value;
  switch (type->kind) {
    case TypeKind::function:
      value.kind = Value::Kind::function;
      value.function = const_cast<Declaration*>(type->function);
      break;
    case TypeKind::builtin:
    case TypeKind::dim3:
      value.kind = Value::Kind::builtin;
      value.builtin = type->builtin;
      break;
    case TypeKind::dtype:
      value.kind = Value::Kind::dtype;
      value.type = type->element;
      break;
    default:
      break;
  }
  return value;
}

Type Inference::call(const Expr& expr) {
  const Expr* outer = std::exchange(callee_, expr.items[0]);
  const Type callee = expression(*expr.items[0]);
  callee_ = outer;
  const auto visit_all = [&] {
    for (std::size_t i = 1; i < expr.items.size(); ++i) expression(*expr.items[i]);
  };
  if (callee == nullptr || is_error(callee)) {
    visit_all();
    return callee;
  }
  switch (callee->kind) {
    case TypeKind::function:
      return CallTypes(*this).call_function(expr, const_cast<Declaration&>(*callee->function));
    case TypeKind::dtype:
      return CallTypes(*this).call_dtype(expr, callee->element);
    case TypeKind::builtin:
      return call_builtin(expr, *callee->builtin);
    default:
      break;
  }
  visit_all();
  const Value& known = specialisation_.constant(*expr.items[0]);
  const bool register_ = known.kind == Value::Kind::builtin;
  std::string hint = callee->kind == TypeKind::array ? "index with [ ]" : "";
  if (register_) hint = fmt::format("write {} without ( )", known.builtin->shown());
  return fail(expr.items[0]->place, "types", std::move(hint), "{} is {} and cannot be called",
              shown(*expr.items[0]), text_of(callee));
}

/// Assigns the arguments to parameters. If they do not fit, reports that and returns false.
bool CallTypes::match_arguments(const Expr& expr, Declaration& callee, Arguments& out) {
  const Function* function = program_.names().body_of(callee);
  const std::size_t count = out.types.size();
  std::vector<bool> seen(count, false);
  std::size_t position = 0;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const Type type = inference_.expression(item);
    if (item.kind == ExprKind::unsupported) return false;  // *args: any number of arguments
    std::size_t index = position;
    if (item.kind == ExprKind::keyword) {
      const auto begin = function->parameters.begin(), end = begin + static_cast<std::ptrdiff_t>(count);
      const auto found = std::find_if(begin, end, [&](const Parameter& p) { return p.name == item.name; });
      index = static_cast<std::size_t>(found - begin);
      if (index == count) {
        fail(item.place, "calls", "", "'{}' has no parameter '{}'", callee.name, item.name);
        note(callee.place, fmt::format("'{}' is defined here", callee.name));
        return false;
      }
    } else {
      ++position;
    }
    if (index >= count) continue;
    if (seen[index]) {
      fail(item.place, "calls", "give each argument once", "parameter '{}' is given twice",
           function->parameters[index].name);
      return false;
    }
    seen[index] = true;
    out.types[index] = type;
    out.values[index] = specialisation_.constant(item.kind == ExprKind::keyword ? *item.items[0] : item);
    out.unknown = out.unknown || type == nullptr || is_error(type);
  }
  if (position > count) {
    fail(expr.place, "calls", "", "'{}' takes {} argument{}, {} are given", callee.name, count,
         count == 1 ? "" : "s", position);
    note(callee.place, fmt::format("'{}' is defined here", callee.name));
    return false;
  }
  for (std::size_t i = 0; i < count; ++i)
    if (!seen[i] && !default_argument(expr, callee, i, out)) return false;
  return true;
}

bool CallTypes::default_argument(const Expr& expr, Declaration& callee, std::size_t index, Arguments& out) {
  const Parameter& parameter = program_.names().body_of(callee)->parameters[index];
  if (parameter.fallback == nullptr) {
    fail(expr.place, "calls", "", "no value is given for parameter '{}' of '{}'", parameter.name,
         callee.name);
    note(callee.place, fmt::format("'{}' is defined here", callee.name));
    return false;
  }
  const Value value = program_.names().default_value(callee, *parameter.fallback);
  const Type number = value.is_any_number() ? type_of_number(types_, value) : nullptr;
  const Type type = value.kind == Value::Kind::none ? types_.none : number != nullptr ? number : types_.error;
  out.values[index] = value;
  out.types[index] = type;
  if (!is_error(type)) return true;
  fail(parameter.fallback->place, "calls", "give a number or None", "this default value is no constant");
  return false;
}

/// The argument types in the order of the parameters, and the known values. Defaults replace missing
/// arguments.
bool CallTypes::bind_arguments(const Expr& expr, Declaration& callee, Arguments& out) {
  const Function* function = program_.names().body_of(callee);
  const auto count =
      static_cast<std::size_t>(std::count_if(function->parameters.begin(), function->parameters.end(),
                                             [](const Parameter& parameter) { return !parameter.captured; }));
  out.types.assign(count, nullptr);
  out.values.assign(count, {});
  if (!match_arguments(expr, callee, out)) return false;
  for (const std::uint32_t version : scope_.captures(expr)) {
    out.types.push_back(specialisation_.version_types[version]);
    out.values.push_back(specialisation_.version_constants[version]);
    out.unknown = out.unknown || out.types.back() == nullptr || is_error(out.types.back());
  }
  if (out.types.size() != function->parameters.size())
    return false;  // a function as a value: the error was reported before
  return !out.unknown;
}

Type CallTypes::call_function(const Expr& expr, Declaration& callee) {
  if (callee.role == Role::host) {
    for (std::size_t i = 1; i < expr.items.size(); ++i) inference_.expression(*expr.items[i]);
    const Type type = fail(expr.items[0]->place, "calls", "decorate it with @cuda.jit(device=True)",
                           "'{}' is a function of the host program, which a kernel cannot call", callee.name);
    note(callee.place, fmt::format("'{}' is defined here", callee.name));
    return type;
  }
  if (!callee.external.empty()) return call_external(expr, callee);
  Arguments arguments;
  if (!bind_arguments(expr, callee, arguments)) return refused();
  std::vector<Type>& types = arguments.types;
  const std::size_t captured = scope_.captures(expr).size();
  for (std::size_t i = 0; i + captured < types.size(); ++i)
    if (cannot_be_passed(types[i]))
      return fail(expr.place, "unsupported", "", "{} cannot be passed to a function", text_of(types[i]));
  for (const SignatureTypes& signature : callee.signatures) {
    if (signature.parameters.size() != types.size()) continue;
    bool fits = true;
    for (std::size_t i = 0; i < types.size(); ++i) fits = fits && converts(types[i], signature.parameters[i]);
    if (fits) {
      types = signature.parameters;
      break;
    }
  }
  Specialisation* specialisation =
      program_.specialisation(callee, types, std::move(arguments.values), expr.place);
  if (specialisation != nullptr) specialisation_.callees[expr.id] = specialisation;
  if (specialisation != nullptr && !specialisation->failed) return specialisation->result;
  specialisation_.failed = specialisation_.failed || reporting_;
  return refused();
}

/// A function of linked CUDA C++: its arguments and its result are numbers.
Type CallTypes::call_external(const Expr& expr, const Declaration& callee) {
  const SignatureTypes& signature = callee.signatures.front();
  bool unknown = false;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Type type = inference_.expression(*expr.items[i]);
    unknown = unknown || type == nullptr || is_error(type);
  }
  if (callee.broken) return refused();
  const std::size_t count = expr.items.size() - 1;
  if (count != signature.parameters.size())
    return fail(expr.place, "calls", "", "'{}' takes {} argument{}, {} are given", callee.external,
                signature.parameters.size(), signature.parameters.size() == 1 ? "" : "s", count);
  if (unknown) return refused();
  for (std::size_t i = 0; i < count; ++i) {
    const Expr& item = *expr.items[i + 1];
    const Type type = specialisation_.type(item);
    if (item.kind == ExprKind::keyword || !is_number(type) || !converts(type, signature.parameters[i]))
      return fail(item.place, "types", "", "'{}' takes {} here, not {}", callee.external,
                  text_of(signature.parameters[i]), text_of(type));
  }
  return signature.result;
}

/// float32x4(1, 2, xy): the arguments are numbers and vectors that together have the right number of parts.
Type CallTypes::make_vector(const Expr& expr, Type to) {
  std::size_t parts = 0;
  bool unknown = false;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const Type type = inference_.expression(item);
    unknown = unknown || type == nullptr;
    if (type == nullptr) continue;
    if (is_error(type)) return type;
    if (item.kind == ExprKind::keyword || !((is_number(type) && !is_complex(type)) || is_vector(type)))
      return fail(item.place, "types", "", "{} is made of numbers and vectors, not of {}", text_of(to),
                  item.kind == ExprKind::keyword ? "arguments by name" : text_of(type));
    parts += is_vector(type) ? type->ndim : 1;
  }
  if (unknown) return nullptr;
  if (parts == to->ndim) return to;
  return fail(expr.place, "calls", "give a number for each part", "{} has {} parts, {} are given",
              text_of(to), to->ndim, parts);
}

Type CallTypes::call_dtype(const Expr& expr, Type to) {
  if (is_vector(to)) return make_vector(expr, to);
  if (expr.items.size() != 2 || expr.items[1]->kind == ExprKind::keyword) {
    for (std::size_t i = 1; i < expr.items.size(); ++i) inference_.expression(*expr.items[i]);
    return fail(expr.place, "calls", "", "{} converts one value, {} are given", text_of(to),
                expr.items.size() - 1);
  }
  const Type from = inference_.expression(*expr.items[1]);
  if (from == nullptr || is_error(from)) return from;
  if (!is_number(to) || !is_number(from) || (is_complex(from) && !is_complex(to)))
    return fail(expr.place, "types", is_complex(from) ? "take its .real or .imag" : "",
                "{} cannot be converted to {}", text_of(from), text_of(to));
  Value constant = specialisation_.constant(*expr.items[1]);
  if (constant.kind == Value::Kind::integer && is_integer(to) && to->bits == 64)
    specialisation_.constants[expr.id] = constant;
  if (constant.kind == Value::Kind::integer && is_integer(to) && constant.integer >= 0 &&
      constant.integer < 128)
    specialisation_.constants[expr.id] = constant;
  return to;
}

}  // namespace quern::frontend
