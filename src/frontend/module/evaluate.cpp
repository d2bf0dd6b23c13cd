// SPDX-License-Identifier: Apache-2.0
// The values that a file's own level gives to names, as far as kernels use them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/module/decide.hpp"
#include "frontend/module/names.hpp"
#include "frontend/values/literal.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;
constexpr std::int64_t kMostFieldBytes = std::int64_t{1} << 20;

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
    if (name == "max") return Value::of(BigInteger::of_unsigned(most));
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
      for (auto inner = inner_names_.rbegin(); inner != inner_names_.rend(); ++inner)
        if (inner->first == expr.name) return inner->second;
      return global(expr.name);
    case ExprKind::attribute:
      return evaluate_name(expr);
    case ExprKind::subscript:
      return evaluate_subscript(expr);
    case ExprKind::call:
      return evaluate_call(expr);
    case ExprKind::unary: {
      const Value value = fold_unary(expr.op, evaluate(*expr.items[0]));
      return value.is_any_number() ? value : Value::computed();
    }
    case ExprKind::binary:
      return evaluate_binary(expr);
    case ExprKind::compare:
      return evaluate_compare(expr);
    case ExprKind::logical:
    case ExprKind::conditional:
      return evaluate_choice(expr);
    case ExprKind::unsupported:
      return expr.items.size() == 3 ? comprehension(expr) : Value::computed();
    default:
      return Value::computed();
  }
}

std::string dotted_text(const Expr& expr) {
  if (expr.kind == ExprKind::name) return std::string(expr.name);
  if (expr.kind != ExprKind::attribute) return {};
  const std::string base = dotted_text(*expr.items[0]);
  return base.empty() ? base : base + "." + std::string(expr.name);
}

Value Names::evaluate_binary(const Expr& expr) {
  const Value left = evaluate(*expr.items[0]), right = evaluate(*expr.items[1]);
  Value result = fold(expr.op, left, right);
  if (result.kind == Kind::unknown) result = fold_single(types_, expr.op, left, right);
  if (left.kind == Kind::array || right.kind == Kind::array) result = evaluate_elements(expr, left, right);
  if (expr.op == Tok::plus && left.kind == Kind::tuple && right.kind == Kind::tuple &&
      left.list == right.list) {
    result = left;
    result.items.insert(result.items.end(), right.items.begin(), right.items.end());
  }
  return result.kind == Kind::unknown ? Value::computed() : result;
}

/// Compares numbers; supports `is` and `is not` with None as well.
Value Names::evaluate_compare(const Expr& expr) {
  Value result = Value::boolean(true);
  for (std::size_t i = 0; i < expr.ops.size() && !result.is_zero(); ++i) {
    const Value left = evaluate(*expr.items[i]), right = evaluate(*expr.items[i + 1]);
    const bool identity = expr.ops[i] == Tok::k_is || expr.ops[i] == Tok::is_not;
    if (identity && right.kind == Kind::none && (left.kind == Kind::none || left.is_any_number()))
      result = Value::boolean((left.kind == Kind::none) == (expr.ops[i] == Tok::k_is));
    else
      result = fold(expr.ops[i], left, right);
    if (result.kind != Kind::boolean) result = compare_texts(expr.ops[i], left, right);
    if (result.kind != Kind::boolean) return Value::computed();
  }
  return result;
}

/// `a and b`, `a or b`, `a if c else b`, as far as the numbers that decide are known.
Value Names::evaluate_choice(const Expr& expr) {
  const auto truth = [](const Value& value) { return truth_of(value); };
  if (expr.kind == ExprKind::conditional) {
    const std::optional<bool> known = truth(evaluate(*expr.items[0]));
    return known ? evaluate(*expr.items[*known ? 1 : 2]) : Value::computed();
  }
  Value value;
  for (const Expr* item : expr.items) {
    value = evaluate(*item);
    const std::optional<bool> known = truth(value);
    if (!known) return Value::computed();
    if (*known == (expr.op == Tok::k_or)) break;
  }
  return value;
}

Value Names::evaluate_items(const Expr& expr) {
  Value tuple;
  tuple.kind = Kind::tuple;
  tuple.list = expr.kind == ExprKind::list;
  for (const Expr* item : expr.items) {
    tuple.items.push_back(evaluate(*item));
    if (tuple.items.back().kind == Kind::unknown || tuple.items.back().kind == Kind::host)
      return Value::computed();
  }
  return tuple;
}

/// module.name, array.shape, dtype attributes.
Value Names::evaluate_name(const Expr& expr) {
  // The callee is looked up twice, so that it must be a plain name.
  if (const Expr& call = *expr.items[0];
      call.kind == ExprKind::call && call.items.size() == 2 && !dotted_text(*call.items[0]).empty()) {
    const Value callee = evaluate(*call.items[0]);
    const Type type = callee.is_imported("numpy.iinfo") || callee.is_imported("numpy.finfo")
                          ? element_type(*call.items[1])
                          : nullptr;
    const Value limit = type == nullptr ? Value{} : limit_of(callee.text, type, expr.name);
    if (limit.kind != Kind::unknown) return limit;
  }
  return attribute_of(evaluate(*expr.items[0]), expr.name);
}

Value Names::attribute_of(const Value& base, std::string_view name) {
  if (base.kind == Kind::module_ && is_enumeration(base)) return member_of(base, name);
  if (base.kind == Kind::module_) return evaluate_path(canonical(fmt::format("{}.{}", base.text, name)));
  if (base.is_number() && !base.text.empty() && name == "value") return base;
  if (base.kind == Kind::array && name == "shape") {
    Value shape;
    shape.kind = Kind::tuple;
    for (const std::int64_t extent : base.shape) shape.items.push_back(Value::of(extent));
    return shape;
  }
  if (base.kind == Kind::array && name == "size")
    return Value::of(static_cast<std::int64_t>(base.items.size()));
  if (base.is_imported()) return evaluate_path(canonical(fmt::format("{}.{}", base.text, name)));
  return Value::computed();
}

Value Names::evaluate_subscript(const Expr& expr) {
  const Value base = evaluate(*expr.items[0]);
  if (base.kind == Kind::tuple && expr.items[1]->kind == ExprKind::slice)
    return slice_of(base, *expr.items[1]);
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
  return Value::computed();
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
                      : std::string("the name of the linked file is not known at compile time"),
                  "link files of CUDA C++: link='functions.cu'");
  }
}

/// np.dtype([('x', np.float32), ('y', 'i4', (3,))], align=True)
Value Names::record_dtype(const Expr& fields, bool align) {
  Value value;
  value.kind = Kind::dtype;
  if (fields.kind != ExprKind::list) {
    value.type = element_type(fields);
    return value.type != nullptr ? value : Value::computed();
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

/// np.float32, float32, 'f4', int, a record type or a list of its fields; null for other expressions.
Type Names::element_type(const Expr& expr) {
  if (expr.kind == ExprKind::list) return record_dtype(expr, false).type;
  const Value value = evaluate(expr);
  if (value.kind == Kind::dtype && (is_number(value.type) || is_record(value.type))) return value.type;
  if (value.kind == Kind::builtin) {
    const Rule rule = value.builtin->rule;
    return rule == Rule::to_int       ? types_.int64
           : rule == Rule::to_float   ? types_.float64
           : rule == Rule::to_bool    ? types_.boolean
           : rule == Rule::to_complex ? types_.complex128
                                      : nullptr;
  }
  if (value.kind != Kind::string) return nullptr;
  std::string_view word = value.text;
  if (!word.empty() && (word[0] == '<' || word[0] == '=' || word[0] == '|')) word.remove_prefix(1);
  const Type type = types_.scalar_named(word);
  return type == types_.none ? nullptr : type;
}

}  // namespace quern::frontend
