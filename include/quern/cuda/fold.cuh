// SPDX-License-Identifier: Apache-2.0
// component: compile
// math's functions over tuples: products, sums, distances.
#pragma once

#include <quern/cuda/tuple.cuh>

namespace quern {
namespace detail {

template <class T>
struct is_float_item {
  enum : bool { value = T(1.5) != T(1) };
};
template <class... Items>
struct fold_type {
  using type = long long;
};
template <class Item, class... Items>
struct fold_type<Item, Items...> {
  template <bool Real, class Other>
  struct pick {
    using type = double;
  };
  template <class Other>
  struct pick<false, Other> {
    using type = Other;
  };
  using type = typename pick<is_float_item<Item>::value, typename fold_type<Items...>::type>::type;
};

/// A sum kept exactly, as numbers that do not overlap; the most a tuple of so many items needs.
template <int Most>
struct exact_sum {
  double parts[Most];
  int count = 0;

  __device__ __forceinline__ void add(double x) {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      double y = parts[i];
      if (fabs(x) < fabs(y)) {
        const double other = x;
        x = y;
        y = other;
      }
      const double high = __dadd_rn(x, y), low = __dadd_rn(y, -__dadd_rn(high, -x));
      if (low != 0) parts[kept++] = low;
      x = high;
    }
    parts[kept++] = x;
    count = kept;
  }
  /// Rounded once, half to even.
  __device__ __forceinline__ double value() const {
    int at = count - 1;
    double high = parts[at], low = 0;
    while (at > 0 && low == 0) {
      const double x = high, y = parts[--at];
      high = __dadd_rn(x, y);
      low = __dadd_rn(y, -__dadd_rn(high, -x));
    }
    if (at > 0 && ((low < 0 && parts[at - 1] < 0) || (low > 0 && parts[at - 1] > 0))) {
      const double twice = low * 2, moved = __dadd_rn(high, twice);
      if (twice == __dadd_rn(moved, -high)) high = moved;
    }
    return high;
  }
};

template <class Sum>
__device__ __forceinline__ void add_items(Sum&, const tuple<>&) {}
template <class Sum, class First, class... Rest>
__device__ __forceinline__ void add_items(Sum& sum, const tuple<First, Rest...>& items) {
  sum.add(double(items.first));
  add_items(sum, items.rest);
}

}  // namespace detail

__device__ __forceinline__ long long prod(const tuple<>&) { return 1; }
template <class First, class... Rest>
__device__ __forceinline__ auto prod(const tuple<First, Rest...>& items) {
  using result = typename detail::fold_type<First, Rest...>::type;
  return result(items.first) * result(prod(items.rest));
}

__device__ __forceinline__ long long sumprod(const tuple<>&, const tuple<>&) { return 0; }
template <class A, class... As, class B, class... Bs>
__device__ __forceinline__ auto sumprod(const tuple<A, As...>& a, const tuple<B, Bs...>& b) {
  using result = typename detail::fold_type<A, As..., B, Bs...>::type;
  return result(a.first) * result(b.first) + result(sumprod(a.rest, b.rest));
}

template <class... Items>
__device__ __forceinline__ double fsum(const tuple<Items...>& items) {
  detail::exact_sum<sizeof...(Items) + 1> sum;
  sum.add(0);
  detail::add_items(sum, items);
  return sum.value();
}

namespace detail {
__device__ __forceinline__ double far_squared(const tuple<>&, const tuple<>&) { return 0; }
template <class A, class... As, class B, class... Bs>
__device__ __forceinline__ double far_squared(const tuple<A, As...>& a, const tuple<B, Bs...>& b) {
  const double far = double(a.first) - double(b.first);
  return far * far + far_squared(a.rest, b.rest);
}
}  // namespace detail
template <class A, class B>
__device__ __forceinline__ double dist(const A& a, const B& b) {
  return sqrt(detail::far_squared(a, b));
}

}  // namespace quern
