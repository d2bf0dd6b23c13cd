// SPDX-License-Identifier: Apache-2.0
// Unusual input must not crash or hang the front end.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>

#include "helpers.hpp"

using quern::test::cuda_of;
using quern::test::holds;

namespace {

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

std::string statement(const std::string& text) {
  return cuda_of("@cuda.jit\ndef k(a):\n    " + text + "\n", "(float32[::1],)");
}

}  // namespace

TEST_SUITE_BEGIN("frontend");

TEST_CASE("nesting beyond what is read is an error that says so") {
  CHECK(holds(statement("a[0] = " + repeated("(", 5000) + "1" + repeated(")", 5000)),
              "nested more than 200 deep"));
  CHECK(holds(statement("a[0] = " + repeated("-", 5000) + "1"), "nested more than 1000 deep"));
  CHECK(holds(statement("a[0] = 1" + repeated(" + 1", 5000)), "nested more than 1000 deep"));
  CHECK(holds(statement("a[0] = " + repeated("2 ** ", 5000) + "1"), "nested more than 200 deep"));
  CHECK(holds(statement("x = a" + repeated("[0]", 5000)), "nested more than 1000 deep"));
  CHECK(holds(statement("a[0] = " + repeated("1 if a[1] else ", 5000) + "2"), "nested more than 1000 deep"));
  CHECK(holds(statement("a[0] = " + repeated("not ", 5000) + "1"), "nested more than 1000 deep"));
  std::string blocks = "@cuda.jit\ndef k(a):\n";
  for (int i = 1; i < 1200; ++i) blocks += std::string(static_cast<std::size_t>(i), ' ') + "if a[0]:\n";
  CHECK(holds(cuda_of(blocks, "(float32[::1],)"), "blocks are nested more than 100 deep"));
  CHECK(holds(statement("if a[0]:\n        pass\n" + repeated("    elif a[1]:\n        pass\n", 1200)),
              "more than 1000 'elif'"));
}

TEST_CASE("long chains and deep brackets are compiled") {
  CHECK(holds(statement("a[0] = " + repeated("(", 190) + "a[1]" + repeated(")", 190)), "a[0] = a[1];"));
  CHECK(holds(statement("a[0] = a[1]" + repeated(" + a[1]", 500)), "a[0] = a[1] + a[1]"));
  CHECK(holds(statement("a[0] = " + repeated("1 if a[1] else ", 900) + "2"), "a[0] = a[1] != 0 ? 1 : "));
  CHECK(holds(statement("if a[0]:\n        pass\n" + repeated("    elif a[1]:\n        a[2] = 3\n", 500)),
              "a[2] = "));
}

TEST_CASE("functions that call each other without end are reported") {
  const std::string text = cuda_of(
      "@cuda.jit(device=True)\ndef f(x):\n    return f((x, x))\n\n@cuda.jit\ndef k(a):\n    a[0] = f(1)\n",
      "(float32[::1],)");
  CHECK(holds(text, "error:"));
}

TEST_CASE("chains of calls at the file's level are read once") {
  const auto table = [](const std::string& value) {
    return cuda_of("T = " + value + "\n@cuda.jit\ndef k(a):\n    a[0] = T[1]\n", "(float32[::1],)");
  };
  CHECK(holds(table("np.arange(4)" + repeated(".reshape(4)", 60)), "T[4] = {0, 1, 2, 3};"));
  CHECK(holds(table("frame" + repeated(".part(1)", 60)), "'T' is "));
}

TEST_CASE("functions whose versions double with each call are reported, and nothing that follows from it") {
  std::string text =
      "@cuda.jit(device=True)\ndef f0(n):\n    a = cuda.local.array(n, float32)\n    return a[0]\n\n\n";
  for (int i = 1; i < 40; ++i)
    text += fmt::format("@cuda.jit(device=True)\ndef f{}(n):\n    return f{}(2 * n + 1) + f{}(2 * n)\n\n\n",
                        i, i - 1, i - 1);
  text = cuda_of(text + "@cuda.jit\ndef k(a):\n    a[0] = f39(1)\n", "(float32[::1],)");
  CHECK(holds(text, "the kernel needs more than 10000 versions of its functions"));
  CHECK_FALSE(holds(text, "cannot be stored"));
}

TEST_CASE("types that double with every line are refused") {
  CHECK(holds(statement("t = (1, 2)\n" + repeated("    t = (t, (t, 1))\n", 60) + "    a[0] = 1"),
              "a tuple has at most 1000 items"));
  CHECK(holds(statement("t = (1, 2)\n" + repeated("    t = t + t\n", 60) + "    a[0] = 1"),
              "a tuple has at most 1000 items"));
}

TEST_CASE("at most a hundred diagnostics are given") {
  std::string text = "@cuda.jit\ndef k(a):\n";
  for (int i = 0; i < 500; ++i) text += "    a[0] = unknown" + std::to_string(i) + "\n";
  const auto source =
      quern::frontend::translate(quern::test::python(quern::test::with_imports(text)), "", "(float32[::1],)");
  REQUIRE_FALSE(source);
  CHECK(source.errors().size() == 100);
}

TEST_CASE("no prefix of a kernel and no exchanged byte crashes") {
  const std::string text = quern::test::with_imports(
      "N = 4\n@cuda.jit(device=True)\ndef f(x, y=2):\n    return x * y if x > 0 else "
      "-x\n\n@cuda.jit('void(float32[:], int32)')\ndef k(a, n):\n    s = cuda.shared.array((N, 2), float32)\n"
      "    for i in range(cuda.grid(1), n, 3):\n        if i == 2 and not n < 0:\n            continue\n     "
      "   s[i % N, 0] += f(a[i])\n    else:\n        x, y = a.shape[0], a[1:3]\n    while True:\n"
      "        n -= 1\n        if n < 0: break\n    print('done', x, n)\n");
  for (std::size_t i = 0; i < text.size(); ++i)
    static_cast<void>(quern::frontend::translate(quern::test::python(text.substr(0, i)), "k", ""));
  std::mt19937 random(7);
  constexpr std::string_view kBytes = "()[]{}:,.\n \t'\"#=+-*/%<>!&|^~@\\0aif\x80\xff";
  for (int round = 0; round < 3000; ++round) {
    std::string changed = text;
    for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = kBytes[random() % kBytes.size()];
    static_cast<void>(quern::frontend::translate(quern::test::python(changed), "k", ""));
  }
}

TEST_SUITE_END();
