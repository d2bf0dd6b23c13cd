// SPDX-License-Identifier: Apache-2.0
// Elements and views of arrays, items of tuples.
#include <algorithm>

#include "frontend/emit.hpp"

namespace quern::frontend {

Code Emitter::subscript(const Expr& expr) {
  const Expr &base = *expr.items[0], &index = *expr.items[1];
  const Type type = instance_.type(base), result = instance_.type(expr);
  if (is_array(type)) {
    if (is_array(result) && instance_.type(index)->kind == TypeKind::string)
      return field_view(base, instance_.constant(index).text, result);
    if (is_array(result)) return view_of(base, index, result);
    return element(base, index);
  }
  if (is_record(type)) {
    Code code = record_part(base, instance_.constant(index).text);
    code.carrier = carrier_of(result);
    return code;
  }
  const Value& at = instance_.constant(index);
  const auto count = static_cast<std::int64_t>(type->items.size());
  if (index.kind == ExprKind::slice) {
    const Code whole = once(base);
    std::vector<std::string> items;
    for (const std::size_t place : instance_.slice_places(index, type->items.size()))
      items.push_back(item(whole, place, type->items[place]).text);
    return {fmt::format("{}{{{}}}", cpp_type(result), fmt::join(items, ", ")), Precedence::primary,
            Carrier::other};
  }
  if (at.kind == Value::Kind::integer) {
    const auto place = static_cast<std::size_t>(at.integer < 0 ? at.integer + count : at.integer);
    if (base.kind == ExprKind::attribute && base.name == "shape" && is_array(instance_.type(*base.items[0])))
      return extent(*base.items[0], place);
    if (base.kind == ExprKind::tuple) return displayed_item(base, place, result);
    if (const Type callee = base.kind == ExprKind::call ? instance_.type(*base.items[0]) : nullptr;
        callee != nullptr && callee->kind == TypeKind::builtin && callee->builtin->rule == Rule::grid)
      return grid_axis(*callee->builtin, place);
    const Value& whole = instance_.constant(base);
    if (whole.kind == Value::Kind::tuple) return constant(whole.items[place], result);
    return item(expression(base), place, result);
  }
  Code which = expression(index);
  if (unit_.debug)
    which = call(
        "quern::debug::index<0>",
        {which.text, fmt::format("{}", unit_.source->line_of(index.place.begin)), fmt::format("{}LL", count)},
        Carrier::i64);
  return {fmt::format("quern::item_at({}, {})", expression(base).text, which.text), Precedence::primary,
          carrier_of(result)};
}

/// (f(), g())[0]: the other items are computed for their side effects.
Code Emitter::displayed_item(const Expr& tuple, std::size_t place, Type result) {
  for (std::size_t i = 0; i < tuple.items.size(); ++i) {
    if (i != place) {
      discard(*tuple.items[i]);
    } else if (std::any_of(tuple.items.begin() + static_cast<std::ptrdiff_t>(i) + 1, tuple.items.end(),
                           [&](const Expr* later) { return is_kept(*later); })) {
      hold(*tuple.items[i]);
    }
  }
  return convert(expression(*tuple.items[place]), carrier_of(result));
}

/// The index of one axis; a negative one counts from the end.
Code Emitter::wrapped(const Expr& array, const Expr& index, std::size_t axis) {
  const Code code = expression(index);
  const Type type = instance_.type(index);
  if (unit_.debug) return wrapped(array, code, axis, index.place);
  if (!is_integer(type) || !type->is_signed || range(index).low >= 0) return code;
  const Value& value = instance_.constant(index);
  if (value.kind == Value::Kind::integer && value.integer < 0 && value.integer != INT64_MIN) {
    const Code length = extent(array, axis);
    return {fmt::format("{} - {}", inside(length, Precedence::plus), integer_literal(-value.integer)),
            Precedence::plus, length.carrier};
  }
  return wrapped(array, code, axis, index.place);
}

/// Converts Python's index to C++'s; in debug builds an index out of bounds ends the thread and is reported.
Code Emitter::wrapped(const Expr& array, const Code& index, std::size_t axis, Place place) {
  if (!unit_.debug) return call("quern::wrap", {index.text, extent(array, axis).text}, Carrier::i64);
  std::vector<std::string> arguments = {index.text, fmt::format("{}", unit_.source->line_of(place.begin))};
  const std::size_t ndim = instance_.type(array)->ndim;
  for (std::size_t i = 0; i < ndim; ++i) arguments.push_back(extent(array, i).text);
  return call(fmt::format("quern::debug::index<{}>", axis), arguments, Carrier::i64);
}

std::vector<Code> Emitter::indices_of(const Expr& array, const Expr& index) {
  std::vector<Code> codes;
  const Type type = instance_.type(index);
  if (instance_.type(array)->ndim == 0) return codes;
  if (index.kind == ExprKind::tuple) {
    std::size_t axis = 0;
    for (const Expr* each : index.items)
      if (each->kind != ExprKind::ellipsis) codes.push_back(wrapped(array, *each, axis++));
  } else if (is_tuple(type)) {
    const Code tuple = once(index);
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

/// a[i][j] is a[i, j]: rows that are indexed at once need no view.
Code Emitter::element(const Expr& array, const Expr& index) {
  const Expr* owner = &array;
  std::vector<const Expr*> parts = {&index};
  const auto whole_number = [&](const Expr& part) {
    const Type type = instance_.type(part);
    return is_integral(type) || (part.kind == ExprKind::tuple && is_tuple(type) &&
                                 std::all_of(type->items.begin(), type->items.end(), is_integral));
  };
  while (owner->kind == ExprKind::subscript && held_code(*owner) == nullptr && whole_number(*parts.front()) &&
         is_array(instance_.type(*owner->items[0])) && whole_number(*owner->items[1])) {
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

Code Emitter::element_of(const Expr& array, const std::vector<Code>& indices) {
  const Carrier carrier = carrier_of(instance_.type(array)->element);
  const bool c_array = direct(array) != nullptr;
  Code base = c_array && array.kind == ExprKind::name && scope_.load(array) == kNoVersion
                  ? Code{cpp_name(array.name)}
                  : expression(array);
  std::string text = inside(base, Precedence::primary);
  if (c_array || indices.size() == 1) {
    for (const Code& index : indices) text += fmt::format("[{}]", index.text);
    return {text, Precedence::primary, carrier};
  }
  std::vector<std::string> list;
  for (const Code& index : indices) list.push_back(index.text);
  return {fmt::format("{}({})", text, fmt::join(list, ", ")), Precedence::primary, carrier};
}

/// a[i], a[1:n, ::2], a[..., 0] as a view of the type that inference chose.
Code Emitter::view_of(const Expr& array, const Expr& index, Type result) {
  std::vector<const Expr*> indices = {&index};
  if (index.kind == ExprKind::tuple) indices.assign(index.items.begin(), index.items.end());
  std::size_t given = 0, axis = 0;
  for (const Expr* each : indices) given += instance_.type(*each)->kind == TypeKind::ellipsis ? 0 : 1;
  const std::size_t ndim = instance_.type(array)->ndim;
  std::vector<std::string> arguments = {array_value(array).text};
  for (const Expr* each : indices) {
    const Type type = instance_.type(*each);
    if (type->kind == TypeKind::ellipsis) {
      for (std::size_t i = given; i < ndim; ++i, ++axis) arguments.emplace_back("quern::slice_all{}");
    } else if (type->kind == TypeKind::slice) {
      std::vector<std::string> parts;
      bool plain = true;
      for (std::size_t i = 0; i < 3; ++i) {
        const Expr* part = each->items[i];
        const bool absent = part == nullptr || part->kind == ExprKind::none;
        plain = plain && absent;
        parts.push_back(absent ? i == 2 ? "1" : "quern::slice_open" : expression(*part).text);
      }
      arguments.push_back(plain ? "quern::slice_all{}"
                                : fmt::format("quern::slice({})", fmt::join(parts, ", ")));
      ++axis;
    } else if (is_tuple(type)) {
      for (const Code& code : indices_of(array, *each)) arguments.push_back(code.text);
      axis += type->items.size();
    } else {
      arguments.push_back(wrapped(array, *each, axis).text);
      ++axis;
    }
  }
  for (; axis < ndim; ++axis) arguments.emplace_back("quern::slice_all{}");
  return call(fmt::format("quern::subview<{}>", cpp_type(result)), arguments, Carrier::other);
}

}  // namespace quern::frontend
