// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frontend/emit.hpp"
#include "frontend/literal.hpp"

namespace quern::frontend {
namespace {

bool is_bitwise(Tok op) { return op == Tok::bit_and || op == Tok::bit_or || op == Tok::bit_xor; }

}  // namespace

Code Emitter::expression(const Expr& expr) {
  if (!held_.empty())
    if (const Code* code = held_code(expr)) return *code;
  const std::size_t mark = held_.size();
  hold_operands(expr);
  Code code = folded(expr);
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(mark), held_.end());
  return code;
}

Code Emitter::folded(const Expr& expr) {
  const Type type = instance_.type(expr);
  const Value& value = instance_.constant(expr);
  // Arithmetic with literals alone is done here; names stay names.
  const bool folds = expr.kind == ExprKind::unary || expr.kind == ExprKind::binary;
  if (expr.kind == ExprKind::attribute && instance_.type(*expr.items[0]) == nullptr)
    return constant(value, type);
  if (folds && value.is_any_number() && is_number(type)) {
    bool literal = true;
    for (const Expr* item : expr.items)
      literal = literal && item->kind != ExprKind::name && item->kind != ExprKind::attribute;
    if (literal) return constant(value, type);
  }
  return compute(expr);
}

Code Emitter::compute(const Expr& expr) {
  const Type type = instance_.type(expr);
  switch (expr.kind) {
    case ExprKind::name:
      return name(expr);
    case ExprKind::integer:
    case ExprKind::real:
    case ExprKind::imaginary:
    case ExprKind::boolean:
      return constant(literal_value(expr), type);
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

/// For places where C++ converts implicitly (assignments, arguments): only other conversions are written out.
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
  if (is_complex(type)) {
    const bool single = carrier == Carrier::c64;
    return {fmt::format("{}({}, {})", cpp_of(carrier), real_literal(value.as_real(), single),
                        real_literal(value.imag, single)),
            Precedence::primary, carrier};
  }
  if (value.kind == Value::Kind::big)
    return {fmt::format("{}ULL", *value.big.as_uint64()), Precedence::primary, Carrier::u64};
  const bool narrow = value.integer >= INT32_MIN && value.integer <= INT32_MAX;
  Code code{integer_literal(value.integer),
            value.integer < 0 && value.integer != INT32_MIN ? Precedence::unary : Precedence::primary,
            narrow ? Carrier::i32 : Carrier::i64};
  return carrier == Carrier::u64 && value.integer >= 0 ? convert(code, Carrier::u64) : code;
}

Code Emitter::variable(std::uint32_t id) {
  const Variable& variable = variables_.all[id];
  if (is_record(variable.type) && !(variable.parameter && !instance_.kernel))
    return {fmt::format("(*{})", variable.name), Precedence::primary, Carrier::other};
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
  if (value.kind == Value::Kind::builtin && value.builtin->rule == Rule::int_value) {
    // CUDA's warpSize is 32 everywhere, and yet no constant: loops up to it would not be unrolled.
    const bool warp_size = value.builtin->cuda == "warpSize";
    return {warp_size ? "32" : std::string(value.builtin->cuda), Precedence::primary, Carrier::i32};
  }
  if (value.kind == Value::Kind::tuple) return constant(value, type);
  if (!value.is_any_number()) return {};
  Code code = constant(value, type);
  if (expr.kind != ExprKind::name && value.text.empty()) return code;
  std::string name = cpp_name(expr.kind == ExprKind::name ? expr.name : std::string_view(value.text));
  std::replace(name.begin(), name.end(), '.', '_');  // a member of an enumeration
  const std::string text = is_floating(type) || is_complex(type) ? initialiser(value, type) : code.text;
  unit_.constants.try_emplace(name, fmt::format("constexpr {} {} = {};", cpp_of(code.carrier), name, text));
  return {name, Precedence::primary, code.carrier};
}

/// The extents of an array that is a C array in C++: one of shared, local or constant memory, or a field of a
/// record.
const std::vector<std::int64_t>* Emitter::direct(const Expr& array) const {
  if (array.kind == ExprKind::attribute || array.kind == ExprKind::subscript) return field_extents(array);
  if (array.kind != ExprKind::name) return nullptr;
  const std::uint32_t version = scope_.load(array);
  if (version == kNoVersion) {
    const auto found = instance_.storages.find(array.id);
    return found == instance_.storages.end() ? nullptr : &found->second.extents;
  }
  const std::uint32_t variable = variables_.of_version[version];
  if (variable == kNoVariable || variables_.all[variable].storage == nullptr) return nullptr;
  return &variables_.all[variable].storage->extents;
}

const std::vector<std::int64_t>* Emitter::field_extents(const Expr& expr) const {
  const Type base = instance_.type(*expr.items[0]);
  if (base == nullptr || !is_record(base) || !is_array(instance_.type(expr))) return nullptr;
  const std::string_view name = expr.kind == ExprKind::attribute
                                    ? expr.name
                                    : std::string_view(instance_.constant(*expr.items[1]).text);
  for (const Field& field : base->fields)
    if (field.name == name) return &field.shape;
  return nullptr;
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
      if (callee->kind == TypeKind::dtype && is_number(callee->element)) return is_simple(*expr.items[1]);
      return callee->kind == TypeKind::builtin &&
             ((callee->builtin->rule == Rule::grid && is_number(instance_.type(expr))) ||
              (callee->builtin->rule == Rule::len && is_simple(*expr.items[1])));
    }
    default:
      return false;
  }
}

Code Emitter::extent(const Expr& array, std::size_t axis) {
  if (const auto* extents = direct(array))
    return {integer_literal((*extents)[axis]), Precedence::primary, Carrier::i32};
  return {fmt::format("{}.extents[{}]", inside(expression(array), Precedence::primary), axis),
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
    case TypeKind::module_:
      return global(expr, instance_.constant(expr));
    case TypeKind::vector:
      return {fmt::format("{}.{}", inside(expression(base), Precedence::primary), expr.name),
              Precedence::primary, carrier_of(type->element)};
    case TypeKind::dim3:
      return {fmt::format("{}.{}", type->builtin->cuda, expr.name), Precedence::primary, Carrier::u32};
    case TypeKind::record: {
      Code code = record_part(base, expr.name);
      code.carrier = carrier_of(instance_.type(expr));
      return code;
    }
    case TypeKind::complex:
      return {fmt::format("{}.{}", inside(expression(base), Precedence::primary), expr.name),
              Precedence::primary, carrier_of(instance_.type(expr))};
    case TypeKind::array:
      break;
    default:
      if (expr.name != "imag") return expression(base);
      discard(base);
      return constant(Value::of(std::int64_t{0}), instance_.type(expr));
  }
  if (is_record(type->element) && is_array(instance_.type(expr)) && expr.name != "T")
    return field_view(base, expr.name, instance_.type(expr));
  if (expr.name == "real" && !is_complex(type->element)) return array_value(base);
  if (expr.name == "real" || expr.name == "imag")
    return part_view(base, expr.name == "real" ? 0 : size_of(type->element) / 2, instance_.type(expr));
  if (instance_.constant(expr).kind == Value::Kind::integer) {
    discard(base);
    return constant(instance_.constant(expr), instance_.type(expr));
  }
  const std::string array = inside(array_value(base), Precedence::primary);
  if (expr.name == "size") return {array + ".size()", Precedence::primary, Carrier::i64};
  if (expr.name == "nbytes")
    return {fmt::format("{}.size() * {}", array, size_of(type->element)), Precedence::times, Carrier::i64};
  if (expr.name == "T")
    return call(fmt::format("quern::transpose<{}>", cpp_type(instance_.type(expr))), {array}, Carrier::other);
  if (expr.name == "strides") return call("quern::strides", {array}, Carrier::other);
  return call("quern::shape", {array}, Carrier::other);
}

/// record.field; of a variable that refers to one, pointer->field.
Code Emitter::record_part(const Expr& base, std::string_view field) {
  const std::string text = inside(expression(base), Precedence::primary);
  const bool refers = text.starts_with("(*") && text.find(')') == text.size() - 1;
  return {refers ? fmt::format("{}->{}", text.substr(2, text.size() - 3), cpp_name(field))
                 : fmt::format("{}.{}", text, cpp_name(field)),
          Precedence::primary, Carrier::other};
}

/// A field of every record of an array.
Code Emitter::field_view(const Expr& array, std::string_view field, Type result) {
  std::uint32_t offset = 0;
  for (const Field& each : instance_.type(array)->element->fields)
    if (each.name == field) offset = each.offset;
  return part_view(array, offset, result);
}

/// A view of the field at this byte offset in every element.
Code Emitter::part_view(const Expr& array, std::uint32_t offset, Type result) {
  return call(fmt::format("quern::field<{}>", cpp_type(result)),
              {array_value(array).text, fmt::format("{}", offset)}, Carrier::other);
}

Code Emitter::tuple(const Expr& expr) {
  const Type type = instance_.type(expr);
  if (is_valueless(type)) {
    for (const Expr* each : expr.items) discard(*each);
    return {};
  }
  std::vector<std::string> items;
  for (std::size_t i = 0; i < expr.items.size(); ++i) {
    const bool array = is_array(type->items[i]);
    items.push_back(array ? array_value(*expr.items[i]).text
                          : convert(expression(*expr.items[i]), carrier_of(type->items[i])).text);
  }
  return {fmt::format("{}{{{}}}", cpp_type(type), fmt::join(items, ", ")), Precedence::primary,
          Carrier::other};
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
      const Code whole = once(*side);
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
  const Code x = expression(left);
  return operate(op, x, a, checked_divisor(op, expression(right), right), b, result, range(expr), range(left),
                 range(right));
}

/// In debug builds division by zero ends the thread and is reported.
Code Emitter::checked_divisor(Tok op, const Code& code, const Expr& expr) {
  if (!unit_.debug || !instance_.may_divide_by_zero(op, expr)) return code;
  return call("quern::debug::divisor",
              {code.text, fmt::format("{}", unit_.source->line_of(expr.place.begin))}, code.carrier);
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
  meet(a, b, carrier);
  if (op == Tok::floor_divide || op == Tok::mod)
    return call(op == Tok::mod ? "quern::floor_mod" : "quern::floor_div",
                {convert(a, carrier).text, convert(b, carrier).text}, carrier);
  return infix(op, a, b, carrier);
}

Code Emitter::integer_operation(Tok op, Code left, Code right, Carrier result, const Range& range,
                                const Range& left_range, const Range& right_range) {
  constexpr std::int64_t kLeast = INT32_MIN, kMost = INT32_MAX;
  // Unsigned words whose values fit an int, such as threadIdx.x, are treated as int.
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
