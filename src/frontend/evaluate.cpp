// SPDX-License-Identifier: Apache-2.0
// The values that a file's own level gives to names, as far as kernels use them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/literal.hpp"
#include "frontend/names.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;
constexpr std::size_t kMostElements = std::size_t{1} << 16;
constexpr std::int64_t kMostFieldBytes = std::int64_t{1} << 20;

bool flatten_into(const Value& nested, std::size_t depth, std::vector<Value>& elements,
                  std::vector<std::int64_t>& shape) {
  if (nested.kind == Kind::array) {
    if (depth != 0) return false;
    elements = nested.items;
    shape = nested.shape;
    return true;
  }
  if (nested.kind != Kind::tuple) {
    if (!nested.is_number() || depth != shape.size()) return false;
    elements.push_back(nested);
    return true;
  }
  const auto extent = static_cast<std::int64_t>(nested.items.size());
  if (depth == shape.size()) {
    if (!elements.empty()) return false;
    shape.push_back(extent);
  }
  if (shape[depth] != extent) return false;
  return std::all_of(nested.items.begin(), nested.items.end(),
                     [&](const Value& item) { return flatten_into(item, depth + 1, elements, shape); });
}

std::string dotted_text(const Expr& expr) {
  if (expr.kind == ExprKind::name) return std::string(expr.name);
  if (expr.kind != ExprKind::attribute) return {};
  const std::string base = dotted_text(*expr.items[0]);
  return base.empty() ? base : fmt::format("{}.{}", base, expr.name);
}

Value make_array(std::vector<Value> elements, std::vector<std::int64_t> shape, Type dtype) {
  Value array;
  array.kind = Kind::array;
  array.items = std::move(elements);
  array.shape = std::move(shape);
  array.type = dtype;
  return array;
}

// np.array's dtype where none is given: the largest kind among the elements.
Type natural_dtype(const TypeTable& types, const std::vector<Value>& elements) {
  bool real = elements.empty(), integer = false;
  for (const Value& element : elements) {
    real = real || element.kind == Kind::real;
    integer = integer || element.kind == Kind::integer;
  }
  return real ? types.float64 : integer ? types.int64 : types.boolean;
}

Value filled(const Value& shape, const Value& with, Type dtype) {
  const auto extents = shape_of(shape);
  if (!extents) return {};
  std::size_t count = 1;
  for (const std::int64_t extent : *extents) {
    if (extent < 0 || (extent > 0 && count > kMostElements / static_cast<std::size_t>(extent))) return {};
    count *= static_cast<std::size_t>(extent);
  }
  return make_array(std::vector<Value>(count, with), *extents, dtype);
}

Value arange(const std::vector<Value>& arguments, Type dtype, const TypeTable& types) {
  Value start = Value::of(std::int64_t{0}), step = Value::of(std::int64_t{1}), stop;
  if (arguments.size() == 1) stop = arguments[0];
  if (arguments.size() >= 2) start = arguments[0], stop = arguments[1];
  if (arguments.size() >= 3) step = arguments[2];
  if (!start.is_number() || !stop.is_number() || !step.is_number() || step.as_real() == 0) return {};
  const double count = std::ceil((stop.as_real() - start.as_real()) / step.as_real());
  if (!(count <= static_cast<double>(kMostElements))) return {};
  const bool whole = start.kind != Kind::real && stop.kind != Kind::real && step.kind != Kind::real;
  std::vector<Value> elements;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i)
    elements.push_back(whole ? Value::of(start.integer + i * step.integer)
                             : Value::of(start.as_real() + static_cast<double>(i) * step.as_real()));
  const auto extent = static_cast<std::int64_t>(elements.size());
  return make_array(std::move(elements), {extent},
                    dtype != nullptr ? dtype
                    : whole          ? types.int64
                                     : types.float64);
}

Value linspace(const std::vector<Value>& arguments, Type dtype, const TypeTable& types) {
  if (arguments.size() != 3 || !arguments[0].is_number() || !arguments[1].is_number() ||
      arguments[2].kind != Kind::integer || arguments[2].integer < 0 ||
      arguments[2].integer > static_cast<std::int64_t>(kMostElements))
    return {};
  const double start = arguments[0].as_real(), stop = arguments[1].as_real();
  const std::int64_t count = arguments[2].integer;
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  std::vector<Value> elements;
  for (std::int64_t i = 0; i < count; ++i)
    elements.push_back(Value::of(i == count - 1 && count > 1 ? stop : start + static_cast<double>(i) * step));
  return make_array(std::move(elements), {count}, dtype != nullptr ? dtype : types.float64);
}

std::uint32_t alignment_of(Type type) {
  if (is_complex(type)) return size_of(type) / 2;
  if (!is_record(type)) return std::max(size_of(type), 1u);
  std::uint32_t widest = 1;
  for (const Field& field : type->fields) widest = std::max(widest, alignment_of(field.type));
  return widest;
}

/// np.iinfo(T).max, np.finfo(T).eps and their like.
Value limit_of(std::string_view table, Type type, std::string_view name) {
  if (table == "numpy.iinfo" && is_integer(type)) {
    const std::uint64_t ones = ~std::uint64_t{0} >> (64 - type->bits);
    const std::uint64_t most = type->is_signed ? ones >> 1 : ones;
    if (name == "bits") return Value::of(std::int64_t{type->bits});
    if (name == "min") return Value::of(type->is_signed ? -static_cast<std::int64_t>(most) - 1 : 0);
    // Beyond int64 the float says it as well as Numba does.
    if (name == "max") return most > INT64_MAX ? Value{} : Value::of(static_cast<std::int64_t>(most));
  }
  if (table != "numpy.finfo" || !is_floating(type)) return {};
  const int digits = type->brain ? 8 : type->bits == 16 ? 11 : type->bits == 32 ? 24 : 53;
  const int exponent = type->bits == 16 && !type->brain ? 16 : type->bits <= 32 ? 128 : 1024;
  const double eps = std::ldexp(1.0, 1 - digits), most = std::ldexp(2.0 - eps, exponent - 1);
  Value value;
  if (name == "eps") value = Value::of(eps);
  if (name == "max") value = Value::of(most);
  if (name == "min") value = Value::of(-most);
  if (name == "tiny" || name == "smallest_normal") value = Value::of(std::ldexp(1.0, 2 - exponent));
  if (name == "bits") return Value::of(std::int64_t{type->bits});
  if (value.kind == Kind::real && type->bits != 64) value.type = type;
  return value;
}

}  // namespace

std::optional<std::vector<std::int64_t>> shape_of(const Value& value) {
  if (value.kind == Kind::integer) return std::vector<std::int64_t>{value.integer};
  if (value.kind != Kind::tuple) return std::nullopt;
  std::vector<std::int64_t> shape;
  for (const Value& item : value.items) {
    if (item.kind != Kind::integer) return std::nullopt;
    shape.push_back(item.integer);
  }
  return shape;
}

bool fits_record(const std::vector<std::int64_t>& shape, Type element) {
  std::int64_t bytes = std::max<std::int64_t>(size_of(element), 1);
  for (const std::int64_t extent : shape) {
    if (extent <= 0 || extent > kMostFieldBytes / bytes) return false;
    bytes *= extent;
  }
  return true;
}

bool flatten(const Value& nested, std::vector<Value>& elements, std::vector<std::int64_t>& shape) {
  return flatten_into(nested, 0, elements, shape);
}

Value Names::evaluate(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::integer:
    case ExprKind::real:
    case ExprKind::imaginary:
    case ExprKind::boolean: {
      const Value value = literal_value(expr);
      return value.is_any_number() ? value : Value::host("a number beyond 128 bits");
    }
    case ExprKind::none: {
      Value value;
      value.kind = Kind::none;
      return value;
    }
    case ExprKind::string: {
      Value value;
      value.kind = Kind::string;
      value.text = expr.name;
      return value;
    }
    case ExprKind::tuple:
    case ExprKind::list:
      return evaluate_items(expr);
    case ExprKind::name:
      return global(expr.name);
    case ExprKind::attribute:
      return evaluate_name(expr);
    case ExprKind::subscript:
      return evaluate_subscript(expr);
    case ExprKind::call:
      return evaluate_call(expr);
    case ExprKind::unary:
      return fold_unary(expr.op, evaluate(*expr.items[0]));
    case ExprKind::binary:
      return evaluate_binary(expr);
    default:
      return Value::host("a value that only Python computes");
  }
}

Value Names::evaluate_binary(const Expr& expr) {
  const Value left = evaluate(*expr.items[0]), right = evaluate(*expr.items[1]);
  Value result = fold(expr.op, left, right);
  if (result.kind == Kind::unknown) result = Value::host("a value that only Python computes");
  return result;
}

Value Names::evaluate_items(const Expr& expr) {
  Value tuple;
  tuple.kind = Kind::tuple;
  for (const Expr* item : expr.items) {
    tuple.items.push_back(evaluate(*item));
    if (tuple.items.back().kind == Kind::unknown || tuple.items.back().kind == Kind::host)
      return Value::host("a value that only Python computes");
  }
  return tuple;
}

/// module.name, array.shape, dtype attributes.
Value Names::evaluate_name(const Expr& expr) {
  if (const Expr& call = *expr.items[0]; call.kind == ExprKind::call && call.items.size() == 2) {
    const Value callee = evaluate(*call.items[0]);
    const Type type =
        callee.kind == Kind::host && callee.text.ends_with("info") ? element_type(*call.items[1]) : nullptr;
    const Value limit = type == nullptr ? Value{} : limit_of(callee.text, type, expr.name);
    if (limit.kind != Kind::unknown) return limit;
  }
  const Value base = evaluate(*expr.items[0]);
  if (base.kind == Kind::module_ && is_enumeration(base)) return member_of(base, expr.name);
  if (base.kind == Kind::module_) return evaluate_path(canonical(fmt::format("{}.{}", base.text, expr.name)));
  if (base.is_number() && !base.text.empty() && expr.name == "value") return base;
  if (base.kind == Kind::array && expr.name == "shape") {
    Value shape;
    shape.kind = Kind::tuple;
    for (const std::int64_t extent : base.shape) shape.items.push_back(Value::of(extent));
    return shape;
  }
  if (base.kind == Kind::array && expr.name == "size")
    return Value::of(static_cast<std::int64_t>(base.items.size()));
  if (base.kind == Kind::host && base.text.find(' ') == std::string::npos)
    return Value::host(fmt::format("{}.{}", base.text, expr.name));
  return Value::host("a value that only Python computes");
}

Value Names::evaluate_subscript(const Expr& expr) {
  const Value base = evaluate(*expr.items[0]);
  const Value index = expr.items[1]->kind == ExprKind::slice ? Value{} : evaluate(*expr.items[1]);
  if (base.kind == Kind::tuple && index.kind == Kind::integer) {
    const auto count = static_cast<std::int64_t>(base.items.size());
    const std::int64_t at = index.integer < 0 ? index.integer + count : index.integer;
    if (at >= 0 && at < count) return base.items[static_cast<std::size_t>(at)];
  }
  if (base.kind == Kind::dtype) {
    Value value = base;
    value.type = array_type(expr);
    return value;
  }
  return Value::host("a value that only Python computes");
}

Value Names::evaluate_call(const Expr& expr) {
  const Value callee = evaluate(*expr.items[0]);
  std::vector<Value> arguments;
  Type dtype = nullptr;
  bool align = false;
  std::string path = dotted_text(*expr.items[0]);
  if (callee.kind == Kind::host) path = callee.text;
  const Expr* first = nullptr;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    if (item.kind == ExprKind::keyword) {
      const Value value = evaluate(*item.items[0]);
      if (item.name == "dtype" && value.kind == Kind::dtype) dtype = value.type;
      if (item.name == "align") align = value.is_number() && value.as_real() != 0;
      continue;
    }
    if (first == nullptr) first = &item;
    arguments.push_back(evaluate(item));
    if (i > 1 && arguments.back().kind == Kind::dtype) dtype = arguments.back().type, arguments.pop_back();
  }
  if (path == "numba.cuda.declare_device") return declare_device(expr);
  if (path == "numpy.dtype" && first != nullptr) return record_dtype(*first, align);
  if (path == "numba.from_dtype" && arguments.size() == 1 && arguments[0].kind == Kind::dtype)
    return arguments[0];
  if (callee.kind == Kind::dtype && arguments.size() == 1 && arguments[0].is_number()) {
    Value typed = arguments[0];
    if (is_floating(callee.type) && typed.kind != Kind::real) typed = Value::of(typed.as_real());
    if (is_integer(callee.type) && typed.kind == Kind::real)
      typed = Value::of(static_cast<std::int64_t>(typed.real));
    typed.type = callee.type;
    return typed;
  }
  if (callee.kind == Kind::builtin && arguments.size() == 1 && arguments[0].is_number()) {
    if (callee.builtin->rule == Rule::to_int && std::abs(arguments[0].as_real()) < 9e18)
      return Value::of(static_cast<std::int64_t>(arguments[0].as_real()));
    if (callee.builtin->rule == Rule::to_float) return Value::of(arguments[0].as_real());
    if (callee.builtin->path == "math.sqrt") return Value::of(std::sqrt(arguments[0].as_real()));
  }
  if (callee.kind == Kind::builtin && callee.builtin->rule == Rule::len && arguments.size() == 1)
    return Value::of(arguments[0].kind == Kind::array && !arguments[0].shape.empty()
                         ? arguments[0].shape[0]
                         : static_cast<std::int64_t>(arguments[0].items.size()));
  Value array = numpy_array(path, arguments, dtype);
  return array.kind == Kind::unknown ? Value::host("a value that only Python computes") : array;
}

Value Names::numpy_array(std::string_view path, const std::vector<Value>& arguments, Type dtype) {
  const Type real = dtype != nullptr ? dtype : types_.float64;
  if ((path == "numpy.array" || path == "numpy.asarray") && !arguments.empty()) {
    std::vector<Value> elements;
    std::vector<std::int64_t> shape;
    if (!flatten(arguments[0], elements, shape)) return {};
    const Type natural =
        arguments[0].kind == Kind::array ? arguments[0].type : natural_dtype(types_, elements);
    return make_array(std::move(elements), std::move(shape), dtype != nullptr ? dtype : natural);
  }
  if (path == "numpy.arange") return arange(arguments, dtype, types_);
  if (path == "numpy.linspace") return linspace(arguments, dtype, types_);
  if (path == "numpy.zeros" && arguments.size() == 1) return filled(arguments[0], Value::of(0.0), real);
  if (path == "numpy.ones" && arguments.size() == 1) return filled(arguments[0], Value::of(1.0), real);
  if (path == "numpy.full" && arguments.size() == 2 && arguments[1].is_number())
    return filled(arguments[0], arguments[1],
                  dtype != nullptr ? dtype : natural_dtype(types_, {arguments[1]}));
  return {};
}

/// cuda.declare_device('mul', 'float32(float32, float32)', link='mul.cu', abi='c'): a function of linked CUDA
/// C++.
Value Names::declare_device(const Expr& call) {
  if (call.items.size() < 3 || call.items[1]->kind != ExprKind::string)
    return Value::host("a function that cuda.declare_device does not name");
  Declaration& declaration = declarations_.emplace_back();
  declaration.external = call.items[1]->name;
  declaration.name = declaration.external;
  declaration.place = call.place;
  declaration.role = Role::device;
  SignatureTypes signature;
  const std::size_t before = report_.diagnostics().size();
  if (read_signature(*call.items[2], signature) && signature.result == nullptr)
    report_.error(call.items[2]->place, "signature",
                  "a declared function has a result: float32(float32, float32)");
  for (const Type type : signature.parameters)
    if (!is_number(type) && report_.diagnostics().size() == before)
      report_.error(call.items[2]->place, "unsupported",
                    fmt::format("a linked function takes numbers, not {}", text_of(type)),
                    "write what works on arrays in Kernel Python, or the kernel in CUDA C++");
  declaration.broken = report_.diagnostics().size() != before;
  declaration.signatures = {std::move(signature)};
  for (std::size_t i = 3; i < call.items.size(); ++i) {
    const Expr& item = *call.items[i];
    if (item.kind != ExprKind::keyword) continue;
    if (item.name == "link") read_links(*item.items[0], declaration.options.links);
    if (item.name == "abi")
      declaration.c_abi = item.items[0]->kind == ExprKind::string && item.items[0]->name == "c";
  }
  Value value;
  value.kind = Kind::function;
  value.function = &declaration;
  return value;
}

/// link='f.cu', link=['f.cu', 'g.cu']
void Names::read_links(const Expr& expr, std::vector<std::string>& out) {
  constexpr std::string_view kSources[] = {".cu", ".cuh", ".h", ".hpp", ".inl"};
  const Value value = evaluate(expr);
  std::vector<Value> files = {value};
  if (value.kind == Kind::tuple) files = value.items;
  for (const Value& file : files) {
    const bool source = file.kind == Kind::string &&
                        std::any_of(std::begin(kSources), std::end(kSources),
                                    [&](std::string_view suffix) { return file.text.ends_with(suffix); });
    if (source && file.text.find_first_of("\"\n\\") == std::string::npos) {
      out.push_back(file.text);
      continue;
    }
    report_.error(expr.place, "unsupported",
                  file.kind == Kind::string
                      ? fmt::format("'{}' cannot be linked: it is no CUDA C++ source", file.text)
                      : std::string("what is linked is not known here"),
                  "link files of CUDA C++: link='functions.cu'");
  }
}

/// np.dtype([('x', np.float32), ('y', 'i4', (3,))], align=True)
Value Names::record_dtype(const Expr& fields, bool align) {
  Value value;
  value.kind = Kind::dtype;
  if (fields.kind != ExprKind::list) {
    value = evaluate(fields);
    return value.kind == Kind::dtype ? value : Value::host("a value that only Python computes");
  }
  std::vector<Field> list;
  std::uint32_t offset = 0, widest = 1;
  for (const Expr* item : fields.items) {
    const std::size_t parts = item->items.size();
    if (item->kind != ExprKind::tuple || parts < 2 || parts > 3 || item->items[0]->kind != ExprKind::string)
      return Value::host("a record type that only Python computes");
    Field field{std::string(item->items[0]->name), element_type(*item->items[1]), 0, {}};
    const auto shape = parts == 3 ? shape_of(evaluate(*item->items[2])) : std::vector<std::int64_t>{};
    if (field.type == nullptr || !shape || !fits_record(*shape, field.type))
      return Value::host("a record type that only Python computes");
    field.shape = *shape;
    const std::uint32_t alignment = alignment_of(field.type);
    if (align) offset = (offset + alignment - 1) / alignment * alignment;
    widest = std::max(widest, alignment);
    field.offset = offset;
    offset += size_of(field);
    list.push_back(std::move(field));
  }
  if (align) offset = (offset + widest - 1) / widest * widest;
  value.type = types_.record(std::move(list), offset);
  return value;
}

/// np.float32, float32, 'f4', or a record type; null for what is none.
Type Names::element_type(const Expr& expr) {
  const Value value = evaluate(expr);
  if (value.kind == Kind::dtype && (is_number(value.type) || is_record(value.type))) return value.type;
  if (value.kind != Kind::string) return nullptr;
  std::string_view word = value.text;
  if (!word.empty() && (word[0] == '<' || word[0] == '=')) word.remove_prefix(1);
  return types_.scalar_named(word);
}

}  // namespace quern::frontend
