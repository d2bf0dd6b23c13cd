// SPDX-License-Identifier: Apache-2.0
// Arrays that kernels make, and the elements that atomics work on.
#include <algorithm>

#include "frontend/infer.hpp"

namespace quern::frontend {
namespace {

constexpr std::int64_t kMostSharedBytes = 227 * 1024;
constexpr std::int64_t kMostConstantBytes = 64 * 1024;

}  // namespace

bool Inference::shape_of(const Expr& expr, std::vector<std::int64_t>& extents) {
  const Value& value = instance_.constant(expr);
  std::vector<const Value*> parts = {&value};
  if (value.kind == Value::Kind::tuple) {
    parts.clear();
    for (const Value& item : value.items) parts.push_back(&item);
  }
  const bool display = expr.kind == ExprKind::tuple;
  if (value.kind == Value::Kind::unknown && display) {
    for (const Expr* item : expr.items)
      if (instance_.constant(*item).kind != Value::Kind::integer) {
        fail(item->place, "shape", "use literals, module-level integers, and arithmetic with them",
             "the shape must be known when the kernel is compiled, and '{}' is not", shown(*item));
        return false;
      }
  }
  for (const Value* part : parts) {
    if (part->kind != Value::Kind::integer) {
      fail(expr.place, "shape",
           is_floating(instance_.type(expr) != nullptr ? instance_.type(expr) : types_.int64)
               ? "a shape is made of whole numbers; divide with //"
               : "use literals, module-level integers, and arithmetic with them",
           "the shape must be known when the kernel is compiled, and '{}' is not", shown(expr));
      return false;
    }
    extents.push_back(part->integer);
  }
  return true;
}

/// cuda.shared.array(shape, dtype), cuda.local.array(shape, dtype)
Type Inference::make_array(const Expr& expr, const Builtin& row) {
  const Expr* shape = nullptr;
  const Expr* dtype = nullptr;
  std::size_t position = 0;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const bool named = item.kind == ExprKind::keyword;
    if (named && item.name == "shape")
      shape = item.items[0];
    else if (named && (item.name == "dtype" || item.name == "type"))
      dtype = item.items[0];
    else if (named) {
      if (item.name != "alignment")
        return fail(item.place, "calls", "it takes shape and dtype", "{} has no parameter '{}'", row.shown(),
                    item.name);
    } else {
      (position == 0 ? shape : dtype) = &item;
      ++position;
    }
  }
  if (shape == nullptr || dtype == nullptr)
    return fail(expr.place, "calls", fmt::format("write {}((16, 16), float32)", row.shown()),
                "{} takes a shape and a type", row.shown());
  Storage storage;
  storage.space = row.rule == Rule::local_array ? Space::local : Space::shared;
  const Type type = instance_.type(*dtype);
  if (type == nullptr || instance_.type(*shape) == nullptr) return nullptr;
  if (is_error(type) || is_error(instance_.type(*shape))) return types_.error;
  const Type element = type->kind == TypeKind::dtype    ? type->element
                       : type->kind == TypeKind::string ? types_.scalar_named(instance_.constant(*dtype).text)
                                                        : nullptr;
  if (element == nullptr || (!is_number(element) && !is_record(element)))
    return fail(dtype->place, "types", "name a type: float32, int64, ...",
                "the array's type is {}, which is no element type", text_of(type));
  storage.element = element;
  if (!shape_of(*shape, storage.extents)) return reporting_ ? types_.error : nullptr;
  const bool dynamic =
      storage.space == Space::shared && storage.extents.size() == 1 && storage.extents[0] == 0;
  if (dynamic) storage.space = Space::dynamic_shared;
  std::int64_t bytes = size_of(storage.element);
  for (const std::int64_t extent : storage.extents) {
    if (extent <= 0 && !dynamic)
      return fail(
          shape->place, "shape",
          storage.space == Space::local ? "" : "a shape of 0, in one dimension, is sized by the launch",
          "an extent of the shape is {}", extent);
    if (!dynamic && bytes > (std::int64_t{1} << 40) / extent)
      return fail(shape->place, "shape", "", "the array is larger than any memory");
    if (!dynamic) bytes *= extent;
  }
  if (storage.space == Space::shared && bytes > kMostSharedBytes)
    return fail(shape->place, "shape", "use a smaller array, or device memory",
                "the array takes {} bytes, and a block has at most {} of shared memory", bytes,
                kMostSharedBytes);
  const auto ndim = static_cast<unsigned>(storage.extents.size());
  const Type array = types_.array(storage.element, ndim, 'C');
  instance_.storages.insert_or_assign(expr.id, std::move(storage));
  return array;
}

/// cuda.const.array_like(X)
Type Inference::constant_array(const Expr& expr) {
  const Expr& source = *expr.items[1];
  const Value& value = instance_.constant(source);
  if (value.kind != Value::Kind::array || source.kind != ExprKind::name)
    return fail(source.place, "constant",
                "define it at the file's level: TABLE = np.array([...], dtype=np.float32)",
                "cuda.const.array_like takes a module-level array, and '{}' is none", shown(source));
  std::int64_t bytes = size_of(value.type);
  for (const std::int64_t extent : value.shape) bytes *= extent;
  if (bytes > kMostConstantBytes)
    return fail(source.place, "constant", "pass it to the kernel as an argument",
                "'{}' takes {} bytes, and constant memory holds {}", shown(source), bytes,
                kMostConstantBytes);
  const Value& lasting = program_.names().global(source.name);
  instance_.storages.insert_or_assign(
      expr.id, Storage{Space::constant, value.type, value.shape, &lasting, source.name});
  return types_.array(value.type, static_cast<unsigned>(value.shape.size()), 'C', true);
}

/// Does the index name one element, as atomics and cache hints want it? An array of no dimensions takes any.
bool Inference::check_index(const Expr& expr, Type index, Type array) {
  const std::size_t count = is_tuple(index) ? index->items.size() : 1;
  const bool integral = is_tuple(index) ? std::all_of(index->items.begin(), index->items.end(), is_integral)
                                        : is_integral(index);
  if (integral && (count == array->ndim || array->ndim == 0)) return true;
  fail(expr.place, "types", array->ndim > 1 ? "give a tuple with a number for each dimension" : "",
       "{} does not index an array of {} dimension{}", text_of(index), array->ndim,
       array->ndim == 1 ? "" : "s");
  return false;
}

/// cuda.ldcg(array, index), cuda.stcg(array, index, value)
Type Inference::element_hint(const Builtin& row, const std::vector<const Expr*>& args,
                             const std::vector<Type>& types) {
  const Type array = types[0];
  const bool stores = row.rule == Rule::store_hint;
  if (!is_array(array) || !is_number(array->element) || is_complex(array->element) ||
      array->element->kind == TypeKind::boolean)
    return fail(args[0]->place, "types", "", "{} works on an element of an array of numbers, not on {}",
                row.shown(), text_of(array));
  if (stores && array->read_only)
    return fail(args[0]->place, "types", "", "'{}' is read-only and cannot be written", shown(*args[0]));
  if (!check_index(*args[1], types[1], array)) return reporting_ ? types_.error : nullptr;
  if (!stores) return array->element;
  if (!converts(types[2], array->element))
    return fail(args[2]->place, "types", "", "{} cannot be stored in an element of {}", text_of(types[2]),
                text_of(array->element));
  return types_.none;
}

Type Inference::atomic(const Expr& expr, const Builtin& row, const std::vector<const Expr*>& args,
                       const std::vector<Type>& types) {
  const Type array = types[0];
  if (!is_array(array))
    return fail(args[0]->place, "types", "write cuda.atomic.add(array, index, value)",
                "{} works on an element of an array, not on {}", row.shown(), text_of(array));
  if (array->read_only)
    return fail(args[0]->place, "types", "", "'{}' is read-only and cannot be written", shown(*args[0]));
  const Type element = array->element;
  const bool swap = row.rule == Rule::atomic_swap;
  if (!swap && !check_index(*args[1], types[1], array)) return reporting_ ? types_.error : nullptr;
  const bool integer_only = row.rule != Rule::atomic;
  const bool good = is_number(element) && !is_complex(element) &&
                    (element->bits == 32 || element->bits == 64) && (!integer_only || is_integer(element)) &&
                    (row.rule != Rule::atomic_unsigned || !element->is_signed);
  if (!good)
    return fail(args[0]->place, "types",
                row.rule == Rule::atomic_unsigned ? "use an array of uint32 or uint64"
                : integer_only                    ? "use an array of int32, uint32, int64 or uint64"
                                                  : "use elements of 32 or 64 bits",
                "{} does not work on elements of {}", row.shown(), text_of(element));
  for (std::size_t i = swap ? 1 : 2; i < args.size(); ++i)
    if (!converts(types[i], element))
      return fail(args[i]->place, "types", "", "{} cannot be stored in an element of {}", text_of(types[i]),
                  text_of(element));
  static_cast<void>(expr);
  return element;
}

}  // namespace quern::frontend
