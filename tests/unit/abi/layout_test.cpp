// SPDX-License-Identifier: Apache-2.0
#include "quern/layout.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "../support/messages.hpp"

using namespace quern;
using quern::test::holds;
using quern::test::message;

namespace {

using Strides = std::vector<std::int64_t>;

Strides strides(const Layout& layout) {
  return {layout.strides_bytes().begin(), layout.strides_bytes().end()};
}
Shape shape(const Layout& layout) { return {layout.shape().begin(), layout.shape().end()}; }
Layout::View indexed(const Layout& layout, std::vector<Index> indices) { return layout.indexed(indices); }
std::optional<Layout> reshaped(const Layout& layout, Shape to, Order order = Order::c) {
  return layout.reshaped(to, order);
}

}  // namespace

TEST_CASE("C order lets the last index change fastest, Fortran order the first") {
  CHECK(strides(Layout({2, 3, 4}, 8)) == Strides{96, 32, 8});
  CHECK(strides(Layout({2, 3, 4}, 8, Order::f)) == Strides{8, 16, 48});
  CHECK(Layout({2, 3, 4}, 8).size_bytes() == 192);
  CHECK(Layout({}, 8).size() == 1);
  CHECK(Layout({3, 0, 4}, 8).size() == 0);
  CHECK(Layout().size() == 0);
}

TEST_CASE("contiguity follows NumPy: extents of 1 and empty arrays do not matter") {
  CHECK(Layout({1, 5}, 4, Strides{999, 4}).is_c_contiguous());
  CHECK(Layout({1, 5}, 4, Strides{999, 4}).is_f_contiguous());
  CHECK(Layout({0, 5}, 4, Strides{7, 7}).is_f_contiguous());
  CHECK_FALSE(Layout({2, 5}, 4, Strides{40, 8}).is_c_contiguous());
  CHECK(Layout({2, 3}, 4, Order::f).order() == Order::f);
  CHECK(Layout({5}, 4).order() == Order::c);
}

TEST_CASE("sizes that cannot be are refused") {
  CHECK_THROWS_AS(Layout({-1}, 4), Error);
  CHECK_THROWS_AS(Layout({INT64_MAX, 2}, 4), Error);
  CHECK_THROWS_AS(Layout({2}, 4, Strides{4, 4}), Error);
  CHECK_THROWS_AS(Layout({3}, 4, Strides{INT64_MAX}), Error);
  CHECK(Layout({INT64_MAX, 0}, 4).size() == 0);
}

TEST_CASE("positions count from either end, slices are Python's") {
  const Layout layout({10, 4}, 4);
  CHECK(indexed(layout, {3}).offset_bytes == 48);
  CHECK(indexed(layout, {-1}).offset_bytes == 144);
  CHECK(shape(indexed(layout, {3}).layout) == Shape{4});
  // [start, stop, step] -> first index, count, as Python's range(10)[start:stop:step] gives them
  struct Row {
    Slice slice;
    std::int64_t first, count;
  };
  const Row rows[] = {{{}, 0, 10},        {{2, 8, 1}, 2, 6},   {{-3, {}, 1}, 7, 3},    {{{}, {}, -1}, 9, 10},
                      {{8, 2, -2}, 8, 3}, {{5, 100, 1}, 5, 5}, {{{}, -20, -1}, 9, 10}, {{1, 9, 3}, 1, 3}};
  for (const Row& row : rows) {
    const Layout::View view = indexed(layout, {row.slice});
    CHECK(view.layout.shape()[0] == row.count);
    CHECK(view.offset_bytes == row.first * 16);
  }
  CHECK(indexed(layout, {Slice{8, 2, 1}}).layout.size() == 0);
  CHECK(indexed(layout, {Slice{0, 10, INT64_MIN}}).layout.size() == 0);
  CHECK_THROWS_AS(indexed(layout, {10}), Error);
  CHECK_THROWS_AS(indexed(layout, {-11}), Error);
  CHECK_THROWS_AS(indexed(layout, {0, 0, 0}), Error);
  CHECK_THROWS_AS(indexed(layout, {Slice{0, 1, 0}}), Error);
}

TEST_CASE("an ellipsis stands for the axes that are not named, a new axis has extent 1") {
  const Layout layout({2, 3, 4}, 1);
  CHECK(shape(indexed(layout, {kEllipsis, 1}).layout) == Shape{2, 3});
  CHECK(indexed(layout, {kEllipsis, 1}).offset_bytes == 1);
  CHECK(shape(indexed(layout, {0, kNewAxis, kEllipsis}).layout) == Shape{1, 3, 4});
  CHECK_THROWS_AS(indexed(layout, {kEllipsis, kEllipsis}), Error);
}

TEST_CASE("a reshape is a view exactly where NumPy makes one") {
  CHECK(strides(*reshaped(Layout({4, 6}, 4), {2, 2, 3, 2})) == Strides{48, 24, 8, 4});
  CHECK(shape(*reshaped(Layout({4, 6}, 4), {-1})) == Shape{24});
  CHECK_FALSE(reshaped(Layout({4, 6}, 4, Order::f), {24}));
  CHECK(reshaped(Layout({4, 6}, 4, Order::f), {24}, Order::f));
  CHECK_FALSE(reshaped(Layout({4, 6}, 4, Order::f), {6, 4}));
  // every second row: rows stay whole, so splitting them is a view, joining them is not
  const Layout rows = indexed(Layout({4, 6}, 4), {Slice{{}, {}, 2}}).layout;
  CHECK(strides(*reshaped(rows, {2, 3, 2})) == Strides{48, 8, 4});
  CHECK_FALSE(reshaped(rows, {12}));
  CHECK(strides(*reshaped(indexed(Layout({6}, 4), {Slice{{}, {}, -1}}).layout, {2, 3})) == Strides{-12, -4});
  CHECK(reshaped(Layout({3, 1, 1}, 4), {1, 3}));
  CHECK(shape(*reshaped(Layout({0, 4}, 4), {2, 0})) == Shape{2, 0});
  CHECK_THROWS_AS(reshaped(Layout({4}, 4), {3}), Error);
  CHECK_THROWS_AS(reshaped(Layout({4}, 4), {-1, -1}), Error);
  CHECK_THROWS_AS(reshaped(Layout({4}, 4), {-1, 3}), Error);
  CHECK_THROWS_AS(reshaped(Layout({0}, 4), {-1, 0}), Error);
}

TEST_CASE("what cannot be done with an empty array is said of it") {
  CHECK(holds(message([] { indexed(Layout({3, 0}, 4), {1, 0}); }), "that axis is empty"));
  CHECK(holds(message([] { indexed(Layout({3, 0}, 4), {3, 0}); }), "give -3 to 2"));
  CHECK(holds(message([] { reshaped(Layout({0}, 4), {0, -1}); }), "give all extents"));
  CHECK(holds(message([] { reshaped(Layout({6}, 4), {0, -1}); }), "it has 6 elements"));
}

TEST_CASE("the reach is what the elements touch, and density tells whether they fill it") {
  const Layout back = indexed(Layout({6}, 4), {Slice{{}, {}, -1}}).layout;
  CHECK(back.reach().lowest == -20);
  CHECK(back.reach().end == 4);
  CHECK(back.is_dense());
  CHECK(Layout({2, 3}, 4, Order::f).is_dense());
  CHECK_FALSE(Layout({2, 3}, 4, Strides{4, 4}).is_dense());
  CHECK_FALSE(Layout({3}, 4, Strides{8}).is_dense());
  CHECK_FALSE(Layout({3}, 4, Strides{0}).is_dense());
}

TEST_CASE("broadcasting repeats axes of extent 1 and new ones in front") {
  CHECK(strides(Layout({3, 1}, 4).broadcast(Shape{2, 3, 5})) == Strides{0, 4, 0});
  CHECK_THROWS_AS(Layout({3}, 4).broadcast(Shape{4}), Error);
  CHECK_THROWS_AS(Layout({3, 1}, 4).broadcast(Shape{3}), Error);
}
