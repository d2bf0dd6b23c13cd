// SPDX-License-Identifier: Apache-2.0
// Evaluates calls at the file's level whose results kernels can use: numbers that Python functions compute
// from numbers, types, and arrays.
#include <algorithm>

#include "frontend/module/decorators.hpp"
#include "frontend/module/evaluate.hpp"
#include "frontend/module/signature.hpp"
#include "frontend/values/fold_builtin.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;

}  // namespace

/// Reads the positional arguments in order, the keyword arguments, and the element type among them.
HostCall Evaluator::read_call(const Expr& expr) {
  HostCall call;
  const auto take_dtype = [&](const Expr& item) {
    call.dtype = type_reader_.element_type(item);
    call.odd_dtype = call.odd_dtype || call.dtype == nullptr;
  };
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const bool named = item.kind == ExprKind::keyword;
    const Expr& source = named ? *item.items[0] : item;
    const Value value = evaluate(source);
    const bool is_type = value.kind == Kind::dtype || value.kind == Kind::string ||
                         (value.kind == Kind::builtin && value.builtin->module() == BuiltinModule::python);
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

Value Evaluator::call(const Expr& expr) {
  if (Value text = text_call(expr); text.kind != Kind::unknown) return text;
  // The object of a method is evaluated only once, since calls may form a chain of any length.
  const Expr& named = *expr.items[0];
  const Value base = named.kind == ExprKind::attribute ? evaluate(*named.items[0]) : Value{};
  if (base.kind == Kind::array) {
    const Value value = method(expr, base);
    return value.kind == Kind::unknown ? Value::computed() : value;
  }
  const Value callee = named.kind == ExprKind::attribute ? attribute_of(base, named.name) : evaluate(named);
  const std::string path = callee.kind != Kind::host ? dotted_text(named)
                           : callee.is_imported()    ? callee.text
                                                     : std::string();
  if (path == "numba.cuda.declare_device") return decorators_.declare_device(expr);
  const HostCall given = read_call(expr);
  const Expr* fields = expr.items.size() > 1 ? expr.items[1] : nullptr;
  if (fields != nullptr && fields->kind == ExprKind::keyword)
    fields = fields->name == "dtype" ? fields->items[0] : nullptr;
  if (path == "numpy.dtype" && fields != nullptr) {
    bool align = false;
    for (const auto& [name, value] : given.named) {
      if (name == "dtype" && fields != expr.items[1]) continue;
      if (name != "align" || !value.is_number())
        return Value::host("a type made with an argument that is not read here");
      align = !value.is_zero();
    }
    return type_reader_.record_dtype(*fields, align);
  }
  const bool one = given.arguments.size() == 1 && given.named.empty();
  if (path == "numba.from_dtype" && one && given.arguments[0].kind == Kind::dtype) return given.arguments[0];
  Value value;
  if (callee.kind == Kind::dtype && one && is_number(callee.type)) {
    value = cast(given.arguments[0], callee.type);
    value.type = callee.type;
  } else if (callee.kind == Kind::builtin && given.named.empty()) {
    value = fold_builtin(*callee.builtin, given.arguments);
  } else {
    value = numpy_array(file_.types, path, given);
  }
  return value.kind == Kind::unknown ? Value::computed() : value;
}

Value Evaluator::method(const Expr& expr, const Value& array) {
  const std::string_view name = expr.items[0]->name;
  const bool plain = std::none_of(expr.items.begin(), expr.items.end(),
                                  [](const Expr* item) { return item->kind == ExprKind::keyword; });
  if (!plain || expr.items.size() < 2) return {};
  if (name == "astype" && expr.items.size() == 2) {
    const Type type = type_reader_.element_type(*expr.items[1]);
    return type == nullptr || !is_number(type) || is_record(array.type)
               ? Value{}
               : array_of(array.items, array.shape, type);
  }
  if (name != "reshape") return {};
  Value extents;
  extents.kind = Kind::tuple;
  for (std::size_t i = 1; i < expr.items.size(); ++i) extents.items.push_back(evaluate(*expr.items[i]));
  return reshaped(array, extents);
}

}  // namespace quern::frontend
