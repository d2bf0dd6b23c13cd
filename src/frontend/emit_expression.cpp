// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frontend/emit.hpp"

namespace quern::frontend {
namespace {

bool is_bitwise(Tok op) { return op == Tok::bit_and || op == Tok::bit_or || op == Tok::bit_xor; }

}  // namespace

Code Emitter::expression(const Expr& expr) {
  const Type type = instance_.type(expr);
  const Value& value = instance_.constant(expr);
  // Arithmetic with literals alone is done here; names stay names.
  const bool folds = expr.kind == ExprKind::unary || expr.kind == ExprKind::binary;
  if (folds && value.is_number() && is_number(type)) {
    bool literal = true;
    for (const Expr* item : expr.items)
      literal = literal && item->kind != ExprKind::name && item->kind != ExprKind::attribute;
    if (literal && (is_integral(type) ? value.kind != Value::Kind::real : true)) return constant(value, type);
  }
  return compute(expr);
}

Code Emitter::compute(const Expr& expr) {
  const Type type = instance_.type(expr);
  switch (expr.kind) {
    case ExprKind::name:
      return name(expr);
    case ExprKind::integer:
      if (expr.integer > static_cast<std::uint64_t>(INT64_MAX))
        return {fmt::format("{}ULL", expr.integer), Precedence::primary, Carrier::u64};
      return constant(Value::of(static_cast<std::int64_t>(expr.integer)), type);
    case ExprKind::real:
      return constant(Value::of(expr.real), type);
    case ExprKind::imaginary:
      return {fmt::format("quern::complex<double>(0.0, {})", real_literal(expr.real, false)),
              Precedence::primary, Carrier::c128};
    case ExprKind::boolean:
      return {expr.integer != 0 ? "true" : "false", Precedence::primary, Carrier::boolean};
    case ExprKind::none:
      return {"0", Precedence::primary, Carrier::i32};
    case ExprKind::tuple:
      return tuple(expr);
    case ExprKind::attribute:
      return attribute(expr);
    case ExprKind::subscript:
      return subscript(expr);
    case ExprKind::call:
      return call_expression(expr);
    case ExprKind::unary:
      return unary(expr);
    case ExprKind::binary:
      return binary(expr, expr.op, *expr.items[0], *expr.items[1]);
    case ExprKind::compare:
      return compare(expr);
    case ExprKind::logical:
      return logical(expr);
    case ExprKind::conditional:
      return conditional(expr);
    default:
      return {};
  }
}

Code Emitter::as(const Expr& expr, Type type) {
  return converted(expression(expr), instance_.type(expr), type);
}

/// For places where C++ converts by itself (assignments, arguments): only what it cannot do is written out.
Code Emitter::converted(const Code& code, Type from, Type to) {
  if (from == to || from == nullptr) return code;
  const Carrier target = carrier_of(to);
  if (target == Carrier::f16 || target == Carrier::bf16 || code.carrier == Carrier::f16 ||
      code.carrier == Carrier::bf16 || target == Carrier::c64 || target == Carrier::c128)
    return convert(code, target);
  return code;
}

Code Emitter::constant(const Value& value, Type type) {
  if (value.kind == Value::Kind::tuple) {
    std::vector<std::string> items;
    for (std::size_t i = 0; i < value.items.size(); ++i)
      items.push_back(constant(value.items[i], type->items[i]).text);
    return {fmt::format("{}{{{}}}", cpp_type(type), fmt::join(items, ", ")), Precedence::primary,
            Carrier::other};
  }
  const Carrier carrier = carrier_of(type);
  if (value.kind == Value::Kind::boolean && type->kind == TypeKind::boolean)
    return {value.integer != 0 ? "true" : "false", Precedence::primary, Carrier::boolean};
  if (is_floating(type)) {
    const double number = value.as_real();
    const bool single = carrier == Carrier::f32;
    Code code{real_literal(number, single), number < 0 ? Precedence::unary : Precedence::primary,
              single ? Carrier::f32 : Carrier::f64};
    return carrier == Carrier::f16 || carrier == Carrier::bf16 ? convert(code, carrier) : code;
  }
  const bool narrow = value.integer >= INT32_MIN && value.integer <= INT32_MAX;
  Code code{integer_literal(value.integer),
            value.integer < 0 && value.integer != INT32_MIN ? Precedence::unary : Precedence::primary,
            narrow ? Carrier::i32 : Carrier::i64};
  return carrier == Carrier::u64 && value.integer >= 0 ? convert(code, Carrier::u64) : code;
}

Code Emitter::variable(std::uint32_t id) {
  const Variable& variable = variables_.all[id];
  return {variable.name, Precedence::primary, variable.narrow ? Carrier::i32 : carrier_of(variable.type)};
}

Code Emitter::name(const Expr& expr) {
  const std::uint32_t version = scope_.load(expr);
  if (version != kNoVersion) {
    if (variables_.of_version[version] != kNoVariable) return variable(variables_.of_version[version]);
    return {"0", Precedence::primary, Carrier::i32};
  }
  return global(expr, unit_.names->global(expr.name));
}

/// A number of the file's level becomes a constexpr of the same name.
Code Emitter::global(const Expr& expr, const Value& value) {
  const Type type = instance_.type(expr);
  if (value.kind == Value::Kind::builtin && value.builtin->rule == Rule::int_value)
    return {std::string(value.builtin->cuda), Precedence::primary, Carrier::i32};
  if (value.kind == Value::Kind::tuple) return constant(value, type);
  if (!value.is_number()) return {};
  Code code = constant(value, type);
  if (expr.kind != ExprKind::name) return code;
  const std::string name = cpp_name(expr.name);
  unit_.constants.try_emplace(name,
                              fmt::format("constexpr {} {} = {};", cpp_of(code.carrier), name, code.text));
  return {name, Precedence::primary, code.carrier};
}

const Storage* Emitter::direct(const Expr& array) const {
  if (array.kind != ExprKind::name) return nullptr;
  const std::uint32_t version = scope_.load(array);
  if (version == kNoVersion) {
    const auto found = instance_.storages.find(array.id);
    return found == instance_.storages.end() ? nullptr : &found->second;
  }
  const std::uint32_t variable = variables_.of_version[version];
  return variable == kNoVariable ? nullptr : variables_.all[variable].storage;
}

/// Evaluating it twice is as good as once.
bool Emitter::is_simple(const Expr& expr) const {
  switch (expr.kind) {
    case ExprKind::name:
    case ExprKind::integer:
    case ExprKind::real:
    case ExprKind::boolean:
      return true;
    case ExprKind::attribute:
      return is_simple(*expr.items[0]);
    case ExprKind::unary:
      return is_simple(*expr.items[0]);
    case ExprKind::call: {
      const Type callee = instance_.type(*expr.items[0]);
      return callee->kind == TypeKind::builtin &&
             (callee->builtin->rule == Rule::grid ||
              (callee->builtin->rule == Rule::len && is_simple(*expr.items[1])));
    }
    default:
      return false;
  }
}

Code Emitter::extent(const Expr& array, std::size_t axis) {
  if (const Storage* storage = direct(array))
    return {integer_literal(storage->extents[axis]), Precedence::primary, Carrier::i32};
  return {fmt::format("{}.extent({})", inside(expression(array), Precedence::primary), axis),
          Precedence::primary, Carrier::i64};
}

/// An array as a value that can be passed on: views of those that are C arrays.
Code Emitter::array_value(const Expr& array) {
  Code code = array.kind == ExprKind::name && scope_.load(array) == kNoVersion ? Code{cpp_name(array.name)}
                                                                               : expression(array);
  if (direct(array) == nullptr) return code;
  return {fmt::format("quern::view({})", code.text), Precedence::primary, Carrier::other};
}

Code Emitter::item(const Code& tuple, std::size_t index, Type type) {
  return {fmt::format("quern::item<{}>({})", index, tuple.text), Precedence::primary, carrier_of(type)};
}

Code Emitter::attribute(const Expr& expr) {
  const Expr& base = *expr.items[0];
  const Type type = instance_.type(base);
  switch (type->kind) {
    case TypeKind::module_: {
      const Value& value = instance_.constant(expr);
      return global(expr, value);
    }
    case TypeKind::dim3:
      return {fmt::format("{}.{}", instance_.constant(base).builtin->cuda, expr.name), Precedence::primary,
              Carrier::u32};
    case TypeKind::record:
      return {fmt::format("{}.{}", inside(expression(base), Precedence::primary), cpp_name(expr.name)),
              Precedence::primary, carrier_of(instance_.type(expr))};
    case TypeKind::complex:
      return {fmt::format("{}.{}", inside(expression(base), Precedence::primary), expr.name),
              Precedence::primary, carrier_of(instance_.type(expr))};
    case TypeKind::array:
      break;
    default:
      return expr.name == "real" ? expression(base)
                                 : constant(Value::of(std::int64_t{0}), instance_.type(expr));
  }
  if (instance_.constant(expr).kind == Value::Kind::integer)
    return constant(instance_.constant(expr), instance_.type(expr));
  const std::string array = inside(array_value(base), Precedence::primary);
  if (expr.name == "size") return {array + ".size()", Precedence::primary, Carrier::i64};
  if (expr.name == "nbytes")
    return {fmt::format("{}.size() * {}", array, size_of(type->element)), Precedence::times, Carrier::i64};
  if (expr.name == "T")
    return call(fmt::format("quern::transpose<{}>", cpp_type(instance_.type(expr))), {array}, Carrier::other);
  if (expr.name == "strides") return call("quern::strides", {array}, Carrier::other);
  return call("quern::shape", {array}, Carrier::other);
}

Code Emitter::tuple(const Expr& expr) {
  const Type type = instance_.type(expr);
  std::vector<std::string> items;
  for (std::size_t i = 0; i < expr.items.size(); ++i) {
    const bool array = is_array(type->items[i]);
    items.push_back(array ? array_value(*expr.items[i]).text
                          : convert(expression(*expr.items[i]), carrier_of(type->items[i])).text);
  }
  return {fmt::format("{}{{{}}}", cpp_type(type), fmt::join(items, ", ")), Precedence::primary,
          Carrier::other};
}

// Indexing.

Code Emitter::subscript(const Expr& expr) {
  const Expr &base = *expr.items[0], &index = *expr.items[1];
  const Type type = instance_.type(base), result = instance_.type(expr);
  if (is_array(type)) {
    if (is_array(result)) return view_of(base, index, result);
    return element(base, index);
  }
  if (type->kind == TypeKind::record)
    return {fmt::format("{}.{}", inside(expression(base), Precedence::primary),
                        cpp_name(instance_.constant(index).text)),
            Precedence::primary, carrier_of(result)};
  const Value& at = instance_.constant(index);
  const auto count = static_cast<std::int64_t>(type->items.size());
  if (index.kind == ExprKind::slice) {
    std::int64_t first = 0;
    if (index.items[0] != nullptr) {
      first = instance_.constant(*index.items[0]).integer;
      first = std::clamp<std::int64_t>(first < 0 ? first + count : first, 0, count);
    }
    const Code whole = expression(base);
    std::vector<std::string> items;
    for (std::size_t i = 0; i < result->items.size(); ++i)
      items.push_back(item(whole, static_cast<std::size_t>(first) + i, result->items[i]).text);
    return {fmt::format("{}{{{}}}", cpp_type(result), fmt::join(items, ", ")), Precedence::primary,
            Carrier::other};
  }
  if (at.kind == Value::Kind::integer) {
    const auto place = static_cast<std::size_t>(at.integer < 0 ? at.integer + count : at.integer);
    if (base.kind == ExprKind::attribute && base.name == "shape" && is_array(instance_.type(*base.items[0])))
      return extent(*base.items[0], place);
    if (base.kind == ExprKind::tuple) return convert(expression(*base.items[place]), carrier_of(result));
    const Value& whole = instance_.constant(base);
    if (whole.kind == Value::Kind::tuple) return constant(whole.items[place], result);
    return item(expression(base), place, result);
  }
  return {fmt::format("quern::item_at({}, {})", expression(base).text, expression(index).text),
          Precedence::primary, carrier_of(result)};
}

/// The index of one axis; a negative one counts from the end.
Code Emitter::wrapped(const Expr& array, const Expr& index, std::size_t axis) {
  const Code code = expression(index);
  const Type type = instance_.type(index);
  if (!is_integer(type) || !type->is_signed || range(index).low >= 0) return code;
  const Code length = extent(array, axis);
  const Value& value = instance_.constant(index);
  if (value.kind == Value::Kind::integer && value.integer < 0 && value.integer != INT64_MIN)
    return {fmt::format("{} - {}", inside(length, Precedence::plus), integer_literal(-value.integer)),
            Precedence::plus, length.carrier};
  return call("quern::wrap", {code.text, length.text}, Carrier::i64);
}

std::vector<Code> Emitter::indices_of(const Expr& array, const Expr& index) {
  std::vector<Code> codes;
  const Type type = instance_.type(index);
  if (index.kind == ExprKind::tuple) {
    for (std::size_t axis = 0; axis < index.items.size(); ++axis)
      codes.push_back(wrapped(array, *index.items[axis], axis));
  } else if (is_tuple(type)) {
    const Code tuple = expression(index);
    for (std::size_t axis = 0; axis < type->items.size(); ++axis) {
      const Code part = item(tuple, axis, type->items[axis]);
      const bool may_wrap = is_integer(type->items[axis]) && type->items[axis]->is_signed;
      codes.push_back(may_wrap ? call("quern::wrap", {part.text, extent(array, axis).text}, Carrier::i64)
                               : part);
    }
  } else {
    codes.push_back(wrapped(array, index, 0));
  }
  return codes;
}

Code Emitter::element(const Expr& array, const Expr& index) {
  return element_of(array, indices_of(array, index));
}

Code Emitter::element_of(const Expr& array, const std::vector<Code>& indices) {
  const Carrier carrier = carrier_of(instance_.type(array)->element);
  const bool c_array = direct(array) != nullptr;
  Code base = c_array && scope_.load(array) == kNoVersion ? Code{cpp_name(array.name)} : expression(array);
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

// Operators.

/// `-x` or `~x` of an integer that is unsigned or narrower than 64 bits.
Code Emitter::negated(const Expr& expr, Code code, Type own) {
  const Carrier carrier = carrier_of(own);
  const bool word = own->bits >= 32;
  if (word) code = convert(code, carrier);
  const std::string text = inside(code, Precedence::unary);
  const std::string_view sign = text_of(expr.op);
  const std::string_view gap = text.starts_with(sign) ? " " : "";  // - -x is not --x
  const Code result{fmt::format("{}{}{}", sign, gap, text), Precedence::unary, word ? carrier : Carrier::i32};
  const bool fits =
      own->is_signed && (expr.op == Tok::invert || range(*expr.items[0]).low > -(1LL << (own->bits - 1)));
  return word || fits ? result : convert(result, carrier);
}

Code Emitter::unary(const Expr& expr) {
  const Expr& operand = *expr.items[0];
  const Type type = instance_.type(expr);
  if (expr.op == Tok::k_not) {
    const Code code = condition(operand);
    return {"!" + inside(code, Precedence::unary), Precedence::unary, Carrier::boolean};
  }
  Code code = expression(operand);
  if (expr.op == Tok::invert && type->kind == TypeKind::boolean)
    return {"!" + inside(code, Precedence::unary), Precedence::unary, Carrier::boolean};
  if (is_integral(type)) {
    // Numba negates and inverts in the operand's own type and widens then.
    const Type own = instance_.type(operand);
    if (is_integer(own) && expr.op != Tok::plus && (!own->is_signed || own->bits < 64))
      return negated(expr, code, own);
    const bool narrow =
        fits_int(code.carrier) && (expr.op != Tok::minus || range(expr).within(INT32_MIN, INT32_MAX));
    code = narrow ? Code{code.text, code.precedence, Carrier::i32} : convert(code, carrier_of(type));
  }
  if (expr.op == Tok::plus) return code;
  const std::string_view sign = text_of(expr.op);
  const std::string text = inside(code, Precedence::unary);
  const bool doubled = text.starts_with(sign);  // - -x is not --x
  return {fmt::format("{}{}{}", sign, doubled ? " " : "", text), Precedence::unary, code.carrier};
}

Code Emitter::binary(const Expr& expr, Tok op, const Expr& left, const Expr& right) {
  const Type a = instance_.type(left), b = instance_.type(right), result = instance_.type(expr);
  if (is_tuple(result)) {
    std::vector<std::string> items;
    for (const Expr* side : {&left, &right}) {
      const Code whole = expression(*side);
      const Type type = instance_.type(*side);
      for (std::size_t i = 0; i < type->items.size(); ++i)
        items.push_back(item(whole, i, type->items[i]).text);
    }
    return {fmt::format("{}{{{}}}", cpp_type(result), fmt::join(items, ", ")), Precedence::primary,
            Carrier::other};
  }
  // A square of something simple is a product.
  const Value& exponent = instance_.constant(right);
  if (op == Tok::power && exponent.kind == Value::Kind::integer && exponent.integer == 2 && is_simple(left) &&
      !is_complex(a))
    return operate(Tok::times, expression(left), a, expression(left), a, result, range(expr), range(left),
                   range(left));
  return operate(op, expression(left), a, expression(right), b, result, range(expr), range(left),
                 range(right));
}

Code Emitter::operate(Tok op, const Code& left, Type left_type, const Code& right, Type right_type,
                      Type result, const Range& range, const Range& left_range, const Range& right_range) {
  const Carrier carrier = carrier_of(result);
  if (op == Tok::power) return power(left, left_type, right, right_type, result);
  if (is_integral(left_type) && is_integral(right_type)) {
    if (op == Tok::divide)
      return infix(op, convert(left, Carrier::f64), convert(right, Carrier::f64), Carrier::f64);
    if (result->kind == TypeKind::boolean)
      return {infix(op, left, right, Carrier::boolean).text, precedence_of(op), Carrier::boolean};
    return integer_operation(op, left, right, carrier, range, left_range, right_range);
  }
  if (is_complex(result)) {
    const Code a = convert(left, carrier), b = convert(right, carrier);
    return infix(op, a, b, carrier);
  }
  Code a = left, b = right;
  if (promoted(a.carrier, b.carrier) != carrier || a.carrier == Carrier::f16 || b.carrier == Carrier::f16) {
    // One converted operand takes the other along, unless that would round it on the way.
    const bool left_fits = a.carrier == carrier || is_integer(a.carrier) || carrier == Carrier::f64;
    a = convert(a, carrier);
    if (!left_fits || b.carrier == Carrier::f16 || b.carrier == Carrier::bf16 || carrier == Carrier::f16)
      b = convert(b, carrier);
  }
  if (op == Tok::floor_divide || op == Tok::mod)
    return call(op == Tok::mod ? "quern::floor_mod" : "quern::floor_div",
                {convert(a, carrier).text, convert(b, carrier).text}, carrier);
  return infix(op, a, b, carrier);
}

Code Emitter::integer_operation(Tok op, Code left, Code right, Carrier result, const Range& range,
                                const Range& left_range, const Range& right_range) {
  constexpr std::int64_t kLeast = INT32_MIN, kMost = INT32_MAX;
  // Unsigned words whose values fit an int, such as threadIdx.x, are taken for one.
  const auto as_int = [&](Code& code, const Range& of) {
    if (code.carrier == Carrier::u32 && of.within(0, kMost) && result == Carrier::i64)
      code = convert(code, Carrier::i32);
  };
  as_int(left, left_range);
  as_int(right, right_range);
  const bool ints = fits_int(left.carrier) && fits_int(right.carrier);
  const bool shift_fits = right_range.within(0, 31);
  const bool narrow =
      ints && (is_bitwise(op) ? result == Carrier::i64
                              : range.within(kLeast, kMost) && (op != Tok::right_shift || shift_fits) &&
                                    (op != Tok::left_shift || (shift_fits && left_range.low >= 0)));
  const bool positive = left_range.low >= 0 && left_range.exact && right_range.low > 0 && right_range.exact;
  if ((op == Tok::floor_divide || op == Tok::mod) && !positive) {
    const Carrier in = narrow && left_range.within(kLeast + 1, kMost) && right_range.within(kLeast, kMost)
                           ? Carrier::i32
                           : result;
    return call(op == Tok::mod ? "quern::floor_mod" : "quern::floor_div",
                {convert(left, in).text, convert(right, in).text}, in);
  }
  if (narrow) return infix(op, left, right, Carrier::i32);
  if (op == Tok::left_shift || op == Tok::right_shift) return infix(op, convert(left, result), right, result);
  if (promoted(left.carrier, right.carrier) == result) return infix(op, left, right, result);
  // Converting one operand converts the other; of different signs both are.
  if (left.carrier == Carrier::u64 || right.carrier == Carrier::u64)
    return infix(op, convert(left, result), convert(right, result), result);
  const bool literal_left = left.precedence == Precedence::primary && !left.text.empty() &&
                            left.text[0] >= '0' && left.text[0] <= '9';
  if (literal_left) return infix(op, left, convert(right, result), result);
  return infix(op, convert(left, result), right, result);
}

Code Emitter::power(const Code& left, Type left_type, const Code& right, Type right_type, Type result) {
  const Carrier carrier = carrier_of(result);
  if (is_complex(result))
    return call("quern::power", {convert(left, carrier).text, convert(right, carrier).text}, carrier);
  if (is_integral(right_type)) {
    static_cast<void>(left_type);
    const Carrier exponent = right.carrier == Carrier::u64 ? Carrier::u64 : Carrier::i64;
    return call(
        "quern::power",
        {convert(left, carrier).text, fits_int(right.carrier) ? right.text : convert(right, exponent).text},
        carrier);
  }
  return call("pow", {convert(left, carrier).text, convert(right, carrier).text}, carrier);
}

}  // namespace quern::frontend
