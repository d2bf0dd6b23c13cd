// SPDX-License-Identifier: Apache-2.0
// room: abi
// From C++ types to element types. A plain struct is described by the compiler: its fields' names, types and
// offsets are found at compile time, nothing is written a second time.
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

struct Anything {
  template <class T>
  constexpr operator T() const noexcept;  // never defined: only asked for in requires-expressions
};
template <std::size_t>
using AnythingAt = Anything;

template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{AnythingAt<I>{}...}; };
}
/// `{}` in place of the initialiser at sizeof...(I): it initialises one field whole, where a bare initialiser
/// may be one element of an array field.
template <class T, std::size_t... I, std::size_t... R>
constexpr bool takes_with_hole(std::index_sequence<I...>, std::index_sequence<R...>) {
  return requires { T{AnythingAt<I>{}..., {}, AnythingAt<R>{}...}; };
}

template <class T, std::size_t N = 0>
constexpr std::size_t initialiser_count() {
  if constexpr (takes<T>(std::make_index_sequence<N + 1>{}))
    return initialiser_count<T, N + 1>();
  else
    return N;
}
/// How many initialisers may follow the field that begins with initialiser At.
template <class T, std::size_t At, std::size_t Rest>
constexpr std::size_t following() {
  if constexpr (Rest == 0 ||
                takes_with_hole<T>(std::make_index_sequence<At>{}, std::make_index_sequence<Rest>{}))
    return Rest;
  else
    return following<T, At, Rest - 1>();
}
template <class T, std::size_t Total, std::size_t At = 0>
constexpr std::size_t count_fields() {
  if constexpr (At >= Total)
    return 0;
  else
    return 1 + count_fields<T, Total, Total - following<T, At, Total - At - 1>()>();
}
template <class T>
inline constexpr std::size_t field_count = count_fields<T, initialiser_count<T>()>();
inline constexpr std::size_t kMaxFields = 16;

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
  return std::tuple{};
}
#undef QUERN_TIE

template <class Pointer>
struct Address {
  Pointer pointer;
};
template <class Pointer>
Address(Pointer) -> Address<Pointer>;

/// The last identifier in the compiler's spelling of a field's address: "... {&instance.mass}]".
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
                std::is_default_constructible_v<T> && !std::is_empty_v<T>)
    return field_count<T> >= 1 && field_count<T> <= kMaxFields;
  else
    return false;
}

template <class T, std::size_t... I>
RecordType describe(std::index_sequence<I...>) {
  return RecordType({describe_field<T, I>()...}, sizeof(T));
}

}  // namespace detail::record

/// The record type of a plain struct (an aggregate without base classes, of 1 to 16 fields that are scalars,
/// std::complex, float16, bfloat16, plain structs, or arrays of those).
template <class T>
RecordType record_type_of() {
  static_assert(detail::record::describable<T>(),
                "only plain structs of at most 16 fields describe themselves; give a RecordType by hand");
  return detail::record::describe<T>(std::make_index_sequence<detail::record::field_count<T>>{});
}

namespace detail {
/// Made once a type: an ElementType of a record owns memory.
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
  else if constexpr (detail::record::describable<T>())
    return detail::record_element<T>();
  else
    return ElementType::opaque(sizeof(T));
}

}  // namespace quern
