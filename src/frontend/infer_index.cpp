// SPDX-License-Identifier: Apache-2.0
// The types of subscripts: elements, views, items of tuples, fields of records.
#include <algorithm>

#include "frontend/infer.hpp"

namespace quern::frontend {

Type Inference::slice(const Expr& expr) {
  for (const Expr* part : expr.items) {
    if (part == nullptr || part->kind == ExprKind::none) continue;
    const Type type = expression(*part);
    if (type != nullptr) wants(*part, type, is_integral(type), "a slice takes whole numbers");
  }
  return types_.slice;
}

Type Inference::subscript(const Expr& expr) {
  const Type base = expression(*expr.items[0]);
  const Expr& index = *expr.items[1];
  if (base != nullptr && is_array(base)) return indexed(base, index);
  const Type type = expression(index);
  if (base == nullptr || type == nullptr) return nullptr;
  if (is_error(base)) return base;
  if (base->kind == TypeKind::record) {
    if (type->kind == TypeKind::string)
      return record_field(base, instance_.constant(index).text, index.place);
    return fail(index.place, "types", "write r['x'] or r.x",
                "a record is indexed by a field's name, not by {}", text_of(type));
  }
  if (is_tuple(base)) return tuple_item(expr, base);
  if (base->kind == TypeKind::dtype) {
    const Value value = program_.names().evaluate(expr);
    if (value.kind == Value::Kind::dtype) return types_.dtype(value.type);
  }
  return fail(
      expr.place, "types",
      base->kind == TypeKind::function ? "launches are the host's; a device function is called f(x)" : "",
      "{} cannot be indexed", base->kind == TypeKind::builtin ? shown(*expr.items[0]) : text_of(base));
}

Type Inference::tuple_item(const Expr& expr, Type base) {
  const Expr& index = *expr.items[1];
  const Type type = instance_.type(index);
  const auto count = static_cast<std::int64_t>(base->items.size());
  if (index.kind == ExprKind::slice) {
    std::int64_t bounds[2] = {0, count};
    for (std::size_t i = 0; i < 2; ++i) {
      const Expr* part = index.items[i];
      if (part == nullptr) continue;
      const Value& value = instance_.constant(*part);
      if (value.kind != Value::Kind::integer)
        return fail(part->place, "types", "", "a tuple is sliced by constants");
      bounds[i] =
          std::clamp<std::int64_t>(value.integer < 0 ? value.integer + count : value.integer, 0, count);
    }
    if (index.items[2] != nullptr)
      return fail(index.place, "unsupported", "", "a tuple is sliced without a step");
    std::vector<Type> items;
    for (std::int64_t i = bounds[0]; i < bounds[1]; ++i)
      items.push_back(base->items[static_cast<std::size_t>(i)]);
    return types_.tuple(std::move(items));
  }
  if (!is_integral(type))
    return fail(index.place, "types", "", "a tuple is indexed by a whole number, not by {}", text_of(type));
  const Value& value = instance_.constant(index);
  if (value.kind == Value::Kind::integer) {
    const std::int64_t at = value.integer < 0 ? value.integer + count : value.integer;
    if (at < 0 || at >= count)
      return fail(index.place, "types", "", "index {} is outside a tuple of {}", value.integer, count);
    const Value& whole = instance_.constant(*expr.items[0]);
    if (whole.kind == Value::Kind::tuple)
      instance_.constants[expr.id] = whole.items[static_cast<std::size_t>(at)];
    return base->items[static_cast<std::size_t>(at)];
  }
  if (is_uniform(base)) return base->items[0];
  return fail(index.place, "types", "index it with a number that is written out",
              "items of {} differ in type, so the index must be constant", text_of(base));
}

Type Inference::indexed(Type array, const Expr& index) {
  std::vector<const Expr*> indices = {&index};
  if (index.kind == ExprKind::tuple) indices.assign(index.items.begin(), index.items.end());
  const Type whole = expression(index);
  if (whole == nullptr) return nullptr;
  if (is_error(whole)) return whole;
  if (whole->kind == TypeKind::string) {
    if (array->element->kind != TypeKind::record)
      return fail(index.place, "types", "", "an array of {} has no fields", text_of(array->element));
    for (const Field& field : array->element->fields)
      if (field.name == instance_.constant(index).text) return field_view(array, field, index.place);
    return record_field(array->element, instance_.constant(index).text, index.place);
  }
  // a[t] with a tuple t stands for a[t[0], t[1], ...].
  if (index.kind != ExprKind::tuple && is_tuple(whole)) {
    const bool integral = std::all_of(whole->items.begin(), whole->items.end(), is_integral);
    if (!integral || whole->items.size() > array->ndim)
      return fail(index.place, "types", "", "{} does not index an array of {} dimensions", text_of(whole),
                  array->ndim);
    if (whole->items.size() == array->ndim) return array->element;
    return types_.array(array->element, array->ndim - static_cast<unsigned>(whole->items.size()),
                        array->layout == 'C' ? 'C' : 'A', array->read_only);
  }
  return index_type(array, indices, index.place);
}

/// Does indexing by this part leave the rest of the array without gaps? A slice does only at the fast end.
bool Inference::keeps_order(const Expr& index, bool at_fast_end) const {
  const Type type = instance_.type(index);
  if (type->kind == TypeKind::slice) return at_fast_end && index.items[2] == nullptr;
  return true;
}

/// The layout of a view, as Numba chooses it: `left` are the indices before an ellipsis, `right` those
/// behind.
char Inference::view_layout(Type array, std::vector<const Expr*> left, std::vector<const Expr*> right) const {
  const bool all = left.size() + right.size() == array->ndim;
  const auto check = [&](const std::vector<const Expr*>& outer) {
    for (std::size_t i = 0; i < outer.size(); ++i)
      if (!keeps_order(*outer[i], i + 1 == outer.size())) return false;
    return true;
  };
  if (array->layout == 'C') {
    if (all) left.insert(left.end(), right.begin(), right.end()), right.clear();
    return right.empty() && check(left) ? 'C' : 'A';
  }
  if (array->layout == 'F') {
    if (all) right.insert(right.begin(), left.begin(), left.end()), left.clear();
    std::reverse(right.begin(), right.end());
    return left.empty() && check(right) ? 'F' : 'A';
  }
  return 'A';
}

/// An element for as many whole numbers as there are dimensions, else a view.
Type Inference::index_type(Type array, const std::vector<const Expr*>& indices, Place place) {
  unsigned kept = 0;
  bool ellipsis = false;
  std::vector<const Expr*> left, right;
  for (const Expr* each : indices) {
    const Expr& index = *each;
    const Type type = instance_.type(index);
    if (type->kind == TypeKind::ellipsis) {
      if (ellipsis) return fail(index.place, "types", "", "an index has at most one '...'");
      ellipsis = true;
      continue;
    }
    if (type->kind == TypeKind::slice) {
      ++kept;
    } else if (type == types_.none) {
      return fail(index.place, "unsupported", "", "kernels cannot add dimensions with None");
    } else if (is_array(type)) {
      return fail(index.place, "unsupported", "write a loop over the indices",
                  "kernels cannot index with an array");
    } else if (!is_integral(type)) {
      return fail(index.place, "types", is_floating(type) ? "convert it: int(...)" : "",
                  "an array is indexed by whole numbers and slices, not by {}", text_of(type));
    }
    (ellipsis ? right : left).push_back(each);
  }
  const std::size_t consumed = left.size() + right.size();
  if (consumed > array->ndim) {
    const Type result = fail(place, "types", "", "an array of {} dimension{} is indexed by {}", array->ndim,
                             array->ndim == 1 ? "" : "s", consumed);
    return result;
  }
  kept += array->ndim - static_cast<unsigned>(consumed);
  if (kept == 0) return array->element;
  return types_.array(array->element, kept, view_layout(array, std::move(left), std::move(right)),
                      array->read_only);
}

}  // namespace quern::frontend
