// SPDX-License-Identifier: Apache-2.0
// Array views and the real std::mdspan, C++23: the tests of array_view_test.cpp. A separate program that
// links nothing, since the standard library that has <mdspan> may not be the one that quern uses.
#include <mdspan>

#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "quern/array_view.hpp"

namespace {

using quern::ArrayView;
using quern::MdspanLike;

template <class T, class I = std::int64_t>
using Strided = std::mdspan<T, std::dextents<I, 2>, std::layout_stride>;

static_assert(std::is_convertible_v<ArrayView<float, 2>, Strided<float>>);
static_assert(std::is_convertible_v<ArrayView<float, 2>, Strided<const float, int>>);
static_assert(std::is_convertible_v<ArrayView<const float, 2>, Strided<const float, unsigned long>>);
static_assert(!std::is_convertible_v<ArrayView<const float, 2>, Strided<float>>);
static_assert(!std::is_convertible_v<ArrayView<float, 2>, Strided<double>>);
static_assert(!std::is_convertible_v<ArrayView<float, 3>, Strided<float>>);
static_assert(!std::is_convertible_v<ArrayView<float, 2>, std::mdspan<float, std::dextents<int, 2>>>);
static_assert(
    !std::is_convertible_v<ArrayView<float, 2>, std::mdspan<float, std::extents<int, 4, std::dynamic_extent>,
                                                            std::layout_stride>>);
static_assert(MdspanLike<Strided<float>>);
static_assert(MdspanLike<std::mdspan<const float, std::dextents<int, 3>>>);
static_assert(MdspanLike<std::mdspan<double, std::extents<int, 2, 3>, std::layout_left>>);

int failures = 0;
void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "std_mdspan: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  float memory[24];
  for (int i = 0; i < 24; ++i) memory[i] = static_cast<float>(i);
  const ArrayView<float, 2> view(memory + 7, {2, 3}, {24, 8});
  const Strided<float> span = view;
  check(span.data_handle() == memory + 7, "the same memory");
  check(span.extent(0) == 2 && span.extent(1) == 3, "the same extents");
  check(span.stride(0) == 6 && span.stride(1) == 2, "the same strides");
  check(span[1, 2] == 17.0f, "the same elements");
  check(view[1, 2] == 17.0f, "a view's own subscript");
  span[0, 1] = -1;
  check(memory[9] == -1.0f, "writes go through");
  const Strided<const float, int> constant = view;
  check(constant[0, 1] == -1.0f, "const elements, another index type");
  const ArrayView<float, 2> one(memory, {1, 3}, {0, 4});
  check(static_cast<Strided<float>>(one).stride(0) > 0, "a stride that says nothing");
  return failures == 0 ? 0 : 1;
}
