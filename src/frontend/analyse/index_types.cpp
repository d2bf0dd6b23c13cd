// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frontend/analyse/index_types.hpp"

namespace quern::frontend {

Type IndexTypes::slice(const Expr& expr) {
  for (const Expr* part : expr.items) {
    if (part == nullptr || part->kind == ExprKind::none) continue;
    const Type type = inference_.expression(*part);
    if (type != nullptr) wants(*part, type, is_integral(type), "a slice takes whole numbers");
  }
  return types_.slice;
}

Type IndexTypes::subscript(const Expr& expr) {
  const Type base = inference_.expression(*expr.items[0]);
  const Expr& index = *expr.items[1];
  if (base != nullptr && is_array(base)) return indexed(base, index);
  const Type type = inference_.expression(index);
  if (base == nullptr || type == nullptr) return nullptr;
  if (is_error(base)) return base;
  if (base->kind == TypeKind::record) {
    if (type->kind == TypeKind::string)
      return record_field(base, specialisation_.constant(index).text, index.place);
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

Type IndexTypes::tuple_item(const Expr& expr, Type base) {
  const Expr& index = *expr.items[1];
  const Type type = specialisation_.type(index);
  const auto count = static_cast<std::int64_t>(base->items.size());
  if (index.kind == ExprKind::slice) {
    for (const Expr* part : index.items) {
      if (part == nullptr || part->kind == ExprKind::none) continue;
      if (specialisation_.constant(*part).kind != Value::Kind::integer)
        return fail(part->place, "types", "", "a tuple is sliced by constants");
    }
    if (const Expr* step = index.items[2];
        step != nullptr && step->kind != ExprKind::none && specialisation_.constant(*step).integer == 0)
      return fail(step->place, "types", "", "the step of a slice is not 0");
    return tuple_part(expr, base);
  }
  if (!is_integral(type))
    return fail(index.place, "types", "", "a tuple is indexed by a whole number, not by {}", text_of(type));
  const Value& value = specialisation_.constant(index);
  if (value.kind == Value::Kind::integer) {
    const std::int64_t at = value.integer < 0 ? value.integer + count : value.integer;
    if (at < 0 || at >= count)
      return fail(index.place, "types", "", "index {} is outside a tuple of {}", value.integer, count);
    const Value& whole = specialisation_.constant(*expr.items[0]);
    if (whole.kind == Value::Kind::tuple)
      specialisation_.constants[expr.id] = whole.items[static_cast<std::size_t>(at)];
    return base->items[static_cast<std::size_t>(at)];
  }
  if (is_uniform(base)) return base->items[0];
  return fail(index.place, "types", "index it with a number that is written out",
              "items of {} differ in type, so the index must be constant", text_of(base));
}

/// Handles t[a:b:c] with constant bounds.
Type IndexTypes::tuple_part(const Expr& expr, Type base) {
  const Value& whole = specialisation_.constant(*expr.items[0]);
  std::vector<Type> items;
  Value value;
  value.kind = Value::Kind::tuple;
  for (const std::size_t at : specialisation_.slice_indices(*expr.items[1], base->items.size())) {
    items.push_back(base->items[at]);
    if (whole.kind == Value::Kind::tuple) value.items.push_back(whole.items[at]);
  }
  if (whole.kind == Value::Kind::tuple) specialisation_.constants[expr.id] = std::move(value);
  return types_.tuple(std::move(items));
}

/// Computes Python's slice.indices.
std::vector<std::size_t> Specialisation::slice_indices(const Expr& slice, std::size_t count) const {
  const auto length = static_cast<std::int64_t>(count);
  const auto given = [&](std::size_t i) {
    return slice.items[i] != nullptr && slice.items[i]->kind != ExprKind::none;
  };
  const std::int64_t step = given(2) ? constant(*slice.items[2]).integer : 1;
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
  const auto bound = [&](std::size_t i, std::int64_t otherwise) {
    if (!given(i)) return otherwise;
    const std::int64_t value = constant(*slice.items[i]).integer;
    return std::clamp(value < 0 ? value + length : value, low, high);
  };
  const std::int64_t stop = bound(1, step > 0 ? high : low);
  std::vector<std::size_t> indices;
  for (std::int64_t at = bound(0, step > 0 ? low : high); step > 0 ? at < stop : at > stop;) {
    indices.push_back(static_cast<std::size_t>(at));
    if (step > 0 ? step >= stop - at : step <= stop - at) break;  // the next index is outside
    at += step;
  }
  return indices;
}

Type IndexTypes::indexed(Type array, const Expr& index) {
  std::vector<const Expr*> indices = {&index};
  if (index.kind == ExprKind::tuple) indices.assign(index.items.begin(), index.items.end());
  const Type whole = inference_.expression(index);
  if (whole == nullptr) return nullptr;
  if (is_error(whole)) return whole;
  if (whole->kind == TypeKind::string) {
    if (array->element->kind != TypeKind::record)
      return fail(index.place, "types", "", "an array of {} has no fields", text_of(array->element));
    for (const Field& field : array->element->fields)
      if (field.name == specialisation_.constant(index).text) return field_view(array, field, index.place);
    return record_field(array->element, specialisation_.constant(index).text, index.place);
  }
  // a[t] with a tuple t means a[t[0], t[1], ...].
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

/// True if indexing by this part leaves the rest of the array without gaps. A slice does so only on the
/// fastest axis.
bool IndexTypes::keeps_order(const Expr& index, bool at_fast_end) const {
  const Type type = specialisation_.type(index);
  if (type->kind == TypeKind::slice) return at_fast_end && index.items[2] == nullptr;
  return true;
}

/// The layout of a view, as in Numba. `left` are the indices before an ellipsis, `right` those after it.
char IndexTypes::view_layout(Type array, std::vector<const Expr*> left,
                             std::vector<const Expr*> right) const {
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

/// Returns the element type if there are as many integers as dimensions, otherwise a view.
Type IndexTypes::index_type(Type array, const std::vector<const Expr*>& indices, Place place) {
  unsigned kept = 0;
  bool ellipsis = false;
  std::vector<const Expr*> left, right;
  for (const Expr* each : indices) {
    const Expr& index = *each;
    const Type type = specialisation_.type(index);
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

Type IndexTypes::field_view(Type array, const Field& field, Place place) {
  if (field.shape.empty()) return types_.array(field.type, array->ndim, 'A', array->read_only);
  return fail(place, "unsupported", "index the element first: a[i].x",
              "'{}' is an array in each record, and cannot be taken of all at once", field.name);
}

Type IndexTypes::record_field(Type record, std::string_view field, Place place) {
  std::vector<std::string_view> known;
  for (const Field& each : record->fields) {
    if (each.name == field)
      return each.shape.empty() ? each.type
                                : types_.array(each.type, static_cast<unsigned>(each.shape.size()), 'C');
    known.push_back(each.name);
  }
  const std::string_view near = closest(field, known);
  return fail(
      place, "unknown-name",
      near.empty() ? fmt::format("its fields are {}", record->name) : fmt::format("did you mean '{}'?", near),
      "the record has no field '{}'", field);
}

}  // namespace quern::frontend
