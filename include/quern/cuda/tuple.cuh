// SPDX-License-Identifier: Apache-2.0
// component: compile
// Tuples: quern::tuple<int, float>{1, 2.0f}, quern::item<0>(t).
#pragma once

#include <quern/cuda/array.cuh>

namespace quern {

template <class... Items>
struct tuple;
template <>
struct tuple<> {};
template <class First, class... Rest>
struct tuple<First, Rest...> {
  First first;
  tuple<Rest...> rest;

  QUERN_HOST_DEVICE constexpr tuple() : first{}, rest{} {}
  QUERN_HOST_DEVICE constexpr tuple(const First& head, const Rest&... tail) : first(head), rest{tail...} {}
  /// Converts a tuple item by item.
  template <class Other, class... Others>
  QUERN_HOST_DEVICE constexpr explicit tuple(const tuple<Other, Others...>& other)
      : first(static_cast<First>(other.first)), rest(other.rest) {}
};

template <int Index, class First, class... Rest>
QUERN_HOST_DEVICE constexpr auto item(const tuple<First, Rest...>& values) {
  if constexpr (Index == 0)
    return values.first;
  else
    return item<Index - 1>(values.rest);
}

/// For a tuple without items: in the body of a loop that is never entered.
QUERN_HOST_DEVICE constexpr long long item_at(const tuple<>&, long long) { return 0; }
/// The item of an index known only at run time; all have one type.
template <class First, class... Rest>
QUERN_HOST_DEVICE constexpr First item_at(const tuple<First, Rest...>& values, long long index) {
  if (index < 0) index += 1 + sizeof...(Rest);
  if constexpr (sizeof...(Rest) == 0) {
    return values.first;
  } else {
    return index == 0 ? values.first : static_cast<First>(item_at(values.rest, index - 1));
  }
}

template <class T>
QUERN_HOST_DEVICE constexpr bool item_in(const T&, const tuple<>&) {
  return false;
}
/// Each item is of the type in which it and the value are compared.
template <class T, class First, class... Rest>
QUERN_HOST_DEVICE constexpr bool item_in(const T& value, const tuple<First, Rest...>& values) {
  return static_cast<First>(value) == values.first || item_in(value, values.rest);
}

namespace detail {

template <class A, class B>
QUERN_HOST_DEVICE constexpr bool same(const A& a, const B& b) {
  return a == b;
}
template <class... As, class... Bs>
QUERN_HOST_DEVICE constexpr bool same(const tuple<As...>& a, const tuple<Bs...>& b) {
  return item_equal(a, b);
}

}  // namespace detail

QUERN_HOST_DEVICE constexpr bool item_equal(const tuple<>&, const tuple<>&) { return true; }
template <class A, class... As, class B, class... Bs>
QUERN_HOST_DEVICE constexpr bool item_equal(const tuple<A, As...>& a, const tuple<B, Bs...>& b) {
  if constexpr (sizeof...(As) == sizeof...(Bs))
    return detail::same(a.first, b.first) && item_equal(a.rest, b.rest);
  else
    return false;
}

namespace detail {

template <class A, class B, class Order>
QUERN_HOST_DEVICE constexpr bool ordered(const A& a, const B& b, Order order) {
  return order(a, b);
}
template <class... As, class... Bs, class Order>
QUERN_HOST_DEVICE constexpr bool ordered(const tuple<As...>& a, const tuple<Bs...>& b, Order order) {
  return item_ordered(a, b, order);
}

}  // namespace detail

/// Python's a < b and its like: by the first items that differ, else by the lengths.
template <class... As, class... Bs, class Order>
QUERN_HOST_DEVICE constexpr bool item_ordered(const tuple<As...>& a, const tuple<Bs...>& b, Order order) {
  if constexpr (sizeof...(As) == 0 || sizeof...(Bs) == 0)
    return order(sizeof...(As), sizeof...(Bs));
  else
    return detail::same(a.first, b.first) ? item_ordered(a.rest, b.rest, order)
                                          : detail::ordered(a.first, b.first, order);
}

namespace detail {

template <int Dim, int N, class... Items>
QUERN_HOST_DEVICE constexpr auto as_tuple(const long long* values, Items... items) {
  if constexpr (Dim == N)
    return tuple<Items...>{items...};
  else
    return as_tuple<Dim + 1, N>(values, items..., values[Dim]);
}

}  // namespace detail

/// An array's extents, and its strides in bytes.
template <class Array>
QUERN_HOST_DEVICE constexpr auto shape(const Array& array) {
  return detail::as_tuple<0, Array::rank>(array.extents);
}
template <class Array>
QUERN_HOST_DEVICE constexpr auto strides(const Array& array) {
  return detail::as_tuple<0, Array::rank>(array.strides_bytes);
}

}  // namespace quern
