// SPDX-License-Identifier: Apache-2.0
// Names: locals, joins, and the resulting types. The expected types are those of Numba for the same code.
#include <doctest/doctest.h>

#include "helpers.hpp"

using quern::test::cuda_of;
using quern::test::holds;

TEST_SUITE_BEGIN("frontend");

TEST_CASE("a name has the type of its latest assignment") {
  const std::string text =
      cuda_of("@cuda.jit\ndef k(out):\n    x = 7\n    out[0] = x // 2\n    x = 0.5\n    out[1] = x\n",
              "(float64[::1],)");
  CHECK(holds(text, "const int x = 7;"));
  CHECK(holds(text, "const double x_float64 = 0.5;"));
}

TEST_CASE("where paths meet, a name has what both types convert to") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a, out):\n    total = 0\n    for i in range(a.size):\n        total += a[i]\n    "
      "out[0] = total\n",
      "float32[::1], float64[::1]");
  CHECK(holds(text, "double total = 0;"));
  CHECK(holds(text, "total += a[i];"));
}

TEST_CASE("a variable that several assignments of narrower types flow into is not const") {
  const std::string text =
      cuda_of("@cuda.jit\ndef k(a, n):\n    x = n\n    while a[0] > x:\n        x = a[1]\n    a[2] = x\n",
              "float32[::1], int64");
  CHECK(holds(text, "  double x = n;"));
  CHECK(holds(text, "    x = a[1];"));
  CHECK_FALSE(holds(text, "const double x"));
}

TEST_CASE("a loop's variable is the loop's, unless it is read behind it") {
  CHECK(holds(cuda_of("@cuda.jit\ndef k(a):\n    for i in range(4):\n        a[i] = i\n", "(int64[::1],)"),
              "for (int i = 0; i < 4; ++i) {"));
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    for i in range(4):\n        a[i] = i\n    a[5] = i\n", "(int64[::1],)");
  CHECK(holds(text, "int i{};"));
  CHECK(holds(text, "i = item;"));
}

TEST_CASE("an exchange keeps both values") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    x = a[0]\n    y = a[1]\n    if x > y:\n        x, y = y, x\n    a[0] = x\n  "
      "  a[1] = y\n",
      "(float32[::1],)");
  CHECK(holds(text, "const float value = y;"));
  CHECK(holds(text, "y = value2;"));
}

TEST_CASE("code behind a return is not compiled") {
  CHECK_FALSE(holds(
      cuda_of("@cuda.jit\ndef k(a):\n    a[0] = 1\n    return\n    a[0] = 2\n", "(float32[::1],)"), "= 2"));
}

TEST_CASE("an else behind a loop runs where no break was taken") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    for i in range(9):\n        if a[i] > 0:\n            break\n    else:\n    "
      "    a[0] = 1\n",
      "(float32[::1],)");
  CHECK(holds(text, "bool completed = true;"));
  CHECK(holds(text, "completed = false;"));
  CHECK(holds(text, "if (completed) {"));
}

TEST_SUITE_END();
