// SPDX-License-Identifier: Apache-2.0
// Evaluates calls at a file's own level as far as kernels use their results: numbers that Python functions
// compute from numbers, types, and arrays.
#include "frontend/module/fold_builtin.hpp"
#include "frontend/module/names.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;

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
                         (value.kind == Kind::builtin && value.builtin->home() == Home::python);
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
    return value.kind == Kind::unknown ? Value::computed() : value;
  }
  const Value callee = named.kind == ExprKind::attribute ? attribute_of(base, named.name) : evaluate(named);
  const std::string path = callee.kind != Kind::host ? dotted_text(named)
                           : callee.is_imported()    ? callee.text
                                                     : std::string();
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
  } else if (callee.kind == Kind::builtin && call.named.empty()) {
    value = fold_builtin(*callee.builtin, call.arguments);
  } else {
    value = numpy_array(path, call);
  }
  return value.kind == Kind::unknown ? Value::computed() : value;
}

}  // namespace quern::frontend
