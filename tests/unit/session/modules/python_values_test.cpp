// SPDX-License-Identifier: Apache-2.0
// Compares the results of Kernel Python on the device with CPython and NumPy: python_values.txt, written by
// python_values.py.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace quern;

namespace {

bool ready() {
  static const bool found = Session::try_open({"cpu"}) && doctor().ready;
  if (!found) MESSAGE("SKIPPED: no CPU device or no NVRTC on this machine");
  return found;
}

struct Row {
  std::string expression;
  double value = 0;
};

std::vector<Row> read_rows() {
  std::ifstream file(QUERN_TEST_DATA "/python_values.txt");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t');
    rows.push_back({line.substr(0, tab), std::strtod(line.c_str() + tab, nullptr)});
  }
  return rows;
}

/// Compares within a few units in the last place, or of 1 if the result is a difference close to 0.
bool near(double value, double expected) {
  if (std::isnan(expected)) return std::isnan(value);
  return value == expected || std::abs(value - expected) <= 4e-15 * std::max(1.0, std::abs(expected));
}

/// Some of the rows as one kernel, which writes their values to `out`.
std::string kernel_of(std::span<const Row> rows) {
  std::string source =
      "import math, cmath, operator\nimport numpy as np\nfrom numba import cuda\n\n@cuda.jit\n"
      "def k(x, y, n, m, z, w, out):\n";
  for (std::size_t i = 0; i < rows.size(); ++i)
    source += "    out[" + std::to_string(i) + "] = " + rows[i].expression + "\n";
  return source;
}

}  // namespace

TEST_SUITE_BEGIN("session");

TEST_CASE("expressions give what CPython and NumPy give") {
  if (!ready()) return;
  constexpr std::size_t kAtOnce = 40;
  const std::vector<Row> rows = read_rows();
  REQUIRE(rows.size() > 200);
  const Session session("cpu");
  for (std::size_t first = 0; first < rows.size(); first += kAtOnce) {
    const std::span part = std::span(rows).subspan(first, std::min(kAtOnce, rows.size() - first));
    std::vector<double> out(part.size(), 0);
    session.load_python(kernel_of(part))
        .kernel("k")({.grid = 1, .block = 1})(0.7, -2.5, std::int64_t{12}, std::int64_t{-5},
                                              std::complex<double>(0.3, -1.2),
                                              std::complex<double>(-2.0, 0.5), out);
    for (std::size_t i = 0; i < part.size(); ++i) {
      INFO(part[i].expression << " is " << out[i] << ", expected " << part[i].value);
      CHECK(near(out[i], part[i].value));
    }
  }
}

TEST_CASE("states for random numbers are Numba's") {
  const auto states = create_xoroshiro128p_states(3, 1, 2);
  // init_xoroshiro128p_states_cpu(states, seed=1, subsequence_start=2) of numba.cuda.random.
  CHECK(states[0].s0 == 0xb3d0cd6ddfa7a4cu);
  CHECK(states[0].s1 == 0xd3c2c33e9b8e707au);
  CHECK(states[1].s0 == 0x3b80c389fcd31ee7u);
  CHECK(states[1].s1 == 0xb43c70624d182bbbu);
  CHECK(states[2].s0 == 0x17e0e052c5094b78u);
  CHECK(states[2].s1 == 0x8341792fb49d7386u);
}

TEST_CASE("random numbers on the device are those that the same state gives on the host") {
  if (!ready()) return;
  const Session session("cpu");
  const Module module = session.load_python(
      "from numba import cuda\nfrom numba.cuda.random import *\n\n@cuda.jit\ndef seed(states):\n"
      "    init_xoroshiro128p_state(states, 0, 42)\n    for i in range(1, states.size):\n        states[i] = "
      "states[i - 1]\n"
      "        xoroshiro128p_jump(states, i)\n\n@cuda.jit\ndef draw(states, bits, even, normal):\n    i = "
      "cuda.grid(1)\n"
      "    bits[i] = xoroshiro128p_next(states, i)\n    even[i] = xoroshiro128p_uniform_float64(states, i)\n"
      "    normal[i] = xoroshiro128p_normal_float32(states, i)\n");
  auto states = session.to_device(std::vector<Xoroshiro128pState>(4));
  module.kernel("seed")({.grid = 1, .block = 1})(states);
  std::vector<Xoroshiro128pState> host = create_xoroshiro128p_states(4, 42);
  const std::vector<Xoroshiro128pState> seeded = states.copy_to_host();
  std::vector<std::uint64_t> bits(4);
  std::vector<double> even(4);
  std::vector<float> normal(4);
  module.kernel("draw")({.grid = 1, .block = 4})(states, bits, even, normal);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(seeded[i].s0 == host[i].s0);
    CHECK(seeded[i].s1 == host[i].s1);
    CHECK(bits[i] == host[i].next());
    const auto unit = [&] { return static_cast<double>(host[i].next() >> 11) * 0x1p-53; };
    CHECK(even[i] == unit());
    const auto u = static_cast<float>(unit()), v = static_cast<float>(unit());
    CHECK(std::abs(normal[i] - std::sqrt(-2.0f * std::log(u)) * std::cos(6.2831855f * v)) < 1e-5f);
  }
}

TEST_CASE("functions inside kernels, effects in their order, and None") {
  if (!ready()) return;
  const Session session("cpu");
  std::vector<std::int64_t> a = {10, 20, 30, 40, 50, 60, 70, 80};
  session
      .load_python(
          "from numba import cuda\n\n@cuda.jit(device=True)\ndef bump(a, i):\n    a[i] += 1\n    return "
          "a[i]\n\n"
          "@cuda.jit(device=True)\ndef pick(x, y=None):\n    if y is None:\n        return -x\n    return x "
          "+ y\n\n"
          "@cuda.jit\ndef k(a):\n    scale = 3\n    def f(x, y=1):\n        return x * scale + y\n    g = "
          "lambda t: f(t, 2)\n"
          "    a[1] = a[0] - bump(a, 0)\n    a[2] = bump(a, 0) * 100 + bump(a, 0)\n    a[bump(a, 3) - 38] += "
          "bump(a, 3)\n"
          "    a[4] = f(5) * 1000 + g(6)\n    a[5] = pick(7) + pick(8, 9)\n    a[6] = 5 if a[0] < bump(a, 0) "
          "< bump(a, 0) < 99 else 6\n"
          "    a[7] = 1 if a[0] < 0 and bump(a, 0) else 2\n")
      .kernel("k")({.grid = 1, .block = 1})(a);
  CHECK(a == std::vector<std::int64_t>{15, -1, 1213, 83, 16020, 10, 5, 2});
}

TEST_CASE("sums, differences and products that do not fit wrap, and nothing takes them for positive") {
  if (!ready()) return;
  constexpr std::size_t kCount = 96, kResults = 12;
  const Session session("cpu");
  std::vector<std::int64_t> a(kCount), b(kCount), out(kCount * kResults);
  std::vector<std::int32_t> c(kCount), d(kCount);
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < kCount; ++i) {
    a[i] = i == 0 ? INT64_MIN : static_cast<std::int64_t>(random());
    b[i] = i == 1 ? INT64_MIN : static_cast<std::int64_t>(random() >> (i % 40));
    c[i] = i == 2 ? INT32_MIN : static_cast<std::int32_t>(random());
    d[i] = static_cast<std::int32_t>(random());
  }
  std::vector<std::int32_t> summed = c, squares = c;
  session
      .load_python(
          "import numpy as np\nfrom numba import cuda\n\n@cuda.jit\ndef k(a, b, c, d, out, summed, "
          "squares):\n"
          "    i = cuda.grid(1)\n    if i < a.size:\n        x = a[i]\n        y = b[i]\n"
          "        out[12 * i + 0] = 1 if x * x < 0 else 0\n        out[12 * i + 1] = (y * y) % 1000\n"
          "        out[12 * i + 2] = (x + y) // 16\n        out[12 * i + 3] = 1 if x + 5000000000 > x else "
          "0\n"
          "        out[12 * i + 4] = (x - y) >> 60\n        out[12 * i + 5] = 1 if -x > 0 and x < 0 else 0\n"
          "        h = 0\n        for j in range(20):\n            h = h * 6364136223846793005 + j * y\n"
          "            h += x\n        out[12 * i + 6] = h >> 40\n        out[12 * i + 7] = 1 if h % 3 < 0 "
          "else 0\n"
          "        out[12 * i + 8] = y ** 5 % 1000\n        out[12 * i + 9] = 1 if np.square(c[i]) < 0 else "
          "0\n"
          "        summed[i] += d[i]\n        out[12 * i + 10] = 1 if summed[i] < c[i] else 0\n"
          "        squares[i] *= c[i]\n        out[12 * i + 11] = squares[i] // 8\n")
      .kernel("k")({.grid = 3, .block = 32})(a, b, c, d, out, summed, squares);
  const auto floored = [](std::int64_t of, std::int64_t by) { return of / by - (of % by < 0 ? 1 : 0); };
  const auto rest = [&](std::int64_t of, std::int64_t by) { return of - floored(of, by) * by; };
  for (std::size_t i = 0; i < kCount; ++i) {
    INFO("element " << i);
    const auto x = static_cast<std::uint64_t>(a[i]), y = static_cast<std::uint64_t>(b[i]);
    const auto u = static_cast<std::uint32_t>(c[i]);
    const auto number = [](std::uint64_t bits) { return static_cast<std::int64_t>(bits); };
    const auto word = [](std::uint32_t bits) { return static_cast<std::int32_t>(bits); };
    std::uint64_t h = 0;
    for (std::uint64_t j = 0; j < 20; ++j) h = h * 6364136223846793005u + j * y + x;
    const std::int32_t sum = word(u + static_cast<std::uint32_t>(d[i]));
    const std::int64_t expected[kResults] = {number(x * x) < 0,
                                             rest(number(y * y), 1000),
                                             floored(number(x + y), 16),
                                             number(x + 5000000000u) > a[i],
                                             number(x - y) >> 60,
                                             number(0 - x) > 0 && a[i] < 0,
                                             number(h) >> 40,
                                             0,
                                             rest(number(y * y * y * y * y), 1000),
                                             word(u * u) < 0,
                                             sum < c[i],
                                             floored(word(u * u), 8)};
    for (std::size_t k = 0; k < kResults; ++k) {
      INFO("result " << k);
      CHECK(out[i * kResults + k] == expected[k]);
    }
    CHECK(summed[i] == sum);
    CHECK(squares[i] == word(u * u));
  }
}

TEST_SUITE_END();
