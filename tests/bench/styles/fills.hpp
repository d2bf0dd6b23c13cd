// SPDX-License-Identifier: Apache-2.0
// The data of the rows: the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "row.hpp"

namespace quern::bench {

/// `make(i)` gives element i.
template <class T, class Make>
Fill fill_of(Make make) {
  return [make](std::byte* to, std::size_t bytes) {
    T* const elements = reinterpret_cast<T*>(to);
    for (std::size_t i = 0; i < bytes / sizeof(T); ++i) elements[i] = static_cast<T>(make(i));
  };
}
template <class T>
Fill fill_with(std::vector<T> values) {
  return [values = std::move(values)](std::byte* to, std::size_t) {
    std::copy(values.begin(), values.end(), reinterpret_cast<T*>(to));
  };
}

/// A number that looks random, for every i.
constexpr std::uint64_t mixed(std::uint64_t i) {
  i += 0x9e3779b97f4a7c15;
  i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9;
  i = (i ^ i >> 27) * 0x94d049bb133111eb;
  return i ^ i >> 31;
}
/// From 0 to 1, 24 bits.
constexpr double unit(std::uint64_t i) { return static_cast<double>(mixed(i) >> 40) / 16777216.0; }

Fill floats(double low, double high);
Fill halves(double low, double high);
/// From `low` up to, and without, `high`.
Fill ints(std::int64_t low, std::int64_t high);
Fill words();
Fill bytes();

/// A sparse matrix: where rows begin, and how many elements there are. Rows have `least` to `most` of them.
std::vector<std::int32_t> row_begins(std::size_t rows, std::size_t least, std::size_t most);

/// Bytes of letters with kPattern's text in some places; the text itself.
Fill letters();
Fill pattern();

/// A search tree of kNodes odd numbers, added in random order.
struct Tree {
  std::vector<std::int32_t> key, left, right;
};
Tree search_tree();

/// Returns the first output index of each block's keys with a digit, as [digit][block], for the keys of
/// words().
std::vector<std::int32_t> radix_offsets();

/// Atoms on a grid, moved a little; neighbours are atoms up to two places away along each axis.
Fill coordinates(int axis);
std::vector<std::int32_t> neighbours();

}  // namespace quern::bench
