// SPDX-License-Identifier: Apache-2.0
#include "frontend/values/array_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/values/literal.hpp"

namespace quern::frontend {
using Kind = Value::Kind;

namespace {

constexpr std::int64_t kMostFieldBytes = std::int64_t{1} << 20;

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

Value array_of(std::vector<Value> elements, std::vector<std::int64_t> shape, Type dtype) {
  Value array;
  array.kind = Kind::array;
  for (Value& element : elements) {
    element = cast(element, dtype);
    if (element.kind == Kind::unknown)
      return Value::host(fmt::format("an array with a value that is no {}", text_of(dtype)));
  }
  array.items = std::move(elements);
  array.shape = std::move(shape);
  array.type = dtype;
  return array;
}

namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 16;

/// Collects the numbers of nested lists, or the records, which are tuples there. Returns false for ragged
/// lists and for other items.
bool flatten(const Value& nested, bool records, std::size_t depth, std::vector<Value>& elements,
             std::vector<std::int64_t>& shape) {
  if (nested.kind == Kind::array) {
    if (depth != 0) return false;
    elements = nested.items;
    shape = nested.shape;
    return true;
  }
  const bool leaf = records ? nested.kind == Kind::tuple && !nested.list : nested.kind != Kind::tuple;
  if (leaf) {
    if ((!records && !nested.is_any_number()) || depth != shape.size()) return false;
    elements.push_back(nested);
    return true;
  }
  if (nested.kind != Kind::tuple) return false;
  const auto extent = static_cast<std::int64_t>(nested.items.size());
  if (depth == shape.size()) {
    if (!elements.empty()) return false;
    shape.push_back(extent);
  }
  if (shape[depth] != extent) return false;
  return std::all_of(nested.items.begin(), nested.items.end(),
                     [&](const Value& item) { return flatten(item, records, depth + 1, elements, shape); });
}

/// np.array's dtype if none is given: the largest kind among the elements. Null if NumPy would choose between
/// NumPy types.
Type natural_dtype(const TypeTable& types, const std::vector<Value>& elements) {
  if (elements.empty()) return types.float64;
  const auto any = [&](Kind kind) {
    return std::any_of(elements.begin(), elements.end(),
                       [&](const Value& each) { return each.kind == kind; });
  };
  const Type first = elements.front().type;
  if (std::any_of(elements.begin(), elements.end(), [&](const Value& each) { return each.type != first; }))
    return nullptr;
  if (first != nullptr) return first;
  if (any(Kind::complex)) return types.complex128;
  if (any(Kind::real)) return types.float64;
  if (any(Kind::big)) {
    const bool fit = std::all_of(elements.begin(), elements.end(),
                                 [](const Value& each) { return each.as_whole().as_uint64().has_value(); });
    return fit ? types.uint64 : nullptr;
  }
  return any(Kind::integer) ? types.int64 : types.boolean;
}

Value filled(const Value& shape, const Value& with, Type dtype) {
  const auto extents = shape_of(shape);
  if (!extents || dtype == nullptr || is_record(dtype)) return {};
  std::size_t count = 1;
  for (const std::int64_t extent : *extents) {
    if (extent < 0 || (extent > 0 && count > kMostElements / static_cast<std::size_t>(extent))) return {};
    count *= static_cast<std::size_t>(extent);
  }
  return array_of(std::vector<Value>(count, with), *extents, dtype);
}

/// As in NumPy, the step is the difference of the first two elements after rounding.
template <class T>
Value arange_of(double start, double step, std::size_t count, Type dtype) {
  const T first = static_cast<T>(start), between = static_cast<T>(static_cast<T>(start + step) - first);
  std::vector<Value> elements;
  for (std::size_t i = 0; i < count; ++i)
    elements.push_back(Value::of(static_cast<double>(first + static_cast<T>(i) * between)));
  return array_of(std::move(elements), {static_cast<std::int64_t>(count)}, dtype);
}

Value arange(const std::vector<Value>& arguments, Type dtype, const TypeTable& types) {
  Value start = Value::of(std::int64_t{0}), step = Value::of(std::int64_t{1}), stop;
  if (arguments.size() == 1) stop = arguments[0];
  if (arguments.size() >= 2) start = arguments[0], stop = arguments[1];
  if (arguments.size() >= 3) step = arguments[2];
  if (arguments.size() > 3 || !start.is_number() || !stop.is_number() || !step.is_number() || step.is_zero())
    return {};
  const double extent = std::ceil((stop.as_real() - start.as_real()) / step.as_real());
  if (!(extent <= static_cast<double>(kMostElements))) return {};
  const auto count = extent > 0 ? static_cast<std::size_t>(extent) : std::size_t{0};
  const bool whole = start.is_whole() && stop.is_whole() && step.is_whole();
  if (dtype == nullptr) dtype = whole ? types.int64 : types.float64;
  if (is_floating(dtype))
    return dtype->bits < 64 ? arange_of<float>(start.as_real(), step.as_real(), count, dtype)
                            : arange_of<double>(start.as_real(), step.as_real(), count, dtype);
  if (!whole) return {};
  std::vector<Value> elements;
  for (std::size_t i = 0; i < count; ++i) {
    const auto far =
        BigInteger::compute(Tok::times, step.as_whole(), BigInteger(static_cast<std::int64_t>(i)));
    elements.push_back(Value::of(*BigInteger::compute(Tok::plus, start.as_whole(), *far)));
  }
  return array_of(std::move(elements), {static_cast<std::int64_t>(count)}, dtype);
}

Value linspace(const std::vector<Value>& arguments, Type dtype, const TypeTable& types) {
  const Value count = arguments.size() == 2   ? Value::of(std::int64_t{50})
                      : arguments.size() == 3 ? arguments[2]
                                              : Value{};
  if (count.kind != Kind::integer || !arguments[0].is_number() || !arguments[1].is_number() ||
      count.integer < 0 || count.integer > static_cast<std::int64_t>(kMostElements))
    return {};
  const double start = arguments[0].as_real(), stop = arguments[1].as_real();
  const double step = count.integer > 1 ? (stop - start) / static_cast<double>(count.integer - 1) : 0;
  std::vector<Value> elements;
  for (std::int64_t i = 0; i < count.integer; ++i)
    elements.push_back(Value::of(
        i == count.integer - 1 && count.integer > 1 ? stop : start + static_cast<double>(i) * step));
  return array_of(std::move(elements), {count.integer}, dtype != nullptr ? dtype : types.float64);
}

/// True for keyword arguments without effect here, and for `dtype`, which was read. Other arguments are
/// rejected by name.
bool is_harmless(std::string_view name, const Value& value) {
  if (name == "dtype" || name == "copy") return true;
  if (name == "order")
    return value.kind == Kind::string && (value.text == "C" || value.text == "K" || value.text == "A");
  return name == "endpoint" && value.kind == Kind::boolean && !value.is_zero();
}

/// A call of a NumPy function that creates an array.
struct MakerCall {
  const TypeTable& types;
  const std::vector<Value>& arguments;
  Type dtype;               ///< null if none is given
  std::int64_t dimensions;  ///< the least number of dimensions (ndmin)
};

/// An array whose elements are all the same number, with the extents in the first argument.
Value filled_with(const MakerCall& call, const Value& number, Type otherwise) {
  return filled(call.arguments[0], number, call.dtype != nullptr ? call.dtype : otherwise);
}

Value zeros(const MakerCall& call) {
  return call.arguments.size() == 1 ? filled_with(call, Value::of(0.0), call.types.float64) : Value{};
}

Value ones(const MakerCall& call) {
  return call.arguments.size() == 1 ? filled_with(call, Value::of(1.0), call.types.float64) : Value{};
}

Value full(const MakerCall& call) {
  if (call.arguments.size() != 2 || !call.arguments[1].is_any_number()) return {};
  return filled_with(call, call.arguments[1], natural_dtype(call.types, {call.arguments[1]}));
}

Value copied(const MakerCall& call) {
  if (call.arguments.size() != 1) return {};
  const Value& source = call.arguments[0];
  std::vector<Value> elements;
  std::vector<std::int64_t> shape;
  const bool records = call.dtype != nullptr && is_record(call.dtype);
  if (!flatten(source, records, 0, elements, shape)) return {};
  const Type natural = source.kind == Kind::array ? source.type : natural_dtype(call.types, elements);
  if (call.dtype == nullptr && natural == nullptr) return Value::host("an array of several of NumPy's types");
  while (static_cast<std::int64_t>(shape.size()) < call.dimensions) shape.insert(shape.begin(), 1);
  return array_of(std::move(elements), std::move(shape), call.dtype != nullptr ? call.dtype : natural);
}

struct Maker {
  std::string_view path;
  bool ndmin;  ///< it accepts the argument of this name
  Value (*make)(const MakerCall&);
};
constexpr Maker kMakers[] = {
    {"numpy.array", true, copied},
    {"numpy.asarray", false, copied},
    {"numpy.arange", false,
     [](const MakerCall& call) { return arange(call.arguments, call.dtype, call.types); }},
    {"numpy.linspace", false,
     [](const MakerCall& call) { return linspace(call.arguments, call.dtype, call.types); }},
    {"numpy.zeros", false, zeros},
    {"numpy.ones", false, ones},
    {"numpy.full", false, full},
};

}  // namespace

Value numpy_array(const TypeTable& types, std::string_view path, const HostCall& call) {
  const Maker* maker = std::ranges::find(kMakers, path, &Maker::path);
  if (maker == std::end(kMakers)) return {};
  if (call.odd_dtype) return Value::host("an array of a type that kernels do not have");
  std::int64_t dimensions = 0;
  for (const auto& [name, value] : call.named) {
    if (name == "ndmin" && maker->ndmin && value.kind == Kind::integer && value.integer <= 8)
      dimensions = value.integer;
    else if (!is_harmless(name, value))
      return Value::host(fmt::format("an array made with '{}'", name));
  }
  return maker->make({types, call.arguments, call.dtype, dimensions});
}

namespace {

Value cast_record(const Value& value, Type record) {
  if (value.kind != Kind::tuple || value.items.size() != record->fields.size()) return {};
  Value result;
  result.kind = Kind::tuple;
  for (std::size_t i = 0; i < record->fields.size(); ++i) {
    const Field& field = record->fields[i];
    if (field.shape.empty()) {
      result.items.push_back(cast(value.items[i], field.type));
    } else {
      std::vector<Value> elements;
      std::vector<std::int64_t> shape;
      if (is_record(field.type) || !flatten(value.items[i], false, 0, elements, shape) ||
          shape != field.shape)
        return {};
      result.items.push_back(array_of(std::move(elements), std::move(shape), field.type));
      if (result.items.back().kind != Kind::array) return {};
    }
    if (result.items.back().kind == Kind::unknown) return {};
  }
  return result;
}

Value cast_integer(const Value& value, Type type) {
  const Value number = value.kind == Kind::real ? whole_part(value.real) : value;
  if (!number.is_whole()) return {};
  const BigInteger whole = number.as_whole();
  const BigInteger span = *BigInteger::compute(Tok::left_shift, BigInteger(1),
                                               BigInteger(type->bits - (type->is_signed ? 1 : 0)));
  const BigInteger least = type->is_signed ? span.negated() : BigInteger(0);
  if (BigInteger::compare(whole, least) < 0 || BigInteger::compare(whole, span) >= 0) return {};
  return Value::of(whole);
}

}  // namespace

Value cast(const Value& value, Type type) {
  if (is_record(type)) return cast_record(value, type);
  if (!value.is_any_number() || (value.kind == Kind::complex && !is_complex(type))) return {};
  if (type->kind == TypeKind::boolean) return Value::boolean(!value.is_zero());
  if (is_integer(type)) return cast_integer(value, type);
  const auto rounded = [&](double number) {
    const bool single = type->bits == (is_complex(type) ? 64 : 32);
    return single ? static_cast<double>(static_cast<float>(number)) : number;
  };
  return is_complex(type) ? Value::complex(rounded(value.as_real()), rounded(value.imag))
                          : Value::of(rounded(value.as_real()));
}

Value fold_single(const TypeTable& types, Tok op, const Value& a, const Value& b) {
  const auto fits = [&](const Value& value) {
    return value.is_number() && (value.type == nullptr || value.type == types.float32);
  };
  if (!fits(a) || !fits(b) || (a.type == nullptr && b.type == nullptr)) return {};
  const auto x = static_cast<float>(a.as_real()), y = static_cast<float>(b.as_real());
  Value result;
  if (op == Tok::plus) result = Value::of(static_cast<double>(x + y));
  if (op == Tok::minus) result = Value::of(static_cast<double>(x - y));
  if (op == Tok::times) result = Value::of(static_cast<double>(x * y));
  if (op == Tok::divide && y != 0) result = Value::of(static_cast<double>(x / y));
  if (result.kind == Kind::real) result.type = types.float32;
  return result;
}

namespace {

bool is_plain_real(Type type) { return is_floating(type) && type->bits >= 32; }

/// NumPy's result type of an operator on elements of these types; null if it is not known. A null type means
/// a Python number, of which only the kind affects the result type.
Type element_of(const TypeTable& types, Tok op, Type a, Type b, const Value& number) {
  const Type typed = a != nullptr ? a : b;
  if (!is_integer(typed) && !is_plain_real(typed)) return nullptr;
  const bool one = a == b || ((a == nullptr || b == nullptr) && (number.is_whole() || is_floating(typed)));
  if (one) return op == Tok::divide && is_integer(typed) ? types.float64 : typed;
  if (a == nullptr || b == nullptr) return number.kind == Kind::real ? types.float64 : nullptr;
  const bool wide = (a == types.float64 && (is_integer(b) || is_plain_real(b))) ||
                    (b == types.float64 && (is_integer(a) || is_plain_real(a)));
  return wide ? types.float64 : nullptr;
}

/// The caller rounds to the elements' type when it stores the result. For float32, that gives the same result
/// as computing in float32.
Value computed(Tok op, const Value& x, const Value& y, Type type) {
  if (is_integer(type)) {
    const auto whole = BigInteger::compute(op, x.as_whole(), y.as_whole());
    return whole ? Value::of(*whole) : Value{};
  }
  const double a = x.as_real(), b = y.as_real();
  return Value::of(op == Tok::plus ? a + b : op == Tok::minus ? a - b : op == Tok::times ? a * b : a / b);
}

}  // namespace

Value fold_elements(const TypeTable& types, const Expr& expr, const Value& left, const Value& right) {
  const bool basic =
      expr.op == Tok::plus || expr.op == Tok::minus || expr.op == Tok::times || expr.op == Tok::divide;
  const bool both = left.kind == Kind::array && right.kind == Kind::array;
  const Value& array = left.kind == Kind::array ? left : right;
  const Value& other = left.kind == Kind::array ? right : left;
  if (!basic || (both ? left.shape != right.shape : !other.is_number())) return {};
  // A name may hold a float64 of NumPy, and combined with float32 it gives float64.
  const bool sure = is_literal(*expr.items[left.kind == Kind::array ? 1 : 0]) || array.type->bits == 64;
  if (other.kind == Kind::real && other.type == nullptr && is_floating(array.type) && !sure) return {};
  const Type type = element_of(types, expr.op, left.type, right.type, other);
  if (type == nullptr) return {};
  std::vector<Value> elements;
  for (std::size_t i = 0; i < array.items.size(); ++i) {
    const Value x = cast(left.kind == Kind::array ? left.items[i] : left, type);
    const Value y = cast(right.kind == Kind::array ? right.items[i] : right, type);
    if (x.kind == Kind::unknown || y.kind == Kind::unknown) return {};
    elements.push_back(computed(expr.op, x, y, type));
  }
  return array_of(std::move(elements), array.shape, type);
}

Value reshaped(const Value& array, const Value& extents) {
  const auto shape = shape_of(extents.items.size() == 1 ? extents.items[0] : extents);
  if (!shape || std::any_of(shape->begin(), shape->end(), [](std::int64_t n) { return n < -1 || n == 0; }))
    return {};
  std::int64_t count = static_cast<std::int64_t>(array.items.size()), rest = count;
  std::int64_t* open = nullptr;
  std::vector<std::int64_t> whole = *shape;
  for (std::int64_t& extent : whole) {
    if (extent == -1 ? open != nullptr : rest % extent != 0) return {};
    if (extent == -1)
      open = &extent;
    else
      rest /= extent;
  }
  if (open != nullptr) *open = rest;
  if (count == 0 || (open == nullptr && rest != 1)) return {};
  Value result = array;
  result.shape = std::move(whole);
  return result;
}

}  // namespace quern::frontend
