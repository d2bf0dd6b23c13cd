// SPDX-License-Identifier: Apache-2.0
// Elements and views of arrays, items of tuples.
#include <algorithm>

#include "frontend/codegen/emit.hpp"

namespace quern::frontend {

Code ArrayCode::subscript(const Expr& expr) {
  const Expr &base = *expr.items[0], &index = *expr.items[1];
  const Type type = specialisation_.type(base), result = specialisation_.type(expr);
  if (is_array(type)) {
    if (is_array(result) && specialisation_.type(index)->kind == TypeKind::string)
      return field_view(base, specialisation_.constant(index).text, result);
    if (is_array(result)) return view_of(base, index, result);
    return element(base, index);
  }
  if (is_record(type)) {
    Code code = record_part(base, specialisation_.constant(index).text);
    code.cpp_type = cpp_type_of(result);
    return code;
  }
  const Value& at = specialisation_.constant(index);
  const auto count = static_cast<std::int64_t>(type->items.size());
  if (index.kind == ExprKind::slice) {
    const Code whole = emitter_.order().once(base);
    std::vector<CppText> items;
    for (const std::size_t position : specialisation_.slice_indices(index, type->items.size()))
      items.push_back(item(whole, position, type->items[position]).text);
    return braced(type_text(result), items);
  }
  if (at.kind == Value::Kind::integer) {
    const auto position = static_cast<std::size_t>(at.integer < 0 ? at.integer + count : at.integer);
    if (base.kind == ExprKind::attribute && base.name == "shape" &&
        is_array(specialisation_.type(*base.items[0])))
      return extent(*base.items[0], position);
    if (base.kind == ExprKind::tuple) return displayed_item(base, position, result);
    if (const Type callee = base.kind == ExprKind::call ? specialisation_.type(*base.items[0]) : nullptr;
        callee != nullptr && callee->kind == TypeKind::builtin && is_grid(callee->builtin->rule))
      return grid_axis(*callee->builtin, position);
    const Value& whole = specialisation_.constant(base);
    if (whole.kind == Value::Kind::tuple) return emitter_.constant(whole.items[position], result);
    return item(emitter_.expression(base), position, result);
  }
  Code which = emitter_.expression(index);
  if (unit_.debug)
    which =
        call("quern::debug::index<0>",
             {which.text, cpp_text("{}", unit_.source->line_of(index.place.begin)), cpp_text("{}LL", count)},
             CppType::i64);
  return call("quern::item_at", {emitter_.expression(base).text, which.text}, cpp_type_of(result));
}

/// (f(), g())[0]: the other items are evaluated for their side effects.
Code ArrayCode::displayed_item(const Expr& tuple, std::size_t position, Type result) {
  for (std::size_t i = 0; i < tuple.items.size(); ++i) {
    if (i != position) {
      emitter_.order().discard(*tuple.items[i]);
    } else if (std::any_of(tuple.items.begin() + static_cast<std::ptrdiff_t>(i) + 1, tuple.items.end(),
                           [&](const Expr* later) { return emitter_.order().is_kept(*later); })) {
      emitter_.order().hold(*tuple.items[i]);
    }
  }
  return convert(emitter_.expression(*tuple.items[position]), cpp_type_of(result));
}

/// The index of one axis; a negative one counts from the end.
Code ArrayCode::wrapped(const Expr& array, const Expr& index, std::size_t axis) {
  const Code code = emitter_.expression(index);
  const Type type = specialisation_.type(index);
  if (unit_.debug) return wrapped(array, code, axis, index.place);
  if (!is_integer(type) || !type->is_signed || emitter_.range(index).low >= 0) return modular(code);
  const Value& value = specialisation_.constant(index);
  if (value.kind == Value::Kind::integer && value.integer < 0 && value.integer != INT64_MIN) {
    const Code length = extent(array, axis);
    return {cpp_text("{} - {}", inside(length, Precedence::plus), integer_literal(-value.integer)),
            Precedence::plus, length.cpp_type};
  }
  return wrapped(array, code, axis, index.place);
}

/// Converts Python's index to C++'s. In debug builds, an index out of bounds ends the thread and is reported.
Code ArrayCode::wrapped(const Expr& array, const Code& index, std::size_t axis, Place place) {
  if (!unit_.debug) return call("quern::wrap", {index.text, extent(array, axis).text}, CppType::i64);
  std::vector<CppText> arguments = {index.text, cpp_text("{}", unit_.source->line_of(place.begin))};
  const std::size_t ndim = specialisation_.type(array)->ndim;
  for (std::size_t i = 0; i < ndim; ++i) arguments.push_back(extent(array, i).text);
  return call(fmt::format("quern::debug::index<{}>", axis), arguments, CppType::i64);
}

std::vector<Code> ArrayCode::indices_of(const Expr& array, const Expr& index) {
  std::vector<Code> codes;
  const Type type = specialisation_.type(index);
  if (specialisation_.type(array)->ndim == 0) return codes;
  if (index.kind == ExprKind::tuple) {
    std::size_t axis = 0;
    for (const Expr* each : index.items)
      if (each->kind != ExprKind::ellipsis) codes.push_back(wrapped(array, *each, axis++));
  } else if (is_tuple(type)) {
    const Code tuple = emitter_.order().once(index);
    for (std::size_t axis = 0; axis < type->items.size(); ++axis) {
      const Code part = item(tuple, axis, type->items[axis]);
      const bool may_wrap = is_integer(type->items[axis]) && type->items[axis]->is_signed;
      codes.push_back(may_wrap || unit_.debug ? wrapped(array, part, axis, index.place) : part);
    }
  } else {
    codes.push_back(wrapped(array, index, 0));
  }
  return codes;
}

/// a[i][j] means a[i, j]: rows that are indexed directly need no view.
Code ArrayCode::element(const Expr& array, const Expr& index) {
  const Expr* owner = &array;
  std::vector<const Expr*> parts = {&index};
  const auto whole_number = [&](const Expr& part) {
    const Type type = specialisation_.type(part);
    return is_integral(type) || (part.kind == ExprKind::tuple && is_tuple(type) &&
                                 std::all_of(type->items.begin(), type->items.end(), is_integral));
  };
  while (owner->kind == ExprKind::subscript && emitter_.order().held_code(*owner) == nullptr &&
         whole_number(*parts.front()) && is_array(specialisation_.type(*owner->items[0])) &&
         whole_number(*owner->items[1])) {
    parts.insert(parts.begin(), owner->items[1]);
    owner = owner->items[0];
  }
  if (parts.size() == 1) return element_of(array, indices_of(array, index));
  std::vector<Code> codes;
  for (const Expr* part : parts) {
    if (part->kind != ExprKind::tuple) {
      codes.push_back(wrapped(*owner, *part, codes.size()));
      continue;
    }
    for (const Expr* each : part->items) codes.push_back(wrapped(*owner, *each, codes.size()));
  }
  return element_of(*owner, codes);
}

Code ArrayCode::element_of(const Expr& array, const std::vector<Code>& indices) {
  const CppType cpp_type = cpp_type_of(specialisation_.type(array)->element);
  const bool c_array = direct(array) != nullptr;
  Code base = c_array && array.kind == ExprKind::name && scope_.load(array) == kNoVersion
                  ? Code{cpp_name(array.name)}
                  : emitter_.expression(array);
  CppText text = inside(base, Precedence::primary);
  if (c_array || indices.size() == 1) {
    for (const Code& index : indices) text += cpp_text("[{}]", index.text);
    return {text, Precedence::primary, cpp_type};
  }
  std::vector<CppText> list;
  for (const Code& index : indices) list.push_back(index.text);
  return call_of(text, list, cpp_type);
}

/// a[i], a[1:n, ::2], a[..., 0] as a view of the inferred type.
Code ArrayCode::view_of(const Expr& array, const Expr& index, Type result) {
  std::vector<const Expr*> indices = {&index};
  if (index.kind == ExprKind::tuple) indices.assign(index.items.begin(), index.items.end());
  std::size_t given = 0, axis = 0;
  for (const Expr* each : indices) given += specialisation_.type(*each)->kind == TypeKind::ellipsis ? 0 : 1;
  const std::size_t ndim = specialisation_.type(array)->ndim;
  const CppText every = device_name("quern::slice_all") + "{}";
  std::vector<CppText> arguments = {array_value(array).text};
  for (const Expr* each : indices) {
    const Type type = specialisation_.type(*each);
    if (type->kind == TypeKind::ellipsis) {
      for (std::size_t i = given; i < ndim; ++i, ++axis) arguments.push_back(every);
    } else if (type->kind == TypeKind::slice) {
      std::vector<CppText> parts;
      bool plain = true;
      for (std::size_t i = 0; i < 3; ++i) {
        const Expr* part = each->items[i];
        const bool absent = part == nullptr || part->kind == ExprKind::none;
        plain = plain && absent;
        if (absent)
          parts.push_back(i == 2 ? "1" : device_name("quern::slice_open"));
        else
          parts.push_back(emitter_.expression(*part).text);
      }
      arguments.push_back(plain ? every : call("quern::slice", parts, CppType::other).text);
      ++axis;
    } else if (is_tuple(type)) {
      for (const Code& code : indices_of(array, *each)) arguments.push_back(code.text);
      axis += type->items.size();
    } else {
      arguments.push_back(wrapped(array, *each, axis).text);
      ++axis;
    }
  }
  for (; axis < ndim; ++axis) arguments.push_back(every);
  return call_of(cpp_text("{}<{}>", device_name("quern::subview"), type_text(result)), arguments,
                 CppType::other);
}

/// The extents of an array that is a C array in C++: an array in shared, local or constant memory, or a field
/// of a record.
const std::vector<std::int64_t>* ArrayCode::direct(const Expr& array) const {
  if (array.kind == ExprKind::attribute || array.kind == ExprKind::subscript) return field_extents(array);
  if (array.kind != ExprKind::name) return nullptr;
  const std::uint32_t version = scope_.load(array);
  if (version == kNoVersion) {
    const auto found = specialisation_.storages.find(array.id);
    return found == specialisation_.storages.end() ? nullptr : &found->second.extents;
  }
  const std::uint32_t variable = variables_.of_version[version];
  if (variable == kNoVariable || variables_.all[variable].storage == nullptr) return nullptr;
  return &variables_.all[variable].storage->extents;
}

const std::vector<std::int64_t>* ArrayCode::field_extents(const Expr& expr) const {
  const Type base = specialisation_.type(*expr.items[0]);
  if (base == nullptr || !is_record(base) || !is_array(specialisation_.type(expr))) return nullptr;
  const std::string_view name = expr.kind == ExprKind::attribute
                                    ? expr.name
                                    : std::string_view(specialisation_.constant(*expr.items[1]).text);
  for (const Field& field : base->fields)
    if (field.name == name) return &field.shape;
  return nullptr;
}

Code ArrayCode::extent(const Expr& array, std::size_t axis) {
  if (const auto* extents = direct(array)) {
    Code known = integer_code((*extents)[axis]);
    known.cpp_type = CppType::i32;
    return known;
  }
  return {cpp_text("{}.extents[{}]", inside(emitter_.expression(array), Precedence::primary), axis),
          Precedence::primary, CppType::i64};
}

/// An array as a value that can be passed: for C arrays, a view.
Code ArrayCode::array_value(const Expr& array) {
  Code code = array.kind == ExprKind::name && scope_.load(array) == kNoVersion ? Code{cpp_name(array.name)}
                                                                               : emitter_.expression(array);
  if (direct(array) == nullptr) return code;
  return call("quern::view", {code.text}, CppType::other);
}

Code ArrayCode::item(const Code& tuple, std::size_t index, Type type) {
  return call(fmt::format("quern::item<{}>", index), {tuple.text}, cpp_type_of(type));
}

/// record.field, or pointer->field for a variable that refers to a record.
Code ArrayCode::record_part(const Expr& base, std::string_view field) {
  return {member_of(emitter_.expression(base), cpp_name(field)), Precedence::primary, CppType::other};
}

/// A field of every record of an array.
Code ArrayCode::field_view(const Expr& array, std::string_view field, Type result) {
  std::uint32_t offset = 0;
  for (const Field& each : specialisation_.type(array)->element->fields)
    if (each.name == field) offset = each.offset;
  return part_view(array, offset, result);
}

/// A view of the field at this byte offset in every element.
Code ArrayCode::part_view(const Expr& array, std::uint32_t offset, Type result) {
  return call_of(cpp_text("{}<{}>", device_name("quern::field"), type_text(result)),
                 {array_value(array).text, cpp_text("{}", offset)}, CppType::other);
}

}  // namespace quern::frontend
