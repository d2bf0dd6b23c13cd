// SPDX-License-Identifier: Apache-2.0
// Type inference for expressions.
#include <algorithm>

#include "frontend/analyse/index_types.hpp"
#include "frontend/analyse/infer.hpp"

namespace quern::frontend {
namespace {

struct Attribute {
  std::string_view name;
  std::string_view hint;
};
// Attributes that arrays have on the host but not in kernels.
constexpr Attribute kHostAttributes[] = {
    {"sum", "write a loop, or reduce through shared memory"},
    {"copy", "copy the elements one by one"},
    {"reshape", "index with computed numbers"},
    {"astype", "convert elements: float32(a[i])"},
    {"append", "arrays have a fixed size; count with cuda.atomic.add"},
    {"fill", "write a loop"},
    {"mean", "write a loop"},
    {"max", "write a loop"},
    {"min", "write a loop"},
    {"flatten", "index with computed numbers"},
    {"copy_to_host", "this is a call of the host program"},
    {"length", "its length is len(a), or a.size"},
    {"lenght", "its length is len(a), or a.size"},
    {"len", "its length is len(a), or a.size"},
};
constexpr std::string_view kArrayAttributes[] = {"shape",   "ndim",     "size",   "dtype",
                                                 "strides", "itemsize", "nbytes", "T"};

bool is_ordering(Tok op) {
  return op == Tok::less || op == Tok::less_equal || op == Tok::greater || op == Tok::greater_equal;
}

/// For tuples, checks whether each pair of items can be compared. If the lengths differ, the remaining items
/// are ignored.
bool are_comparable(const TypeTable& types, Tok op, Type a, Type b) {
  if (!is_tuple(a) || !is_tuple(b)) return operation(types, op, a, b).has_value();
  if (is_valueless(a) || is_valueless(b)) return false;
  if (a->items.size() != b->items.size() && !is_ordering(op)) return true;
  for (std::size_t i = 0; i < std::min(a->items.size(), b->items.size()); ++i)
    if (!are_comparable(types, op, a->items[i], b->items[i])) return false;
  return true;
}

}  // namespace

Type Inference::expression(const Expr& expr) {
  specialisation_.constants[expr.id] = {};
  const Type type = scope_.refused.contains(expr.id) ? types_.error : compute(expr);
  if (type == nullptr && reporting_ && !report_.failed())
    report_.error(expr.place, "types", "cannot determine the type of this expression",
                  "it depends on itself only; give the first value a definite type");
  return specialisation_.types[expr.id] = type == nullptr && reporting_ ? types_.error : type;
}

Type Inference::compute(const Expr& expr) {
  Value& constant = specialisation_.constants[expr.id];
  switch (expr.kind) {
    case ExprKind::name:
      return name(expr);
    case ExprKind::integer:
    case ExprKind::real:
    case ExprKind::imaginary:
    case ExprKind::boolean:
      if (const Type known = literal(expr)) return known;
      return fail(expr.place, "types", "integers have 64 bits", "this number does not fit an integer");
    case ExprKind::none:
      return types_.none;
    case ExprKind::ellipsis:
      return types_.ellipsis;
    case ExprKind::string:
      constant.kind = Value::Kind::string;
      constant.text = expr.name;
      return types_.string;
    case ExprKind::tuple:
      return tuple(expr);
    case ExprKind::list:
      for (const Expr* item : expr.items) expression(*item);
      return fail(expr.place, "unsupported", "use a tuple, or cuda.local.array(n, dtype)",
                  "kernels have no lists");
    case ExprKind::attribute:
      return attribute(expr);
    case ExprKind::subscript:
      return IndexTypes(*this).subscript(expr);
    case ExprKind::slice:
      return IndexTypes(*this).slice(expr);
    case ExprKind::call:
      return call(expr);
    case ExprKind::keyword:
      return expression(*expr.items[0]);
    case ExprKind::unary:
      if (const Type known = is_literal(expr) ? literal(expr) : nullptr) return known;
      return unary(expr);
    case ExprKind::binary:
      if (const Type known = is_literal(expr) ? literal(expr) : nullptr) return known;
      return binary(expr, expr.op, *expr.items[0], *expr.items[1]);
    case ExprKind::compare:
      return compare(expr);
    case ExprKind::logical:
      return logical(expr);
    case ExprKind::conditional:
      return conditional(expr);
    case ExprKind::lambda:
      return types_.function(&program_.declaration_of(*expr.function));
    case ExprKind::unsupported:
    case ExprKind::broken:
      return types_.error;
  }
  return nullptr;
}

Type Inference::name(const Expr& expr) {
  const std::uint32_t version = scope_.load(expr);
  if (version != kNoVersion) {
    specialisation_.constants[expr.id] = specialisation_.version_constants[version];
    if (scope_.versions[version].kind == Version::Kind::undefined) return types_.error;
    return specialisation_.version_types[version];
  }
  const Value& value = program_.names().global(expr.name);
  if (value.kind == Value::Kind::unknown) {
    if (scope_.skipped_names.contains(expr.name)) return types_.error;
    if (!reporting_) return nullptr;  // the search for similar names takes time
    if (const Place later = program_.names().bound_later(expr.name); later.end > 0) {
      const Type type =
          fail(expr.place, "unknown-name", "bind it before the kernel, or leave the signature out",
               "'{}' is not bound where the kernel's signature compiles it", expr.name);
      note(later, fmt::format("'{}' is bound here", expr.name));
      return type;
    }
    std::vector<std::string_view> known = program_.names().all_names();
    for (const Local& local : scope_.locals) known.push_back(local.name);
    const std::string_view near = closest(expr.name, known);
    const Type type =
        fail(expr.place, "unknown-name", near.empty() ? "" : fmt::format("did you mean '{}'?", near),
             "the name '{}' is not defined", expr.name);
    const Place place = near.empty() ? Place{} : program_.names().place_of(near);
    if (place.end > place.begin) note(place, fmt::format("'{}' is defined here", near));
    return type;
  }
  return from_value(value, expr);
}

namespace {

/// The type of a tuple of known values; its items may be tuples.
Type tuple_of(TypeTable& types, const Value& tuple) {
  std::vector<Type> items;
  for (const Value& item : tuple.items)
    items.push_back(item.kind == Value::Kind::tuple   ? tuple_of(types, item)
                    : item.kind == Value::Kind::dtype ? types.dtype(item.type)
                    : item.is_any_number() && type_of_number(types, item) != nullptr
                        ? type_of_number(types, item)
                    : item.type != nullptr               ? item.type
                    : item.kind == Value::Kind::none     ? types.none
                    : item.kind == Value::Kind::function ? types.function(item.function)
                    : item.kind == Value::Kind::builtin && item.builtin->facts().syntax == Syntax::dim3
                        ? types.dim3(item.builtin, item.builtin->shown())
                    : item.kind == Value::Kind::builtin && item.builtin->facts().syntax != Syntax::integer
                        ? types.builtin(item.builtin, item.builtin->shown())
                        : types.error);
  return types.tuple(std::move(items));
}

/// True if these types can be items of one tuple: values cannot be mixed with valueless types.
bool are_items(const std::vector<Type>& items) {
  const auto count = static_cast<std::size_t>(std::count_if(items.begin(), items.end(), is_valueless));
  return count == 0 || count == items.size();
}

}  // namespace

/// The type of a value that is defined at the level of the file.
Type Inference::from_value(const Value& value, const Expr& expr) {
  Value& constant = specialisation_.constants[expr.id];
  if (value.kind != Value::Kind::array) constant = value;
  switch (value.kind) {
    case Value::Kind::boolean:
      return types_.boolean;
    case Value::Kind::integer:
    case Value::Kind::big:
    case Value::Kind::real:
    case Value::Kind::complex:
      if (const Type type = type_of_number(types_, value)) return type;
      return fail(expr.place, "types", "integers have 64 bits", "'{}' does not fit an integer", shown(expr));
    case Value::Kind::none:
      return types_.none;
    case Value::Kind::string:
      return types_.string;
    case Value::Kind::tuple: {
      const Type tuple = tuple_of(types_, value);
      if (are_items(tuple->items) && std::none_of(tuple->items.begin(), tuple->items.end(), is_error))
        return tuple;
      return fail(expr.place, "unsupported", "keep what kernels use in a tuple of its own",
                  "'{}' holds more than numbers, or more than functions and types", shown(expr));
    }
    case Value::Kind::array:
      if (value.items.empty())
        return fail(expr.place, "constant", "give it an element",
                    "'{}' has no elements, and C++ no such arrays", shown(expr));
      constant.kind = value.kind;  // without the elements, which may be many
      constant.type = value.type;
      constant.shape = value.shape;
      specialisation_.storages.insert_or_assign(
          expr.id,
          Storage{Space::constant, value.type, value.shape, &program_.names().global(expr.name), expr.name});
      return types_.array(value.type, static_cast<unsigned>(value.shape.size()), 'C', true);
    case Value::Kind::dtype:
      return types_.dtype(value.type);
    case Value::Kind::builtin:
      if (value.builtin->facts().syntax == Syntax::dim3)
        return types_.dim3(value.builtin, value.builtin->shown());
      if (value.builtin->facts().syntax == Syntax::integer) return types_.int32;
      return types_.builtin(value.builtin, value.builtin->shown());
    case Value::Kind::module_:
      return types_.module_(value.text);
    case Value::Kind::function:
      return types_.function(value.function);
    case Value::Kind::host:
      return host_value(value, expr);
    case Value::Kind::unknown:
      break;
  }
  return types_.error;
}

/// Reports a value of the host program, or a value that is not certain.
Type Inference::host_value(const Value& value, const Expr& expr) {
  if (!reporting_) return nullptr;
  const bool called = &expr == callee_;
  const bool imported = value.is_imported();
  if (value.doubt != nullptr) {
    Doubt doubt = *value.doubt;
    if (called && doubt.may_be_bound) doubt.hint = kFunctionHint;
    program_.names().report_doubt(doubt, shown(expr), expr.place);
    return types_.error;
  }
  if (imported && !program_.names().tell(value.text)) return types_.error;  // report each name once
  const bool computed = value.host_kind == HostKind::computed;
  std::string hint = "kernels see module-level numbers, tuples, NumPy arrays and decorated functions";
  if (called)
    hint = "write the function in this file, with @cuda.jit(device=True) above it";
  else if (imported && expr.kind == ExprKind::name && program_.names().is_member(expr.name))
    hint = fmt::format("if it is a number or an array, the program can give {} a value with Module::bind",
                       expr.name);
  else if (imported)
    hint = fmt::format(
        "kernels use math, numpy, numba and what this file defines: write what they need of '{}' in the file",
        value.text);
  else if (computed && expr.kind == ExprKind::name)
    hint = fmt::format("no Python runs here; the program can give {} a value with Module::bind", expr.name);
  fail(expr.place, "host-value", std::move(hint), "'{}' is {}, which a kernel cannot use", shown(expr),
       imported ? "the host's " + value.text : value.text);
  if (expr.kind == ExprKind::name) {
    const Place place = program_.names().place_of(expr.name);
    if (place.end > place.begin) note(place, fmt::format("'{}' is bound here", expr.name));
  }
  return types_.error;
}

/// The type of the method that builtins.def has at this path.
Type Inference::method(std::string_view path) {
  const Builtin* row = find_builtin(path);
  return types_.builtin(row, row->shown());
}

/// np.iinfo(np.int32).max and similar: a constant of NumPy.
Type Inference::numpy_limit(const Expr& expr) {
  const Expr& base = *expr.items[0];
  if (base.kind != ExprKind::call || base.items[0]->kind != ExprKind::attribute ||
      !base.items[0]->name.ends_with("info"))
    return nullptr;
  const Value value = program_.names().evaluate(expr);
  return value.is_number() ? from_value(value, expr) : nullptr;
}

Type Inference::module_attribute(const Expr& expr) {
  const Value& module = specialisation_.constant(*expr.items[0]);
  // A missing attribute is reported once, in the last walk.
  Report quiet(report_.source());
  if (!reporting_) std::swap(quiet, report_);
  const Value value = program_.names().attribute(module, expr.name, expr.place);
  if (!reporting_) std::swap(quiet, report_);
  if (value.kind == Value::Kind::host) return refused();
  return from_value(value, expr);
}

Type Inference::attribute(const Expr& expr) {
  if (const Type limit = numpy_limit(expr)) return limit;
  const Type base = expression(*expr.items[0]);
  if (base == nullptr || is_error(base)) return base;
  switch (base->kind) {
    case TypeKind::module_:
      return module_attribute(expr);
    case TypeKind::dim3:
      if (expr.name == "x" || expr.name == "y" || expr.name == "z") return types_.int32;
      return fail(expr.place, "unknown-name", "its dimensions are x, y and z", "'{}' has no '{}'",
                  shown(*expr.items[0]), expr.name);
    case TypeKind::array:
      return array_attribute(expr, base);
    case TypeKind::dtype:
      if (expr.name != "type") break;  // a.dtype.type is the same as a.dtype in kernels
      specialisation_.constants[expr.id] = specialisation_.constant(*expr.items[0]);
      return base;
    case TypeKind::record:
      return IndexTypes(*this).record_field(base, expr.name, expr.place);
    case TypeKind::vector:
      if (expr.name.size() == 1 &&
          std::string_view("xyzw").substr(0, base->ndim).find(expr.name) != std::string_view::npos)
        return base->element;
      return fail(
          expr.place, "unknown-name",
          fmt::format("its parts are {}", std::string_view("x, y, z, w").substr(0, 3u * base->ndim - 2)),
          "{} has no '{}'", text_of(base), expr.name);
    case TypeKind::group:
      if (expr.name == "sync") return method("numba.cuda.cg.GridGroup.sync");
      break;
    case TypeKind::complex:
      if (expr.name == "conjugate") return method("builtins.complex.conjugate");
      if (expr.name == "real" || expr.name == "imag") return types_.floating(base->bits / 2u);
      break;
    case TypeKind::integer:
    case TypeKind::floating:
    case TypeKind::boolean:
      if (expr.name == "conjugate" && base != types_.boolean) return method("builtins.complex.conjugate");
      if (expr.name == "real" || expr.name == "imag") return base;
      if (const Value& known = specialisation_.constant(*expr.items[0]);
          expr.name == "value" && !known.text.empty()) {
        specialisation_.constants[expr.id] = known;
        return base;
      }
      break;
    default:
      break;
  }
  return fail(expr.place, "unknown-name", "", "{} has no attribute '{}'", text_of(base), expr.name);
}

Type Inference::array_attribute(const Expr& expr, Type base) {
  const std::string_view name = expr.name;
  if (name == "shape" || name == "strides") return types_.tuple(std::vector<Type>(base->ndim, types_.int64));
  if (name == "ndim") {
    specialisation_.constants[expr.id] = Value::of(std::int64_t{base->ndim});
    return types_.int64;
  }
  if (name == "itemsize") {
    specialisation_.constants[expr.id] = Value::of(std::int64_t{size_of(base->element)});
    return types_.int64;
  }
  if (name == "size" || name == "nbytes") return types_.int64;
  if (name == "dtype") {
    specialisation_.constants[expr.id].kind = Value::Kind::dtype;
    specialisation_.constants[expr.id].type = base->element;
    return types_.dtype(base->element);
  }
  if (name == "T") {
    const char layout = base->layout == 'C' ? 'F' : base->layout == 'F' ? 'C' : 'A';
    return types_.array(base->element, base->ndim, layout, base->read_only);
  }
  if (is_number(base->element) && name == "real" && !is_complex(base->element)) return base;
  if (is_complex(base->element) && (name == "real" || name == "imag"))
    return types_.array(types_.floating(base->element->bits / 2u), base->ndim, 'A', base->read_only);
  if (base->element->kind == TypeKind::record)
    for (const Field& field : base->element->fields)
      if (field.name == name) return IndexTypes(*this).field_view(base, field, expr.place);
  for (const Attribute& row : kHostAttributes)
    if (row.name == name)
      return fail(expr.place, "unknown-name", std::string(row.hint), "arrays have no '{}' in kernels", name);
  const std::vector<std::string_view> known(std::begin(kArrayAttributes), std::end(kArrayAttributes));
  const std::string_view near = closest(name, known);
  return fail(expr.place, "unknown-name",
              near.empty() ? "kernels see shape, ndim, size, dtype, strides, itemsize, nbytes and T"
                           : fmt::format("did you mean '{}'?", near),
              "arrays have no '{}' in kernels", name);
}

Type Inference::tuple(const Expr& expr) {
  std::vector<Type> items;
  Value value;
  value.kind = Value::Kind::tuple;
  for (const Expr* item : expr.items) {
    items.push_back(expression(*item));
    if (items.back() == nullptr || is_error(items.back())) {
      for (const Expr* other : expr.items)
        if (other->id > item->id) expression(*other);
      return items.back();
    }
    value.items.push_back(specialisation_.constant(*item));
  }
  const bool known = std::all_of(value.items.begin(), value.items.end(),
                                 [](const Value& item) { return item.kind != Value::Kind::unknown; });
  if (known) specialisation_.constants[expr.id] = std::move(value);
  if (!are_items(items))
    return fail(expr.place, "unsupported", "use two tuples",
                "a tuple cannot hold functions, types or None beside values");
  const Type type = types_.tuple(std::move(items));
  if (type->weight > kMostItems)
    return fail(expr.place, "types", "use an array",
                "a tuple has at most {} items, those of its items included", kMostItems);
  return type;
}

Type Inference::unary(const Expr& expr) {
  const Type operand = expression(*expr.items[0]);
  if (operand == nullptr || is_error(operand)) return operand;
  const Value& known = specialisation_.constant(*expr.items[0]);
  if (known.is_number()) specialisation_.constants[expr.id] = fold_unary(expr.op, known);
  if (specialisation_.constant(expr).kind == Value::Kind::big) specialisation_.constants[expr.id] = {};
  if (expr.op == Tok::k_not && (is_tuple(operand) || operand == types_.none)) return types_.boolean;
  const Type type = is_number(operand) ? unary_result(types_, expr.op, operand) : nullptr;
  if (type != nullptr) return type;
  return fail(expr.place, "types",
              expr.op == Tok::invert && is_floating(operand) ? "'~' is for whole numbers" : "",
              "'{}' does not take {}", text_of(expr.op), text_of(operand));
}

Type Inference::binary(const Expr& expr, Tok op, const Expr& left, const Expr& right) {
  const Type a = expression(left), b = expression(right);
  if (a == nullptr || b == nullptr) return nullptr;
  const Type type = binary_types(expr, op, a, b);
  specialisation_.constants[expr.id] =
      computed(op, specialisation_.constant(left), specialisation_.constant(right), type);
  return type;
}

Type Inference::binary_types(const Expr& expr, Tok op, Type left, Type right) {
  if (left == nullptr || right == nullptr) return nullptr;
  if (is_error(left) || is_error(right)) return types_.error;
  if (const auto found = operation(types_, op, left, right)) return found->result;
  if (is_tuple(left) && is_tuple(right) && op == Tok::plus) {
    if (left->weight + right->weight > kMostItems)
      return fail(expr.place, "types", "use an array",
                  "a tuple has at most {} items, those of its items included", kMostItems);
    std::vector<Type> items = left->items;
    items.insert(items.end(), right->items.begin(), right->items.end());
    return types_.tuple(std::move(items));
  }
  std::string hint;
  if (is_array(left) || is_array(right)) hint = "kernels compute on elements: index the arrays";
  if (left->kind == TypeKind::function || right->kind == TypeKind::function) hint = "call the function: f(x)";
  if (op == Tok::at) hint = "write the sum over products as a loop";
  if (left->kind == TypeKind::string || right->kind == TypeKind::string) hint = "strings can only be printed";
  return fail(expr.place, "types", hint, "'{}' does not take {} and {}", text_of(op), text_of(left),
              text_of(right));
}

Type Inference::compare(const Expr& expr) {
  std::vector<Type> types;
  for (const Expr* item : expr.items) types.push_back(expression(*item));
  if (expr.ops.size() == 1)
    specialisation_.constants[expr.id] =
        fold(expr.ops[0], specialisation_.constant(*expr.items[0]), specialisation_.constant(*expr.items[1]));
  for (std::size_t i = 0; i < expr.ops.size(); ++i) {
    const Type a = types[i], b = types[i + 1];
    if (a == nullptr || b == nullptr || is_error(a) || is_error(b)) continue;
    const Tok op = expr.ops[i];
    const Place place = join(expr.items[i]->place, expr.items[i + 1]->place);
    const bool with_none = a == types_.none || b == types_.none;
    if (op == Tok::k_is || op == Tok::is_not) {
      const bool truths = a == types_.boolean && b == types_.boolean;
      if (!with_none && !truths)
        fail(place, "types", op == Tok::k_is ? "compare with '=='" : "compare with '!='",
             "'{}' is only for None and for truth values in kernels", text_of(op));
      continue;
    }
    if (op == Tok::k_in || op == Tok::not_in) {
      const bool in_range = b->kind == TypeKind::range && expr.items[i + 1]->kind == ExprKind::call &&
                            specialisation_.type(*expr.items[i + 1]->items[0])->kind == TypeKind::builtin;
      if (in_range && is_integral(a)) continue;
      if (is_tuple(b) && is_number(a) && std::all_of(b->items.begin(), b->items.end(), [&](Type item) {
            return operation(types_, Tok::equal, a, item).has_value();
          }))
        continue;
      fail(place, "types", "", "'{}' looks into tuples of numbers and ranges, not into {}", text_of(op),
           text_of(b));
      continue;
    }
    if (with_none && !is_ordering(op)) continue;
    if (operation(types_, op, a, b)) continue;
    if (is_tuple(a) && is_tuple(b) && are_comparable(types_, op, a, b)) continue;
    fail(place, "types", is_array(a) || is_array(b) ? "compare elements: index the arrays" : "",
         "'{}' does not compare {} and {}", text_of(op), text_of(a), text_of(b));
  }
  return types_.boolean;
}

/// The value of `a and b` is one of its operands, as in Python.
Type Inference::logical(const Expr& expr) {
  Type result = nullptr;
  std::vector<const Expr*> left;
  for (const Expr* item : expr.items) {
    const Type type = expression(*item);
    const std::optional<bool> known = item == expr.items.back() ? std::nullopt : known_.outcome(*item);
    if (known == (expr.op == Tok::k_and)) continue;  // this operand is never the value of the expression
    left.push_back(item);
    if (type != nullptr && !is_error(type)) {
      if (is_number(type))
        result = unify(types_, result, type);
      else
        fail(item->place, "types", "", "'{}' does not take {}", text_of(expr.op), text_of(type));
    }
    if (known) break;  // if this operand is evaluated, it is the value, and later operands are unreachable
  }
  if (left.size() != expr.items.size()) specialisation_.left_operands[expr.id] = std::move(left);
  return result;
}

Type Inference::conditional(const Expr& expr) {
  condition(*expr.items[0]);
  if (const std::optional<bool> known = known_.outcome(*expr.items[0])) {
    specialisation_.known_choices[expr.id] = *known;
    return expression(*expr.items[*known ? 1 : 2]);
  }
  const Type a = expression(*expr.items[1]), b = expression(*expr.items[2]);
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  const Type met = unify(types_, a, b);
  if (met != nullptr && (met == types_.none || !is_valueless(met))) return met;
  if (is_valueless(a) && is_valueless(b))
    return fail(expr.place, "types", "choose between what they give: f(x) if a else g(x)",
                "which of two functions or types this is must be known");
  return fail(expr.place, "types", "give both the same type", "this is {} or {}", text_of(a), text_of(b));
}

bool InferenceContext::wants(const Expr& expr, Type type, bool fits, std::string_view wanted) {
  if (fits || is_error(type)) return fits;
  fail(expr.place, "types", "", "{}, not {}", wanted, text_of(type));
  return false;
}

}  // namespace quern::frontend
