// SPDX-License-Identifier: Apache-2.0
// component: abi
// Conversion of C++ types to element types. The names, types and offsets of a plain struct's fields are found
// at compile time; the program does not repeat them.
//
//   struct Particle { float position[3]; double mass; };
//   ElementType element = element_type_of<Particle>();   // position: float32(3,) at 0, mass: float64 at 16
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "quern/element_type.hpp"

namespace quern {

template <class T>
ElementType element_type_of();

namespace detail::record {

inline constexpr std::size_t kMaxFields = 32;
inline constexpr std::size_t kTooMany = kMaxFields + 1;

/// Initialises a base class and nothing else.
template <class T>
struct AnyBase {
  template <class B>
    requires(std::is_base_of_v<B, T> && !std::is_same_v<B, T>)
  constexpr operator B() const noexcept;  // never defined: only used in requires-expressions
};

#define QUERN_BRACES_1 \
  {                    \
  }
#define QUERN_BRACES_2 \
  QUERN_BRACES_1, {}
#define QUERN_BRACES_4 QUERN_BRACES_2, QUERN_BRACES_2
#define QUERN_BRACES_8 QUERN_BRACES_4, QUERN_BRACES_4
#define QUERN_BRACES_16 QUERN_BRACES_8, QUERN_BRACES_8
#define QUERN_FIELDS(count, ...)                   \
  if constexpr (!requires { T{__VA_ARGS__, {}}; }) \
    return count;                                  \
  else

/// The number of fields of an aggregate: `{}` initialises one whole field, so as many `{}` fit as there are
/// fields.
template <class T>
constexpr std::size_t count_fields() {
  QUERN_FIELDS(1, QUERN_BRACES_1)
  QUERN_FIELDS(2, QUERN_BRACES_2)
  QUERN_FIELDS(3, QUERN_BRACES_2, QUERN_BRACES_1)
  QUERN_FIELDS(4, QUERN_BRACES_4)
  QUERN_FIELDS(5, QUERN_BRACES_4, QUERN_BRACES_1)
  QUERN_FIELDS(6, QUERN_BRACES_4, QUERN_BRACES_2)
  QUERN_FIELDS(7, QUERN_BRACES_4, QUERN_BRACES_2, QUERN_BRACES_1)
  QUERN_FIELDS(8, QUERN_BRACES_8)
  QUERN_FIELDS(9, QUERN_BRACES_8, QUERN_BRACES_1)
  QUERN_FIELDS(10, QUERN_BRACES_8, QUERN_BRACES_2)
  QUERN_FIELDS(11, QUERN_BRACES_8, QUERN_BRACES_2, QUERN_BRACES_1)
  QUERN_FIELDS(12, QUERN_BRACES_8, QUERN_BRACES_4)
  QUERN_FIELDS(13, QUERN_BRACES_8, QUERN_BRACES_4, QUERN_BRACES_1)
  QUERN_FIELDS(14, QUERN_BRACES_8, QUERN_BRACES_4, QUERN_BRACES_2)
  QUERN_FIELDS(15, QUERN_BRACES_8, QUERN_BRACES_4, QUERN_BRACES_2, QUERN_BRACES_1)
  QUERN_FIELDS(16, QUERN_BRACES_16)
  QUERN_FIELDS(17, QUERN_BRACES_16, QUERN_BRACES_1)
  QUERN_FIELDS(18, QUERN_BRACES_16, QUERN_BRACES_2)
  QUERN_FIELDS(19, QUERN_BRACES_16, QUERN_BRACES_2, QUERN_BRACES_1)
  QUERN_FIELDS(20, QUERN_BRACES_16, QUERN_BRACES_4)
  QUERN_FIELDS(21, QUERN_BRACES_16, QUERN_BRACES_4, QUERN_BRACES_1)
  QUERN_FIELDS(22, QUERN_BRACES_16, QUERN_BRACES_4, QUERN_BRACES_2)
  QUERN_FIELDS(23, QUERN_BRACES_16, QUERN_BRACES_4, QUERN_BRACES_2, QUERN_BRACES_1)
  QUERN_FIELDS(24, QUERN_BRACES_16, QUERN_BRACES_8)
  QUERN_FIELDS(25, QUERN_BRACES_16, QUERN_BRACES_8, QUERN_BRACES_1)
  QUERN_FIELDS(26, QUERN_BRACES_16, QUERN_BRACES_8, QUERN_BRACES_2)
  QUERN_FIELDS(27, QUERN_BRACES_16, QUERN_BRACES_8, QUERN_BRACES_2, QUERN_BRACES_1)
  QUERN_FIELDS(28, QUERN_BRACES_16, QUERN_BRACES_8, QUERN_BRACES_4)
  QUERN_FIELDS(29, QUERN_BRACES_16, QUERN_BRACES_8, QUERN_BRACES_4, QUERN_BRACES_1)
  QUERN_FIELDS(30, QUERN_BRACES_16, QUERN_BRACES_8, QUERN_BRACES_4, QUERN_BRACES_2)
  QUERN_FIELDS(31, QUERN_BRACES_16, QUERN_BRACES_8, QUERN_BRACES_4, QUERN_BRACES_2, QUERN_BRACES_1)
  QUERN_FIELDS(32, QUERN_BRACES_16, QUERN_BRACES_16)
  return kTooMany;
}
#undef QUERN_FIELDS
#undef QUERN_BRACES_16
#undef QUERN_BRACES_8
#undef QUERN_BRACES_4
#undef QUERN_BRACES_2
#undef QUERN_BRACES_1
template <class T>
inline constexpr std::size_t field_count = count_fields<T>();

/// One object of each described type, so that its fields have addresses that are constants.
template <class T>
inline constexpr T instance{};

// Structured bindings need the number of names spelled out.
#define QUERN_TIE(count, ...)                                                       \
  if constexpr (field_count<T> == count) {                                          \
    const auto& [__VA_ARGS__] = instance<T>;                                        \
    return [](const auto&... field) { return std::tuple{&field...}; }(__VA_ARGS__); \
  } else

template <class T>
constexpr auto field_addresses() {
  QUERN_TIE(1, a)
  QUERN_TIE(2, a, b)
  QUERN_TIE(3, a, b, c)
  QUERN_TIE(4, a, b, c, d)
  QUERN_TIE(5, a, b, c, d, e)
  QUERN_TIE(6, a, b, c, d, e, f)
  QUERN_TIE(7, a, b, c, d, e, f, g)
  QUERN_TIE(8, a, b, c, d, e, f, g, h)
  QUERN_TIE(9, a, b, c, d, e, f, g, h, i)
  QUERN_TIE(10, a, b, c, d, e, f, g, h, i, j)
  QUERN_TIE(11, a, b, c, d, e, f, g, h, i, j, k)
  QUERN_TIE(12, a, b, c, d, e, f, g, h, i, j, k, l)
  QUERN_TIE(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  QUERN_TIE(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  QUERN_TIE(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  QUERN_TIE(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  QUERN_TIE(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa)
  QUERN_TIE(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab)
  QUERN_TIE(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac)
  QUERN_TIE(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad)
  QUERN_TIE(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae)
  QUERN_TIE(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af)
  QUERN_TIE(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag)
  QUERN_TIE(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag, ah)
  QUERN_TIE(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag, ah, ai)
  QUERN_TIE(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag, ah, ai, aj)
  QUERN_TIE(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak)
  QUERN_TIE(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak,
            al)
  QUERN_TIE(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak,
            al, am)
  QUERN_TIE(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak,
            al, am, an)
  QUERN_TIE(31, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak,
            al, am, an, ao)
  QUERN_TIE(32, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak,
            al, am, an, ao, ap)
  return std::tuple{};
}
#undef QUERN_TIE

template <class Pointer>
struct Address {
  Pointer pointer;
};
template <class Pointer>
Address(Pointer) -> Address<Pointer>;

/// The last identifier in the compiler's text of a field's address: "... {&instance.mass}]".
template <Address A>
constexpr std::string_view field_name() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const std::size_t brace = text.rfind('}', text.find("; std::string_view"));
  std::size_t end = brace;
  while (end > 0 && (text[end - 1] == ')' || text[end - 1] == ' ')) --end;
  std::size_t begin = end;
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

template <class T>
struct ArrayField {
  using element = T;
  static void shape(std::vector<std::int64_t>&) {}
};
template <class T, std::size_t N>
struct ArrayField<T[N]> {
  using element = typename ArrayField<T>::element;
  static void shape(std::vector<std::int64_t>& extents) {
    extents.push_back(static_cast<std::int64_t>(N));
    ArrayField<T>::shape(extents);
  }
};
template <class T, std::size_t N>
struct ArrayField<std::array<T, N>> : ArrayField<T[N]> {};

template <class T, std::size_t I>
Field describe_field() {
  constexpr auto address = std::get<I>(field_addresses<T>());
  using Member = std::remove_cv_t<std::remove_pointer_t<decltype(address)>>;
  using Shape = ArrayField<Member>;
  Field field;
  field.name = field_name<Address{address}>();
  field.element = element_type_of<std::remove_cv_t<typename Shape::element>>();
  field.offset_bytes = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(address) -
                                                reinterpret_cast<const std::byte*>(&instance<T>));
  Shape::shape(field.shape);
  return field;
}

template <class T>
constexpr bool describable() {
  if constexpr (std::is_class_v<T> && std::is_aggregate_v<T> && std::is_trivially_copyable_v<T> &&
                std::is_default_constructible_v<T> && !std::is_empty_v<T> && !requires { T{AnyBase<T>{}}; })
    return field_count<T> <= kMaxFields;
  else
    return false;
}

template <class T, std::size_t... I>
RecordType describe(std::index_sequence<I...>) {
  return RecordType({describe_field<T, I>()...}, sizeof(T));
}

template <class T>
RecordType described() {
  static_assert(describable<T>(),
                "only plain structs of at most 32 fields describe themselves; specialise quern::RecordOf");
  return describe<T>(std::make_index_sequence<field_count<T>>{});
}

}  // namespace detail::record

/// For structs that quern cannot describe: specialise it with `static RecordType record()`.
template <class T>
struct RecordOf;

/// The record type of a plain struct (an aggregate without base classes, of 1 to 32 fields that are scalars,
/// enumerations, std::complex, float16, bfloat16, plain structs, or arrays of those; other fields are opaque
/// bytes). Bit-fields have no address and cannot be described: specialise RecordOf.
template <class T>
RecordType record_type_of() {
  if constexpr (requires { RecordOf<T>::record(); })
    return RecordOf<T>::record();
  else
    return detail::record::described<T>();
}

namespace detail {
/// Made once per type: an ElementType of a record owns memory.
template <class T>
const ElementType& record_element() {
  static const ElementType element(record_type_of<T>());
  return element;
}

/// Integer types by size and sign: `long long` is int64 as `long` is, `char` is int8 as in device code.
template <class T>
constexpr Dtype integer_dtype() {
  constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return static_cast<Dtype>(static_cast<int>(std::is_signed_v<T> ? Dtype::int8 : Dtype::uint8) + log2);
}
}  // namespace detail

/// The ElementType of a C++ type. A trivially copyable type that cannot be described is opaque bytes.
template <class T>
ElementType element_type_of() {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable types can live in device memory");
  if constexpr (requires { DtypeOf<T>::value; })
    return DtypeOf<T>::value;
  else if constexpr (std::is_enum_v<T>)
    return element_type_of<std::underlying_type_t<T>>();
  else if constexpr (std::is_integral_v<T>)
    return detail::integer_dtype<T>();
  else if constexpr (requires { RecordOf<T>::record(); })
    return detail::record_element<T>();
  else if constexpr (detail::record::describable<T>())
    return detail::record_element<T>();
  else
    return ElementType::opaque(sizeof(T));
}

}  // namespace quern
