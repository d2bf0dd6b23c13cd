// SPDX-License-Identifier: Apache-2.0
#include "frontend/types/types.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quern::frontend {
namespace {

struct Name {
  std::string_view name;
  Type TypeTable::* type;
};
constexpr Name kNames[] = {
    {"boolean", &TypeTable::boolean},
    {"bool_", &TypeTable::boolean},
    {"bool", &TypeTable::boolean},
    {"b1", &TypeTable::boolean},
    {"int8", &TypeTable::int8},
    {"int16", &TypeTable::int16},
    {"int32", &TypeTable::int32},
    {"int64", &TypeTable::int64},
    {"uint8", &TypeTable::uint8},
    {"uint16", &TypeTable::uint16},
    {"uint32", &TypeTable::uint32},
    {"uint64", &TypeTable::uint64},
    {"i1", &TypeTable::int8},
    {"i2", &TypeTable::int16},
    {"i4", &TypeTable::int32},
    {"i8", &TypeTable::int64},
    {"u1", &TypeTable::uint8},
    {"u2", &TypeTable::uint16},
    {"u4", &TypeTable::uint32},
    {"u8", &TypeTable::uint64},
    {"intp", &TypeTable::int64},
    {"uintp", &TypeTable::uint64},
    {"int_", &TypeTable::int64},
    {"uint", &TypeTable::uint64},
    {"intc", &TypeTable::int32},
    {"uintc", &TypeTable::uint32},
    {"byte", &TypeTable::uint8},
    {"char", &TypeTable::int8},
    {"uchar", &TypeTable::uint8},
    {"short", &TypeTable::int16},
    {"ushort", &TypeTable::uint16},
    {"long_", &TypeTable::int64},
    {"ulong", &TypeTable::uint64},
    {"longlong", &TypeTable::int64},
    {"ulonglong", &TypeTable::uint64},
    {"ssize_t", &TypeTable::int64},
    {"size_t", &TypeTable::uint64},
    {"float16", &TypeTable::float16},
    {"bfloat16", &TypeTable::bfloat16},
    {"float32", &TypeTable::float32},
    {"float64", &TypeTable::float64},
    {"f2", &TypeTable::float16},
    {"f4", &TypeTable::float32},
    {"f8", &TypeTable::float64},
    {"float_", &TypeTable::float32},
    {"double", &TypeTable::float64},
    {"half", &TypeTable::float16},
    {"single", &TypeTable::float32},
    {"complex64", &TypeTable::complex64},
    {"complex128", &TypeTable::complex128},
    {"c8", &TypeTable::complex64},
    {"c16", &TypeTable::complex128},
    {"void", &TypeTable::none},
    {"none", &TypeTable::none},
};

struct VectorName {
  std::string_view numba;
  std::string_view cuda;
  Type TypeTable::* element;
};
constexpr VectorName kVectorNames[] = {
    {"int8", "char", &TypeTable::int8},        {"int16", "short", &TypeTable::int16},
    {"int32", "int", &TypeTable::int32},       {"int64", "long", &TypeTable::int64},
    {"int64", "longlong", &TypeTable::int64},  {"uint8", "uchar", &TypeTable::uint8},
    {"uint16", "ushort", &TypeTable::uint16},  {"uint32", "uint", &TypeTable::uint32},
    {"uint64", "ulong", &TypeTable::uint64},   {"uint64", "ulonglong", &TypeTable::uint64},
    {"float32", "float", &TypeTable::float32}, {"float64", "double", &TypeTable::float64},
};

constexpr Dtype kDtypes[] = {Dtype::bool_,   Dtype::int8,      Dtype::int16,     Dtype::int32,
                             Dtype::int64,   Dtype::uint8,     Dtype::uint16,    Dtype::uint32,
                             Dtype::uint64,  Dtype::float16,   Dtype::bfloat16,  Dtype::float32,
                             Dtype::float64, Dtype::complex64, Dtype::complex128};
constexpr Type TypeTable::* kOfDtype[] = {&TypeTable::boolean, &TypeTable::int8,      &TypeTable::int16,
                                          &TypeTable::int32,   &TypeTable::int64,     &TypeTable::uint8,
                                          &TypeTable::uint16,  &TypeTable::uint32,    &TypeTable::uint64,
                                          &TypeTable::float16, &TypeTable::bfloat16,  &TypeTable::float32,
                                          &TypeTable::float64, &TypeTable::complex64, &TypeTable::complex128};

TypeInfo scalar(TypeKind kind, unsigned bits, bool is_signed = true) {
  TypeInfo info;
  info.kind = kind;
  info.bits = static_cast<std::uint8_t>(bits);
  info.is_signed = is_signed;
  return info;
}

std::string list_text(const std::vector<Type>& items) {
  std::string text;
  for (Type item : items) text += (text.empty() ? "" : ", ") + text_of(item);
  return text;
}

bool is_comparison(Tok op) {
  constexpr Tok kAll[] = {Tok::less,          Tok::greater, Tok::less_equal,
                          Tok::greater_equal, Tok::equal,   Tok::not_equal};
  return std::find(std::begin(kAll), std::end(kAll), op) != std::end(kAll);
}
bool is_bitwise(Tok op) { return op == Tok::bit_and || op == Tok::bit_or || op == Tok::bit_xor; }
bool is_shift(Tok op) { return op == Tok::left_shift || op == Tok::right_shift; }

unsigned float_bits_for(Type t) {
  switch (t->kind) {
    case TypeKind::boolean:
      return 16;
    case TypeKind::integer:
      if (t->bits <= 8) return t->is_signed ? 16 : 32;
      return t->bits == 16 && t->is_signed ? 32 : 64;
    case TypeKind::complex:
      return t->bits / 2u;
    default:
      return t->bits;
  }
}

}  // namespace

TypeTable::TypeTable() {
  const auto make = [this](TypeInfo info) { return intern(std::move(info)); };
  error = make(scalar(TypeKind::error, 0));
  none = make(scalar(TypeKind::none, 0));
  boolean = make(scalar(TypeKind::boolean, 8));
  string = make(scalar(TypeKind::string, 0));
  slice = make(scalar(TypeKind::slice, 0));
  ellipsis = make(scalar(TypeKind::ellipsis, 0));
  group = make(scalar(TypeKind::group, 0));
  int8 = make(scalar(TypeKind::integer, 8));
  int16 = make(scalar(TypeKind::integer, 16));
  int32 = make(scalar(TypeKind::integer, 32));
  int64 = make(scalar(TypeKind::integer, 64));
  uint8 = make(scalar(TypeKind::integer, 8, false));
  uint16 = make(scalar(TypeKind::integer, 16, false));
  uint32 = make(scalar(TypeKind::integer, 32, false));
  uint64 = make(scalar(TypeKind::integer, 64, false));
  float16 = make(scalar(TypeKind::floating, 16));
  float32 = make(scalar(TypeKind::floating, 32));
  float64 = make(scalar(TypeKind::floating, 64));
  complex64 = make(scalar(TypeKind::complex, 64));
  complex128 = make(scalar(TypeKind::complex, 128));
  TypeInfo brain = scalar(TypeKind::floating, 16);
  brain.brain = true;
  bfloat16 = make(brain);
}

Type TypeTable::intern(TypeInfo info) {
  // A key made of all properties that distinguish types.
  std::string key;
  const auto add = [&key](const auto& value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const char small[] = {static_cast<char>(info.kind),
                        static_cast<char>(info.bits),
                        info.is_signed,
                        info.brain,
                        static_cast<char>(info.ndim),
                        info.layout,
                        info.read_only};
  key.append(small, sizeof small);
  add(info.element);
  add(info.function);
  add(info.builtin);
  add(info.size_bytes);
  for (const Type item : info.items) add(item);
  key += info.name;
  for (const Field& field : info.fields) {
    key += field.name;
    add(field.type);
    add(field.offset);
    for (const std::int64_t extent : field.shape) add(extent);
    key += ';';
  }
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  all_.push_back(std::move(info));
  return known_.emplace(std::move(key), &all_.back()).first->second;
}

Type TypeTable::of(Dtype dtype) const {
  for (std::size_t i = 0; i < std::size(kDtypes); ++i)
    if (kDtypes[i] == dtype) return this->*kOfDtype[i];
  return error;
}

Type TypeTable::integer(unsigned bits, bool is_signed) const {
  if (bits <= 8) return is_signed ? int8 : uint8;
  if (bits <= 16) return is_signed ? int16 : uint16;
  if (bits <= 32) return is_signed ? int32 : uint32;
  return is_signed ? int64 : uint64;
}

Type TypeTable::floating(unsigned bits) const {
  return bits <= 16 ? float16 : bits <= 32 ? float32 : float64;
}

Type TypeTable::array(Type element, unsigned ndim, char layout, bool read_only) {
  TypeInfo info;
  info.kind = TypeKind::array;
  info.element = element;
  info.ndim = static_cast<std::uint8_t>(ndim);
  info.layout = ndim <= 1 && layout == 'F' ? 'C' : layout;
  info.read_only = read_only;
  return intern(std::move(info));
}

Type TypeTable::tuple(std::vector<Type> items) {
  TypeInfo info;
  info.kind = TypeKind::tuple;
  for (const Type item : items) info.weight = std::min(info.weight + item->weight, 2 * kMostItems);
  info.items = std::move(items);
  return intern(std::move(info));
}

Type TypeTable::dtype(Type element) {
  TypeInfo info;
  info.kind = TypeKind::dtype;
  info.element = element;
  return intern(std::move(info));
}

Type TypeTable::range(Type element) {
  TypeInfo info;
  info.kind = TypeKind::range;
  info.element = element;
  return intern(std::move(info));
}

Type TypeTable::enumerate(Type of) {
  TypeInfo info;
  info.kind = TypeKind::enumerate;
  info.items = {of};
  return intern(std::move(info));
}

Type TypeTable::zip(std::vector<Type> items) {
  TypeInfo info;
  info.kind = TypeKind::zip;
  info.items = std::move(items);
  return intern(std::move(info));
}

Type TypeTable::function(const Declaration* declaration) {
  TypeInfo info;
  info.kind = TypeKind::function;
  info.function = declaration;
  return intern(std::move(info));
}

Type TypeTable::builtin(const Builtin* row, std::string_view shown) {
  TypeInfo info;
  info.kind = TypeKind::builtin;
  info.builtin = row;
  info.name = shown;
  return intern(std::move(info));
}

Type TypeTable::dim3(const Builtin* row, std::string_view shown) {
  TypeInfo info = *builtin(row, shown);
  info.kind = TypeKind::dim3;
  return intern(std::move(info));
}

Type TypeTable::module_(std::string path) {
  TypeInfo info;
  info.kind = TypeKind::module_;
  info.name = std::move(path);
  return intern(std::move(info));
}

/// "record_x_y", with a number appended if another record has the same fields.
std::string TypeTable::label_for(const std::vector<Field>& fields) const {
  constexpr std::size_t kShown = 4;
  std::string plain = "record";
  for (std::size_t i = 0; i < std::min(fields.size(), kShown); ++i) plain += "_" + fields[i].name;
  std::string label = plain;
  const auto taken = [&] {
    return std::any_of(all_.begin(), all_.end(), [&](const TypeInfo& other) { return other.label == label; });
  };
  for (int number = 2; taken(); ++number) label = fmt::format("{}_{}", plain, number);
  return label;
}

Type TypeTable::record(std::vector<Field> fields, std::uint32_t size_bytes) {
  TypeInfo info;
  info.kind = TypeKind::record;
  for (const Field& field : fields) info.name += (info.name.empty() ? "{" : ", ") + field.name;
  info.name += "}";
  std::string label = label_for(fields);
  info.fields = std::move(fields);
  info.size_bytes = size_bytes;
  const std::size_t before = all_.size();
  const Type made = intern(std::move(info));
  if (all_.size() != before) all_.back().label = std::move(label);
  return made;
}

Type TypeTable::vector(Type element, unsigned count) {
  TypeInfo info;
  info.kind = TypeKind::vector;
  info.element = element;
  info.ndim = static_cast<std::uint8_t>(count);
  return intern(std::move(info));
}

Type TypeTable::vector_named(std::string_view name) {
  if (name.size() < 4 || name.back() < '1' || name.back() > '4') return nullptr;
  const auto count = static_cast<unsigned>(name.back() - '0');
  const std::string_view stem = name.substr(0, name.size() - 1);
  for (const VectorName& row : kVectorNames)
    if (stem == row.cuda || (stem.ends_with('x') && stem.substr(0, stem.size() - 1) == row.numba))
      return vector(this->*row.element, count);
  return nullptr;
}

Type TypeTable::scalar_named(std::string_view name) const {
  for (const Name& row : kNames)
    if (row.name == name) return this->*row.type;
  return nullptr;
}

std::vector<std::string_view> TypeTable::scalar_names() const {
  std::vector<std::string_view> names;
  for (const Name& row : kNames) names.push_back(row.name);
  return names;
}

std::string text_of(Type type) {
  if (type == nullptr) return "an unknown type";
  switch (type->kind) {
    case TypeKind::error:
      return "an erroneous type";
    case TypeKind::none:
      return "none";
    case TypeKind::boolean:
      return "bool";
    case TypeKind::integer:
      return fmt::format("{}int{}", type->is_signed ? "" : "u", type->bits);
    case TypeKind::floating:
      return type->brain ? "bfloat16" : fmt::format("float{}", type->bits);
    case TypeKind::complex:
      return fmt::format("complex{}", type->bits);
    case TypeKind::array:
      return fmt::format("{}array({}, {}d, {})", type->read_only ? "readonly " : "", text_of(type->element),
                         type->ndim, type->layout);
    case TypeKind::tuple:
      if (is_uniform(type))
        return fmt::format("UniTuple({} x {})", text_of(type->items[0]), type->items.size());
      return fmt::format("Tuple({})", list_text(type->items));
    case TypeKind::record:
      return fmt::format("record {}", type->name);
    case TypeKind::string:
      return "a string";
    case TypeKind::dtype:
      return fmt::format("class({})", text_of(type->element));
    case TypeKind::function:
      return "a function";
    case TypeKind::builtin:
      return "a built-in function";
    case TypeKind::module_:
      return fmt::format("module {}", type->name);
    case TypeKind::dim3:
      return type->name;
    case TypeKind::range:
      return fmt::format("range({})", text_of(type->element));
    case TypeKind::enumerate:
      return fmt::format("enumerate({})", list_text(type->items));
    case TypeKind::zip:
      return fmt::format("zip({})", list_text(type->items));
    case TypeKind::slice:
      return "a slice";
    case TypeKind::ellipsis:
      return "ellipsis";
    case TypeKind::group:
      return "a grid group";
    case TypeKind::vector:
      return fmt::format("{}x{}", text_of(type->element), type->ndim);
  }
  return {};
}

std::uint32_t size_of(Type type) {
  if (type->kind == TypeKind::record) return type->size_bytes;
  if (type->kind == TypeKind::boolean) return 1;
  return type->bits / 8u;
}

std::uint32_t size_of(const Field& field) {
  std::uint32_t size = size_of(field.type);
  for (const std::int64_t extent : field.shape) size *= static_cast<std::uint32_t>(extent);
  return size;
}

bool is_uniform(Type tuple) {
  return !tuple->items.empty() && std::all_of(tuple->items.begin(), tuple->items.end(),
                                              [&](Type item) { return item == tuple->items[0]; });
}

namespace {

Type unify_integers(const TypeTable& table, Type a, Type b) {
  if (a->is_signed == b->is_signed) return a->bits >= b->bits ? a : b;
  const Type with = a->is_signed ? a : b, without = a->is_signed ? b : a;
  if (with->bits > without->bits) return with;
  return without->bits < 64 ? table.integer(without->bits * 2u, true) : table.float64;
}

Type unify_arrays(TypeTable& table, Type a, Type b) {
  if (a->element != b->element || a->ndim != b->ndim) return nullptr;
  return table.array(a->element, a->ndim, a->layout == b->layout ? a->layout : 'A',
                     a->read_only || b->read_only);
}

Type unify_tuples(TypeTable& table, Type a, Type b) {
  if (a->items.size() != b->items.size()) return nullptr;
  std::vector<Type> items;
  for (std::size_t i = 0; i < a->items.size(); ++i) {
    items.push_back(unify(table, a->items[i], b->items[i]));
    if (items.back() == nullptr) return nullptr;
  }
  return table.tuple(std::move(items));
}

// An integer combined with a float or complex number: integers of up to 16 bits fit the 24 bits of float32,
// larger ones need float64.
Type unify_numbers(const TypeTable& table, Type a, Type b) {
  if (a->kind == TypeKind::boolean) return b;
  if (b->kind == TypeKind::boolean) return a;
  const auto bits = [](Type t) -> unsigned {
    if (is_integer(t)) return t->bits <= 8 ? 16 : t->bits == 16 ? 32 : 64;
    return is_complex(t) ? t->bits / 2u : t->bits;
  };
  const unsigned wide = std::max(bits(a), bits(b));
  if (is_complex(a) || is_complex(b)) return table.complex(2 * wide);
  if (a->brain != b->brain)
    return wide > 16 ? table.floating(wide) : a->brain && is_integer(b) ? a : table.float32;
  return table.floating(wide);
}

}  // namespace

bool is_valueless(Type t) {
  constexpr TypeKind kAll[] = {TypeKind::none,  TypeKind::function, TypeKind::builtin,
                               TypeKind::dtype, TypeKind::module_,  TypeKind::dim3};
  if (is_tuple(t)) return !t->items.empty() && std::all_of(t->items.begin(), t->items.end(), is_valueless);
  return std::find(std::begin(kAll), std::end(kAll), t->kind) != std::end(kAll);
}

Type unify(TypeTable& table, Type a, Type b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  if (is_error(a) || is_error(b)) return table.error;
  if (is_integer(a) && is_integer(b)) return unify_integers(table, a, b);
  if (is_number(a) && is_number(b)) return unify_numbers(table, a, b);
  if (is_array(a) && is_array(b)) return unify_arrays(table, a, b);
  if (is_tuple(a) && is_tuple(b)) return unify_tuples(table, a, b);
  return nullptr;
}

namespace {

// + - * // % and bitwise operators on two integers have 64 bits; the result is unsigned only if both are.
Type arithmetic_integer(const TypeTable& table, Type a, Type b) {
  const auto is_unsigned = [](Type t) { return is_integer(t) && !t->is_signed; };
  return is_unsigned(a) && is_unsigned(b) ? table.uint64 : table.int64;
}

Type common_float(const TypeTable& table, Tok op, Type a, Type b) {
  unsigned bits = std::max(float_bits_for(a), float_bits_for(b));
  const bool wide_only = op == Tok::floor_divide || op == Tok::mod || op == Tok::power;
  if (a->brain || b->brain) {
    const auto stays = [](Type t) { return t->brain || (is_integer(t) && t->bits == 8); };
    if (!wide_only && stays(a) && stays(b)) return table.bfloat16;
    bits = std::max(bits, 32u);
  }
  return table.floating(wide_only ? std::max(bits, 32u) : bits);
}

std::optional<Operation> power(const TypeTable& table, Type a, Type b) {
  if (is_integral(a) && is_integral(b)) {
    const Type result = arithmetic_integer(table, a, b);
    return Operation{result, result, is_integer(b) && !b->is_signed ? table.uint64 : table.int64};
  }
  if (is_floating(a) && is_integral(b)) {
    const Type result = a->bits < 64 ? table.float32 : table.float64;
    return Operation{result, result, is_integer(b) && !b->is_signed ? table.uint64 : table.int64};
  }
  const Type real = common_float(table, Tok::power, a, b);
  return Operation{real, real};
}

std::optional<Operation> comparison(const TypeTable& table, Tok op, Type a, Type b) {
  const bool ordered = op != Tok::equal && op != Tok::not_equal;
  if (is_complex(a) || is_complex(b)) {
    if (ordered) return std::nullopt;
    return Operation{table.complex(2 * std::max({float_bits_for(a), float_bits_for(b), 32u})), table.boolean};
  }
  if (is_floating(a) || is_floating(b)) return Operation{common_float(table, op, a, b), table.boolean};
  if (a->kind == TypeKind::boolean || b->kind == TypeKind::boolean)
    return Operation{a->kind == TypeKind::boolean ? b : a, table.boolean};
  return Operation{unify_integers(table, a, b), table.boolean};
}

}  // namespace

std::optional<Operation> operation(const TypeTable& table, Tok op, Type a, Type b) {
  if (!is_number(a) || !is_number(b)) return std::nullopt;
  if ((a->brain && is_complex(b)) || (is_complex(a) && b->brain)) return std::nullopt;
  if (is_comparison(op)) return comparison(table, op, a, b);
  const bool integral = is_integral(a) && is_integral(b);
  if (is_bitwise(op)) {
    if (!integral) return std::nullopt;
    if (a == table.boolean && b == table.boolean) return Operation{a, a};
    const Type result = arithmetic_integer(table, a, b);
    return Operation{result, result};
  }
  if (is_shift(op)) {
    if (!integral) return std::nullopt;
    const Type result = is_integer(a) && !a->is_signed ? table.uint64 : table.int64;
    return Operation{result, result};
  }
  if (is_complex(a) || is_complex(b)) {
    if (op == Tok::floor_divide || op == Tok::mod || op == Tok::at) return std::nullopt;
    const Type result = table.complex(2 * std::max({float_bits_for(a), float_bits_for(b), 32u}));
    return Operation{result, result};
  }
  if (op == Tok::at) return std::nullopt;
  if (op == Tok::power) return power(table, a, b);
  if (!integral) {
    const Type result = common_float(table, op, a, b);
    return Operation{result, result};
  }
  if (op == Tok::divide) return Operation{table.float64, table.float64};
  const Type result = arithmetic_integer(table, a, b);
  return Operation{result, result};
}

Tok unary_operator(std::string_view text) {
  for (const Tok op : {Tok::plus, Tok::minus, Tok::invert, Tok::k_not})
    if (text_of(op) == text) return op;
  return Tok::end;
}

Tok binary_operator(std::string_view text) {
  for (const Tok op :
       {Tok::plus, Tok::minus, Tok::times, Tok::divide, Tok::floor_divide, Tok::mod, Tok::power, Tok::bit_and,
        Tok::bit_or, Tok::bit_xor, Tok::left_shift, Tok::right_shift, Tok::less, Tok::less_equal,
        Tok::greater, Tok::greater_equal, Tok::equal, Tok::not_equal})
    if (text_of(op) == text) return op;
  return Tok::end;
}

Type unary_result(const TypeTable& table, Tok op, Type a) {
  if (op == Tok::k_not) return is_number(a) ? table.boolean : nullptr;
  if (op == Tok::invert) {
    if (a == table.boolean) return a;
    return is_integer(a) ? table.integer(64, a->is_signed) : nullptr;
  }
  if (is_integral(a)) return table.integer(64, a == table.boolean || a->is_signed);
  return is_number(a) ? a : nullptr;
}

Type real_operand(const TypeTable& table, Type a) {
  if (is_floating(a)) return a->bits == 64 ? table.float64 : table.float32;
  return is_integral(a) ? table.float64 : nullptr;
}

bool converts(Type from, Type to) {
  if (from == to) return true;
  if (is_error(from) || is_error(to)) return true;
  if (is_number(from) && is_number(to)) return !is_complex(from) || is_complex(to);
  if (is_tuple(from) && is_tuple(to) && from->items.size() == to->items.size()) {
    for (std::size_t i = 0; i < from->items.size(); ++i)
      if (!converts(from->items[i], to->items[i])) return false;
    return true;
  }
  if (is_array(from) && is_array(to))
    return from->element == to->element && from->ndim == to->ndim &&
           (to->layout == 'A' || from->layout == to->layout) && (to->read_only || !from->read_only);
  return false;
}

}  // namespace quern::frontend
