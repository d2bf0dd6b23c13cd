// SPDX-License-Identifier: Apache-2.0
// Loops over arrays and tuples, also enumerated and zipped, to any depth: by one index.
#include <algorithm>

#include "frontend/emit.hpp"

namespace quern::frontend {

Code Emitter::range_code(const Expr& expr) {
  std::vector<std::string> bounds;
  for (std::size_t i = 1; i < expr.items.size(); ++i) bounds.push_back(expression(*expr.items[i]).text);
  const Carrier carrier = carrier_of(instance_.type(expr)->element);
  return call(fmt::format("quern::range<{}>", cpp_of(carrier)), bounds, Carrier::other);
}

/// An array, a tuple or a range, computed before the loop unless that costs nothing.
Emitter::Items Emitter::plain_items(const Stmt& loop, const Expr& source, const std::string& index) {
  const Type of = instance_.type(source);
  Code code;
  if (of->kind == TypeKind::range) {
    code = range_code(source);
  } else {
    code = is_array(of) ? array_value(source) : expression(source);
  }
  // The body may rebind the name; the loop iterates over the original value.
  if (!is_simple(source) || reads_assigned(scope_, source, loop.body, *loop.targets[0])) {
    const std::string held = temporary("items");
    line(fmt::format("const auto {} = {};", held, code.text));
    code = {held, Precedence::primary, code.carrier};
  }
  const std::string name = inside(code, Precedence::primary);
  if (of->kind == TypeKind::range)
    return {of->element,
            name + ".size()",
            {fmt::format("{}[{}]", name, index), Precedence::primary, carrier_of(of->element)},
            {}};
  if (is_tuple(of)) {
    const Type item = of->items.empty() ? unit_.types->int64 : of->items[0];
    return {item,
            fmt::format("{}LL", of->items.size()),
            {fmt::format("quern::item_at({}, {})", code.text, index), Precedence::primary, carrier_of(item)},
            {}};
  }
  const std::string length = fmt::format("{}.extents[0]", name);
  if (of->ndim == 1)
    return {of->element,
            length,
            {fmt::format("{}[{}]", name, index), Precedence::primary, carrier_of(of->element)},
            {}};
  const Type item =
      unit_.types->array(of->element, of->ndim - 1u, of->layout == 'C' ? 'C' : 'A', of->read_only);
  std::string all;
  for (unsigned axis = 1; axis < of->ndim; ++axis) all += ", quern::slice_all{}";
  return {item,
          length,
          {fmt::format("quern::subview<{}>({}, {}{})", cpp_type(item), code.text, index, all),
           Precedence::primary, Carrier::other},
          {}};
}

/// Side by side, to the shortest.
Emitter::Items Emitter::zipped(std::vector<Items> parts) {
  Items result;
  std::vector<Type> types;
  for (const Items& part : parts) {
    types.push_back(part.type);
    if (part.length.empty()) continue;
    result.length =
        result.length.empty() ? part.length : call("min", {result.length, part.length}, Carrier::i64).text;
  }
  result.type = unit_.types->tuple(std::move(types));
  result.parts = std::move(parts);
  return result;
}

Emitter::Items Emitter::items_of(const Stmt& loop, const Expr& source, const std::string& index) {
  const TypeKind kind = instance_.type(source)->kind;
  if (kind != TypeKind::enumerate && kind != TypeKind::zip) return plain_items(loop, source, index);
  std::vector<Items> parts;
  if (kind == TypeKind::zip) {
    for (std::size_t i = 1; i < source.items.size(); ++i)
      parts.push_back(items_of(loop, *source.items[i], index));
    return zipped(std::move(parts));
  }
  parts.push_back(items_of(loop, *source.items[1], index));
  Items number{unit_.types->int64, {}, {index, Precedence::primary, Carrier::i64}, {}};
  if (const Expr* start = enumerate_start(source)) {
    const bool changes = reads_assigned(scope_, *start, loop.body, *loop.targets[0]);
    const Code first = changes ? held(expression(*start), instance_.type(*start)) : once(*start);
    number.code = infix(Tok::plus, number.code, first, Carrier::i64);
  }
  parts.insert(parts.begin(), std::move(number));
  return zipped(std::move(parts));
}

/// All items as one value: a tuple for enumerate and zip.
Code Emitter::whole_item(const Items& items) {
  if (items.parts.empty()) return items.code;
  std::vector<std::string> parts;
  for (const Items& part : items.parts) parts.push_back(whole_item(part).text);
  return {fmt::format("{}{{{}}}", cpp_type(items.type), fmt::join(parts, ", ")), Precedence::primary,
          Carrier::other};
}

void Emitter::assign_item(const Expr& target, const Items& items) {
  const bool several = target.kind == ExprKind::tuple || target.kind == ExprKind::list;
  // A target that is not a name could change variables that the later parts read.
  const bool names = std::all_of(target.items.begin(), target.items.end(), [](const Expr* each) {
    return each->kind == ExprKind::name || each->kind == ExprKind::tuple || each->kind == ExprKind::list;
  });
  if (!several || items.parts.empty() || !names) return assign_to(target, whole_item(items), items.type);
  for (std::size_t i = 0; i < target.items.size(); ++i) assign_item(*target.items[i], items.parts[i]);
}

void Emitter::for_items(const Stmt& node) {
  const std::string index = temporary("k");
  const Items items = items_of(node, *node.value, index);
  open(fmt::format("for (long long {0} = 0; {0} < {1}; ++{0}) {{", index, items.length));
  const std::uint32_t outer = block_;
  const int outer_index = index_;
  block_ = variables_.block_of[&node.body];
  index_ = -1;
  assign_item(*node.targets[0], items);
  block_ = outer;
  index_ = outer_index;
}

}  // namespace quern::frontend
