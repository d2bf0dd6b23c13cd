// SPDX-License-Identifier: Apache-2.0
// Expected texts come from numpy.array2string with threshold=16, edgeitems=3 (NumPy 2).
#include "arrays/show.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>

#include "arrays/argument.hpp"

using namespace quern;
using namespace quern::cli;

namespace {

template <class T>
std::string text_of(Dtype dtype, std::vector<T> values, std::vector<std::int64_t> shape = {-1}) {
  if (shape == std::vector<std::int64_t>{-1}) shape = {static_cast<std::int64_t>(values.size())};
  Array array = make_array(element_of(dtype), shape);
  if (!values.empty()) std::memcpy(array.bytes->data(), values.data(), values.size() * sizeof(T));
  return array_text(array);
}

std::vector<std::int32_t> count(std::size_t size) {
  std::vector<std::int32_t> values(size);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace

TEST_CASE("floats stand with their points below each other and no more digits than they need") {
  CHECK(text_of<float>(Dtype::float32, {0, .5f, 1.25f, 100}) == "[  0.     0.5    1.25 100.  ]");
  CHECK(text_of<double>(Dtype::float64, {1.0 / 3, 2.0 / 3, 1.0}) == "[0.33333333 0.66666667 1.        ]");
  CHECK(text_of<float>(Dtype::float32, {1.0f / 3, 1e-3f}) == "[0.33333334 0.001     ]");
  CHECK(text_of<double>(Dtype::float64, {-1.5, 22.25}) == "[-1.5  22.25]");
  CHECK(text_of<double>(Dtype::float64, {1e-3, 0.5, 0.99}) == "[0.001 0.5   0.99 ]");
  CHECK(text_of<double>(Dtype::float64, {0, 0, 0}) == "[0. 0. 0.]");
}

TEST_CASE("very unlike floats are written with exponents") {
  CHECK(text_of<double>(Dtype::float64, {1e-5, 1.5, -2e10}) == "[ 1.0e-05  1.5e+00 -2.0e+10]");
  CHECK(text_of<double>(Dtype::float64, {1e-3, 5.0}) == "[1.e-03 5.e+00]");
  CHECK(text_of<double>(Dtype::float64, {123456789.0, 1.0}) == "[1.23456789e+08 1.00000000e+00]");
  CHECK(text_of<std::uint16_t>(Dtype::float16, {0x2e66, 0x4100, 0x7bff}) == "[1.00e-01 2.50e+00 6.55e+04]");
}

TEST_CASE("what is no number is named") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(text_of<float>(Dtype::float32, {nan, 1.5f, -HUGE_VALF}) == "[ nan  1.5 -inf]");
  CHECK(text_of<double>(Dtype::float64, {std::nan(""), HUGE_VAL}) == "[nan inf]");
}

TEST_CASE("other types are aligned to the right") {
  CHECK(text_of<std::int16_t>(Dtype::int16, {1, -20, 300}) == "[  1 -20 300]");
  CHECK(text_of<std::uint8_t>(Dtype::bool_, {1, 0}) == "[ True False]");
  CHECK(text_of<std::complex<float>>(Dtype::complex64, {{1, 2}, {-0.5f, -1.25f}}) ==
        "[ 1. +2.j   -0.5-1.25j]");
}

TEST_CASE("long axes are abridged, and more dimensions nest") {
  CHECK(array_text(std::get<Array>(parse_argument("arange(1000, float32)").value)) ==
        "[  0.   1.   2. ... 997. 998. 999.]");
  CHECK(text_of(Dtype::int32, count(8), {2, 2, 2}) == "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  CHECK(text_of(Dtype::int32, count(100), {10, 10}) ==
        "[[ 0  1  2 ...  7  8  9]\n [10 11 12 ... 17 18 19]\n [20 21 22 ... 27 28 29]\n ...\n"
        " [70 71 72 ... 77 78 79]\n [80 81 82 ... 87 88 89]\n [90 91 92 ... 97 98 99]]");
  CHECK(text_of<double>(Dtype::float64, {2.5}, {}) == "2.5");
  CHECK(text_of<double>(Dtype::float64, {}, {0, 3}) == "[]");
}
