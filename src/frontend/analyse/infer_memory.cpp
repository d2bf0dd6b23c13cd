// SPDX-License-Identifier: Apache-2.0
// Type inference for arrays that kernels create, and for the elements that atomics access.
#include <algorithm>

#include "frontend/analyse/builtin_call.hpp"
#include "frontend/builtins/forms.hpp"

namespace quern::frontend {
namespace {

constexpr std::int64_t kMostSharedBytes = 227 * 1024;
constexpr std::int64_t kMostConstantBytes = 64 * 1024;

/// The extents of the array, which must be constants.
bool shape_of(BuiltinCall& call, const Expr& expr, std::vector<std::int64_t>& extents) {
  const Value& value = call.specialisation.constant(expr);
  std::vector<const Value*> parts = {&value};
  if (value.kind == Value::Kind::tuple) {
    parts.clear();
    for (const Value& item : value.items) parts.push_back(&item);
  }
  const bool display = expr.kind == ExprKind::tuple;
  if (value.kind == Value::Kind::unknown && display) {
    for (const Expr* item : expr.items)
      if (call.specialisation.constant(*item).kind != Value::Kind::integer) {
        call.fail(item->place, "shape", "use literals, module-level integers, and arithmetic with them",
                  "the shape must be known when the kernel is compiled, and '{}' is not", call.shown(*item));
        return false;
      }
  }
  for (const Value* part : parts) {
    if (part->kind != Value::Kind::integer) {
      call.fail(expr.place, "shape",
                is_floating(call.specialisation.type(expr) != nullptr ? call.specialisation.type(expr)
                                                                      : call.table.int64)
                    ? "a shape is made of whole numbers; divide with //"
                    : "use literals, module-level integers, and arithmetic with them",
                "the shape must be known when the kernel is compiled, and '{}' is not", call.shown(expr));
      return false;
    }
    extents.push_back(part->integer);
  }
  return true;
}

/// The arguments of cuda.shared.array and cuda.local.array; null if not given.
struct ArrayArguments {
  const Expr* shape = nullptr;
  const Expr* dtype = nullptr;
};

/// Returns false if the arguments are not a shape and a type, which is reported.
bool read_arguments(BuiltinCall& call, ArrayArguments& out) {
  const Expr& expr = call.expr;
  std::size_t position = 0;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const bool named = item.kind == ExprKind::keyword;
    if (named && item.name == "shape")
      out.shape = item.items[0];
    else if (named && (item.name == "dtype" || item.name == "type"))
      out.dtype = item.items[0];
    else if (named) {
      if (item.name != "alignment") {
        call.fail(item.place, "calls", "it takes shape and dtype", "{} has no parameter '{}'",
                  call.row.shown(), item.name);
        return false;
      }
    } else {
      (position == 0 ? out.shape : out.dtype) = &item;
      ++position;
    }
  }
  if (out.shape != nullptr && out.dtype != nullptr) return true;
  call.fail(expr.place, "calls", fmt::format("write {}((16, 16), float32)", call.row.shown()),
            "{} takes a shape and a type", call.row.shown());
  return false;
}

/// Returns false if memory of that kind cannot hold the array, which is reported.
bool check_extents(BuiltinCall& call, Place place, const Storage& storage) {
  const bool dynamic = storage.space == Space::dynamic_shared;
  std::int64_t bytes = size_of(storage.element);
  for (const std::int64_t extent : storage.extents) {
    if (extent <= 0 && !dynamic) {
      call.fail(place, "shape",
                storage.space == Space::local ? "" : "a shape of 0, in one dimension, is sized by the launch",
                "an extent of the shape is {}", extent);
      return false;
    }
    if (!dynamic && bytes > (std::int64_t{1} << 40) / extent) {
      call.fail(place, "shape", "", "the array is larger than any memory");
      return false;
    }
    if (!dynamic) bytes *= extent;
  }
  if (storage.space != Space::shared || bytes <= kMostSharedBytes) return true;
  call.fail(place, "shape", "use a smaller array, or device memory",
            "the array takes {} bytes, and a block has at most {} of shared memory", bytes, kMostSharedBytes);
  return false;
}

/// cuda.shared.array(shape, dtype), cuda.local.array(shape, dtype)
Type make_array(BuiltinCall& call, Space space) {
  ArrayArguments given;
  if (!read_arguments(call, given)) return call.refused();
  Storage storage;
  storage.space = space;
  const Type type = call.specialisation.type(*given.dtype), shape = call.specialisation.type(*given.shape);
  if (type == nullptr || shape == nullptr) return nullptr;
  if (is_error(type) || is_error(shape)) return call.table.error;
  const Type element = type->kind == TypeKind::dtype ? type->element
                       : type->kind == TypeKind::string
                           ? call.table.scalar_named(call.specialisation.constant(*given.dtype).text)
                           : nullptr;
  if (element == nullptr || (!is_number(element) && !is_record(element)))
    return call.fail(given.dtype->place, "types", "name a type: float32, int64, ...",
                     "the array's type is {}, which is no element type", text_of(type));
  storage.element = element;
  if (!shape_of(call, *given.shape, storage.extents)) return call.refused();
  const bool dynamic =
      storage.space == Space::shared && storage.extents.size() == 1 && storage.extents[0] == 0;
  if (dynamic) storage.space = Space::dynamic_shared;
  if (!check_extents(call, given.shape->place, storage)) return call.refused();
  const auto ndim = static_cast<unsigned>(storage.extents.size());
  const Type array = call.table.array(storage.element, ndim, 'C');
  call.specialisation.storages.insert_or_assign(call.expr.id, std::move(storage));
  return array;
}

/// True if the index selects one element, as atomics and cache hints require. An array without dimensions
/// accepts any index.
bool check_index(BuiltinCall& call, const Expr& expr, Type index, Type array) {
  const std::size_t count = is_tuple(index) ? index->items.size() : 1;
  const bool integral = is_tuple(index) ? std::all_of(index->items.begin(), index->items.end(), is_integral)
                                        : is_integral(index);
  if (integral && (count == array->ndim || array->ndim == 0)) return true;
  call.fail(expr.place, "types", array->ndim > 1 ? "give a tuple with a number for each dimension" : "",
            "{} does not index an array of {} dimension{}", text_of(index), array->ndim,
            array->ndim == 1 ? "" : "s");
  return false;
}

/// Checks the array and the index of cuda.ldcg(array, index) and cuda.stcg(array, index, value). Returns
/// false after an error.
bool check_hint(BuiltinCall& call, bool stores) {
  const Type array = call.types[0];
  if (!is_array(array) || !is_number(array->element) || is_complex(array->element) ||
      array->element->kind == TypeKind::boolean) {
    call.fail(call.args[0]->place, "types", "", "{} works on an element of an array of numbers, not on {}",
              call.row.shown(), text_of(array));
    return false;
  }
  if (stores && array->read_only) {
    call.fail(call.args[0]->place, "types", "", "'{}' is read-only and cannot be written",
              call.shown(*call.args[0]));
    return false;
  }
  return check_index(call, *call.args[1], call.types[1], array);
}

/// The element types that an atomic supports.
enum class Elements : std::uint8_t { numbers, integers, unsigned_integers };

bool works_on(Elements elements, Type element) {
  if (!is_number(element) || is_complex(element) || (element->bits != 32 && element->bits != 64))
    return false;
  switch (elements) {
    case Elements::numbers:
      return true;
    case Elements::integers:
      return is_integer(element);
    case Elements::unsigned_integers:
      return is_integer(element) && !element->is_signed;
  }
  return false;
}

const char* elements_hint(Elements elements) {
  switch (elements) {
    case Elements::numbers:
      return "use elements of 32 or 64 bits";
    case Elements::integers:
      return "use an array of int32, uint32, int64 or uint64";
    case Elements::unsigned_integers:
      return "use an array of uint32 or uint64";
  }
  return "";
}

/// An atomic operation whose values begin at argument `first_value`. The argument before them is an index, or
/// there is none.
Type atomic_on(BuiltinCall& call, Elements elements, std::size_t first_value) {
  const Type array = call.types[0];
  const Place place = call.args[0]->place;
  if (!is_array(array))
    return call.fail(place, "types", "write cuda.atomic.add(array, index, value)",
                     "{} works on an element of an array, not on {}", call.row.shown(), text_of(array));
  if (array->read_only)
    return call.fail(place, "types", "", "'{}' is read-only and cannot be written",
                     call.shown(*call.args[0]));
  if (first_value == 2 && !check_index(call, *call.args[1], call.types[1], array)) return call.refused();
  const Type element = array->element;
  if (!works_on(elements, element))
    return call.fail(place, "types", elements_hint(elements), "{} does not work on elements of {}",
                     call.row.shown(), text_of(element));
  for (std::size_t i = first_value; i < call.args.size(); ++i)
    if (!converts(call.types[i], element))
      return call.fail(call.args[i]->place, "types", "", "{} cannot be stored in an element of {}",
                       text_of(call.types[i]), text_of(element));
  return element;
}

}  // namespace

Type infer_rules::shared_array(BuiltinCall& call) { return make_array(call, Space::shared); }
Type infer_rules::local_array(BuiltinCall& call) { return make_array(call, Space::local); }

/// cuda.const.array_like(X)
Type infer_rules::const_array(BuiltinCall& call) {
  const Expr& expr = call.expr;
  const Expr& source = *expr.items[1];
  const Value& value = call.specialisation.constant(source);
  if (value.kind != Value::Kind::array || source.kind != ExprKind::name)
    return call.fail(
        source.place, "constant", "define it at the file's level: TABLE = np.array([...], dtype=np.float32)",
        "cuda.const.array_like takes a module-level array, and '{}' is not one", call.shown(source));
  std::int64_t bytes = size_of(value.type);
  for (const std::int64_t extent : value.shape) bytes *= extent;
  if (bytes > kMostConstantBytes)
    return call.fail(source.place, "constant", "pass it to the kernel as an argument",
                     "'{}' takes {} bytes, and constant memory holds {}", call.shown(source), bytes,
                     kMostConstantBytes);
  const Value& lasting = call.names.global(source.name);
  call.specialisation.storages.insert_or_assign(
      expr.id, Storage{Space::constant, value.type, value.shape, &lasting, source.name});
  return call.table.array(value.type, static_cast<unsigned>(value.shape.size()), 'C', true);
}

Type infer_rules::load_hint(BuiltinCall& call) {
  return check_hint(call, false) ? call.types[0]->element : call.refused();
}

Type infer_rules::store_hint(BuiltinCall& call) {
  if (!check_hint(call, true)) return call.refused();
  const Type element = call.types[0]->element;
  if (converts(call.types[2], element)) return call.table.none;
  return call.fail(call.args[2]->place, "types", "", "{} cannot be stored in an element of {}",
                   text_of(call.types[2]), text_of(element));
}

Type infer_rules::atomic(BuiltinCall& call) { return atomic_on(call, Elements::numbers, 2); }
Type infer_rules::atomic_integer(BuiltinCall& call) { return atomic_on(call, Elements::integers, 2); }
Type infer_rules::atomic_unsigned(BuiltinCall& call) {
  return atomic_on(call, Elements::unsigned_integers, 2);
}
Type infer_rules::atomic_swap(BuiltinCall& call) { return atomic_on(call, Elements::integers, 1); }

/// xoroshiro128p_next(states, index) and similar functions.
Type infer_rules::random(BuiltinCall& call) {
  const Type states = call.types[0];
  const bool fits = is_array(states) && states->ndim == 1 && is_record(states->element) &&
                    states->element->fields.size() == 2 && states->element->size_bytes == 16 &&
                    states->element->fields[0].name == "s0" && states->element->fields[1].name == "s1";
  if (!fits)
    return call.fail(call.args[0]->place, "types", "make them with create_xoroshiro128p_states(n, seed)",
                     "{} takes an array of generator states, not {}", call.row.shown(), text_of(states));
  for (std::size_t i = 1; i < call.args.size(); ++i)
    if (!call.whole(i)) return call.refused();
  return typed_function(call.table, call.row).result;
}

}  // namespace quern::frontend
