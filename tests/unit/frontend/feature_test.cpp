// SPDX-License-Identifier: Apache-2.0
// The C++ for nested functions, records, vectors, enumerations, and debug builds.
#include <doctest/doctest.h>

#include <cmath>
#include <span>

#include "helpers.hpp"

using quern::test::cuda_of;
using quern::test::holds;

TEST_SUITE_BEGIN("frontend");

TEST_CASE("a function inside a kernel gets what it captures as arguments") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a, n):\n    scale = a[0]\n    def f(x, y=2):\n        return x * scale + y\n"
      "    g = lambda t: f(t, 1) + n\n    a[1] = f(a[2]) + g(3) + (lambda q: q + 1)(4)\n",
      "float32[::1], int32");
  CHECK(holds(text, "static __device__ double f(float x, long long y, float scale)"));
  CHECK(holds(text, "static __device__ double g(long long t, int n, float scale)"));
  CHECK(holds(text, "a[1] = f(a[2], 2, scale) + g(3, n, scale) + lambda(4);"));
}

TEST_CASE("a function inside a kernel can call itself and one beside it") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    def half(n):\n        return n // 2\n    def depth(n):\n        if n < 1:\n"
      "            return 0\n        return 1 + depth(half(n))\n    a[0] = depth(9)\n",
      "(int64[::1],)");
  CHECK(holds(text, "a[0] = depth(9);"));
  CHECK(holds(text, "(1 + (unsigned long long)depth(half_(n)))"));
}

TEST_CASE("a function inside a kernel sees the names around it as they are when it is called") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    s = a[1]\n    def f(x):\n        return x * s\n    a[2] = f(a[0])\n"
      "    s = a[3]\n    a[4] = f(a[0])\n    for i in range(3):\n        s = s + (lambda x: x * i)(s)\n"
      "    g = f\n    a[5] = g(a[0])\n",
      "(int64[::1],)");
  CHECK(holds(text, "static __device__ long long f(long long x, long long s)"));
  CHECK(holds(text, "long long s = a[1];"));
  CHECK(holds(text, "a[2] = f(a[0], s);"));
  CHECK(holds(text, "s = a[3];"));
  CHECK(holds(text, "a[4] = f(a[0], s);"));
  CHECK(holds(text, "s = (long long)((unsigned long long)s + lambda(s, i));"));
  CHECK(holds(text, "a[5] = f(a[0], s);"));
}

TEST_CASE("functions and types are values: passed on, named anew, returned, held in tuples") {
  const std::string twice = "@cuda.jit(device=True)\ndef twice(x):\n    return 2 * x\n\n",
                    apply = "@cuda.jit(device=True)\ndef apply(f, x):\n    return f(x)\n\n";
  const auto kernel = [&](const std::string& body) {
    return cuda_of(twice + apply +
                       "@cuda.jit(device=True)\ndef choose():\n    return twice\n\nBOTH = (twice, abs)\n\n"
                       "@cuda.jit\ndef k(a):\n" +
                       body,
                   "(float64[::1],)");
  };
  std::string text = kernel("    a[0] = apply(twice, a[1])\n    a[2] = apply(f=math.sqrt, x=a[3])\n");
  CHECK(holds(text, "static __device__ double apply(double x) {\n  return twice(x);"));
  CHECK(holds(text, "static __device__ double apply_2(double x) {\n  return sqrt(x);"));
  CHECK(holds(text, "a[0] = apply(a[1]);"));
  CHECK(holds(text, "a[2] = apply_2(a[3]);"));
  text = kernel("    a[0] = apply(float32, a[1]) + apply(lambda x: x + 1, a[1])\n");
  CHECK(holds(text, "static __device__ float apply(double x) {\n  return float(x);"));
  CHECK(holds(text, "return lambda(x);"));
  text = kernel("    f = g = twice\n    a[0] = f(a[1])\n    f = apply\n    a[1] = f(g, a[2])\n");
  CHECK(holds(text, "a[0] = twice(a[1]);"));
  CHECK(holds(text, "a[1] = apply(a[2]);"));
  text = kernel(
      "    both = (abs, twice)\n    a[0] = both[0](a[1])\n    a[1] = BOTH[0](a[2])\n    f, g = both\n"
      "    a[2] = g(a[3])\n    a[4] = choose()(a[5])\n");
  CHECK(holds(text, "a[0] = fabs(a[1]);"));
  CHECK(holds(text, "a[1] = twice(a[2]);"));
  CHECK(holds(text, "a[2] = twice(a[3]);"));
  CHECK(holds(text, "a[4] = twice(a[5]);"));
}

TEST_CASE("a function that is computed does what computing it does") {
  const std::string text = cuda_of(
      "@cuda.jit(device=True)\ndef twice(x):\n    return 2 * x\n\n@cuda.jit(device=True)\ndef choose(a):\n"
      "    a[9] = 1\n    return twice\n\n@cuda.jit\ndef k(a):\n    a[4] = choose(a)(a[5])\n    f = "
      "choose(a)\n",
      "(float64[::1],)");
  CHECK(holds(text, "static __device__ void choose(quern::c_array<double, 1> a) {\n  a[9] = 1;\n  return;"));
  CHECK(holds(text, "  choose(a); a[4] = twice(a[5]);"));
  CHECK(holds(text, "  choose(a);\n}"));
}

TEST_CASE("x.conjugate() is NumPy's, and of a real number the number itself") {
  const auto assigned = [](const std::string& type) {
    return cuda_of("@cuda.jit\ndef k(a):\n    a[0] = a[1].conjugate()\n", "(" + type + "[::1],)");
  };
  CHECK(holds(assigned("complex64"), "a[0] = quern::conjugate(a[1]);"));
  CHECK(holds(assigned("float32"), "a[0] = a[1];"));
  CHECK(holds(assigned("int32"), "a[0] = a[1];"));
}

TEST_CASE("the parts of an array of complex numbers are views of it") {
  const std::string text =
      cuda_of("@cuda.jit\ndef k(z, w):\n    cuda.atomic.add(z.real, 1, 2.0)\n    z.imag[0] = w.real[1, 0]\n",
              "(complex128[::1], complex64[:, ::1])");
  CHECK(holds(text, "atomicAdd(&quern::field<quern::array<double, 1>>(z, 0)[1], 2.0);"));
  CHECK(holds(text, "quern::field<quern::array<double, 1>>(z, 8)[0] ="));
  CHECK(holds(text, "quern::field<quern::array<float, 2>>(w, 0)(1, 0)"));
  CHECK(holds(cuda_of("@cuda.jit\ndef k(a):\n    a.real[0] = 1\n", "(float32[::1],)"), "  a[0] = 1;"));
}

TEST_CASE("float() reads a literal, and refuses other text") {
  const auto assigned = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(a):\n    a[0] = float(" + text + ")\n", "(float32[::1],)");
  };
  CHECK(holds(assigned("'1e3'"), "a[0] = 1000.0;"));
  CHECK(holds(assigned("'-inf'"), "a[0] = -"));
  CHECK(holds(assigned("'ten'"), "'ten' is no number"));
}

TEST_CASE("shapes are made of parameters: a device function is compiled for each value of these") {
  const std::string functions =
      "N = 8\n@cuda.jit(device=True)\ndef tile(a, shape, dtype, by):\n    s = cuda.shared.array(shape, "
      "dtype)\n"
      "    s[0, 1] = a[0]\n    return s[0, 1] * by\n\n"
      "@cuda.jit(device=True)\ndef line(a, n, k=3):\n    m = n * 2\n    s = cuda.local.array(shape=m, "
      "dtype=float32)\n"
      "    s[k] = 1\n    return tile(a, by=2, dtype=float64, shape=(n, k)) + s[k]\n\n";
  const auto kernel = [&](const std::string& body) {
    return cuda_of(functions + "@cuda.jit\ndef k(a, n):\n" + body, "(float32[::1], int64)");
  };
  std::string text = kernel("    a[0] = tile(a, (4, N), float32, 5) + tile(a, (4, N), float32, 6)\n");
  CHECK(holds(text, "__shared__ float s[4][8];"));
  CHECK(holds(text, ">{4LL, (long long)N}, 5)"));
  CHECK_FALSE(holds(text, "tile_2"));
  text = kernel("    n = 16\n    a[0] = line(a, n) + line(a, 32, 5)\n");
  CHECK(holds(text, "__shared__ double s[16][3];"));
  CHECK(holds(text, "__shared__ double s[32][5];"));
  CHECK(holds(text, "float s[32];"));
  CHECK(holds(text, "float s[64];"));
  text = kernel("    a[0] = line(a, n)\n");
  CHECK(holds(text, "the shape must be known when the kernel is compiled, and 'm' is not"));
  CHECK(holds(text, "'line' is called here with (array(float32, 1d, C), int64, int64)"));
}

TEST_CASE("arrays of the file's level are computed with, as NumPy does it where its type is sure") {
  const auto table = [](const std::string& value) {
    return cuda_of(
        "I = np.array([[1, 2], [3, 4]], np.int32)\nF = np.array([1, 0.1], dtype=np.float32)\nSIGMA = 0.3\n"
        "T = " +
            value + "\n@cuda.jit\ndef k(a):\n    a[0] = T[1]\n",
        "(float64[::1],)");
  };
  CHECK(holds(table("(I / 8).reshape(4)"), "const double T[4] = {0.125, 0.25, 0.375, 0.5};"));
  CHECK(holds(table("(10 - 2 * I).reshape(-1)"), "const int T[4] = {8, 6, 4, 2};"));
  CHECK(holds(table("np.arange(4) * 0.5 + SIGMA"), "const double T[4] = {0.3, 0.8, 1.3, 1.8};"));
  CHECK(holds(table("F * 3"), "const float T[2] = {3.0f, 0.3f};"));
  CHECK(holds(table("F / np.float64(3)"), "const double T[2] = {0.3333333333333333, 0.033333333830038704};"));
  CHECK(holds(table("(F * 25).astype(np.uint8)"), "const unsigned char T[2] = {25, 2};"));
  CHECK(holds(table("(np.arange(4).reshape((2, 2)) + np.ones((2, 2))).reshape(4)"),
              "T[4] = {1.0, 2.0, 3.0, 4.0};"));
  for (const std::string value :
       {"F * SIGMA", "I + F", "np.arange(6).reshape(4, 2)", "I * 2147483647", "I ** 2"})
    CHECK(holds(table(value), "'T' is a"));
}

TEST_CASE("functions of two real numbers compute in what Numba computes them in") {
  const auto assigned = [](const std::string& call, const std::string& types) {
    return cuda_of("@cuda.jit\ndef k(a, x, y):\n    r = " + call + "\n    a[0] = r\n",
                   "(float64[::1], " + types + ")");
  };
  CHECK(holds(assigned("math.pow(x, y)", "float32, int32"), "const float r = quern::power(x, y);"));
  CHECK(holds(assigned("math.pow(x, y)", "float64, int16"), "const double r = quern::power(x, y);"));
  CHECK(holds(assigned("math.pow(x, y)", "float32, int64"), "const double r = pow(double(x), double(y));"));
  CHECK(holds(assigned("math.pow(x, y)", "float32, uint8"), "const float r = powf(x, float(y));"));
  CHECK(holds(assigned("math.fmod(x, y)", "int8, int16"), "const float r = fmodf("));
  CHECK(holds(assigned("math.fmod(x, y)", "float32, uint16"), "const double r = fmod("));
  CHECK(holds(assigned("math.atan2(x, y)", "int8, int16"), "const double r = atan2("));
  CHECK(holds(assigned("math.hypot(x, y)", "float32, uint8"), "const float r = hypotf("));
  CHECK(holds(assigned("math.ldexp(x, y)", "int8, int32"), "const float r = ldexp("));
}

TEST_CASE("np.dtype takes its fields by name as well") {
  CHECK(holds(
      cuda_of("T = np.dtype(dtype=[('x', np.int8), ('y', np.int32)])\n"
              "R = np.array([(1, 2)], dtype=np.dtype(dtype=[('x', np.int8), ('y', np.int32)], align=True))\n"
              "@cuda.jit\ndef k(a):\n    a[0] = R[0].y\n",
              "(float64[::1],)"),
      "{1, {}, 2}};"));
}

TEST_CASE("truth values are compared with 'is', numbers are not") {
  const auto test = [](const std::string& type) {
    return cuda_of("@cuda.jit\ndef k(a, p):\n    if p is not True:\n        a[0] = 1\n",
                   "(float32[::1], " + type + ")");
  };
  CHECK(holds(test("boolean"), "if (p != true) {"));
  CHECK(holds(test("int64"), "'is not' is only for None and for truth values in kernels"));
}

TEST_CASE("a module-level array without elements is refused by name") {
  const auto of = [](const std::string& use) {
    return cuda_of("EMPTY = np.array([])\n@cuda.jit\ndef k(a):\n" + use, "(float64[::1],)");
  };
  CHECK(holds(of("    a[0] = len(cuda.const.array_like(EMPTY))\n"), "'EMPTY' has no elements"));
  CHECK(holds(of("    a[0] = len(EMPTY)\n"), "'EMPTY' has no elements"));
}

TEST_CASE("operators are functions of the module operator, passed on like any other") {
  const std::string text = cuda_of(
      "import operator\n@cuda.jit(device=True)\ndef fold(op, x, y):\n    return op(x, y)\n\n"
      "@cuda.jit\ndef k(a):\n    a[0] = operator.mod(a[1], 2) + fold(operator.mul, a[1], a[2])\n",
      "(int64[::1],)");
  CHECK(holds(text, "return (long long)((unsigned long long)x * y);"));
  CHECK(holds(text, "(unsigned long long)quern::floor_mod(a[1], 2LL) + fold(a[1], a[2]));"));
}

TEST_CASE("a tuple is sliced as Python slices it") {
  const auto kernel = [](const std::string& slice) {
    return cuda_of("T = (10, 11, 12, 13, 14)\n@cuda.jit\ndef k(a):\n    t = T" + slice +
                       "\n    s = cuda.shared.array((len(t), t[0], t[-1]), float32)\n    a[0] = s[0, 0, 0]\n",
                   "(float32[::1],)");
  };
  CHECK(holds(kernel("[::2]"), "s[3][10][14];"));
  CHECK(holds(kernel("[::-1]"), "s[5][14][10];"));
  CHECK(holds(kernel("[4:0:-3]"), "s[2][14][11];"));
  CHECK(holds(kernel("[-2::-2]"), "s[2][13][11];"));
  CHECK(holds(kernel("[:99:3]"), "s[2][10][13];"));
  CHECK(holds(kernel("[1:2:9223372036854775807]"), "s[1][11][11];"));
  CHECK(holds(cuda_of("@cuda.jit\ndef k(a):\n    a[0, 0] = a.shape[::-1][0]\n", "(int64[:, ::1],)"),
              "quern::item<1>("));
}

TEST_CASE("a record is referred to, as in NumPy: a name for it is a pointer") {
  const std::string text = cuda_of(
      "point = np.dtype([('x', np.float32), ('v', np.float32, (3,)), ('id', np.int8)], align=True)\n"
      "@cuda.jit\ndef k(ps, one):\n    p = ps[3]\n    p.x = one.x + p['v'][1]\n    ps[0].v[2] = 1\n    xs = "
      "ps.x\n"
      "    xs[1] += float32(2)\n    ps[1] = ps[2]\n",
      "point[::1], point");
  CHECK(holds(
      text,
      "struct record_x_v_id {\n  float x;\n  float v[3];\n  signed char id;\n  char padding17[3];\n};"));
  CHECK(holds(text, "record_x_v_id* one)"));
  CHECK(holds(text, "record_x_v_id* const p = &ps[3];"));
  CHECK(holds(text, "p->x = one->x + p->v[1];"));
  CHECK(holds(text, "ps[0].v[2] = 1;"));
  CHECK(holds(text, "quern::field<quern::array<float, 1>>(ps, 0)"));
  CHECK(holds(text, "ps[1] = ps[2];"));
}

TEST_CASE("records of the same field names and other types are two structs") {
  const std::string text = cuda_of("@cuda.jit\ndef k(a, b):\n    a[0].x = b[0].x\n",
                                   "Record([('x', float32, 0)], 8)[::1], Record([('x', int32, 0)], 8)[::1]");
  CHECK(holds(text, "struct record_x {\n  float x;\n  char padding4[4];\n};"));
  CHECK(holds(text, "struct record_x_2 {\n  int x;\n  char padding4[4];\n};"));
}

TEST_CASE("vectors are made of numbers and of vectors") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    xy = cuda.float32x2(a[0], 1)\n    v = cuda.float4(xy, 2, a[1])\n    a[2] = "
      "v.w\n",
      "(float32[::1],)");
  CHECK(holds(text, "quern::vector<float, 4>{xy.x, xy.y, 2.0f, a[1]}"));
  CHECK(holds(text, "a[2] = v.w;"));
}

TEST_CASE("members of enumerations are numbers with their names") {
  const std::string text = cuda_of(
      "from enum import Enum, IntEnum, auto\nclass Mode(IntEnum):\n    READ = 4\nclass Side(Enum):\n    LEFT "
      "= auto()\n"
      "    RIGHT = auto()\n@cuda.jit\ndef k(a, m):\n    if m == Mode.READ:\n        a[0] = "
      "Side.RIGHT.value\n",
      "float32[::1], int32");
  CHECK(holds(text, "constexpr int Mode_READ = 4;"));
  CHECK(holds(text, "constexpr int Side_RIGHT = 2;"));
  CHECK(holds(text, "if (m == Mode_READ) {"));
}

TEST_CASE("NumPy's limits are known") {
  const std::string text = cuda_of(
      "BIG = np.iinfo(np.int16).max\n@cuda.jit\ndef k(a):\n    a[0] = np.finfo(np.float32).eps\n    a[1] = "
      "BIG\n",
      "(float32[::1],)");
  CHECK(holds(text, "a[0] = 1.1920929e-07f;"));
  CHECK(holds(text, "constexpr int BIG = 32767;"));
}

TEST_CASE("rows of rows are elements, without a view between") {
  const std::string text = cuda_of("@cuda.jit\ndef k(a):\n    i, j = cuda.grid(2)\n    a[i][j] = a[-1][0]\n",
                                   "(float32[:, ::1],)");
  CHECK(holds(text, "a(i, j) = a(a.extents[0] - 1, 0);"));
}

TEST_CASE("a view keeps the layout that Numba gives it") {
  const auto view = [](const std::string& index, const std::string& type) {
    return cuda_of("@cuda.jit\ndef k(a):\n    v = a[" + index + "]\n    v[0] = 1\n", "(" + type + ",)");
  };
  CHECK(holds(view("1:3", "float32[:, ::1]"), "const quern::c_array<float, 2> v"));
  CHECK(holds(view("2", "float32[:, ::1]"), "const quern::c_array<float, 1> v"));
  CHECK(holds(view("1:3, 1:2", "float32[:, ::1]"), "const quern::array<float, 2> v"));
  CHECK(holds(view("::2", "float32[::1]"), "const quern::array<float, 1> v"));
  CHECK(holds(view("..., 2", "float32[::1, :, :]"), "const quern::f_array<float, 2> v"));
  CHECK(holds(view(":, :, 2", "float32[::1, :, :]"), "const quern::array<float, 2> v"));
  CHECK(holds(view("2", "float32[::1, :]"), "const quern::array<float, 1> v"));
}

TEST_CASE("what has effects is computed from left to right") {
  const std::string text = cuda_of(
      "@cuda.jit(device=True)\ndef bump(a, i):\n    a[i] += 1\n    return a[i]\n\n@cuda.jit\ndef k(a):\n"
      "    a[0] = bump(a, 1) - bump(a, 2)\n    a[bump(a, 3)] = bump(a, 4)\n    a[bump(a, 5)] += 6\n"
      "    a[7] += bump(a, 8)\n",
      "(uint64[::1],)");
  CHECK(holds(text, "const unsigned long long value = bump(a, 1); a[0] = value - bump(a, 2);"));
  CHECK(holds(text, "const unsigned long long value2 = bump(a, 4); a[bump(a, 3)] = value2;"));
  CHECK(holds(text, "const unsigned long long value3 = bump(a, 5); a[value3] += 6"));
  CHECK(holds(text, "const unsigned long long value4 = a[7]; a[7] = value4 + bump(a, 8);"));
}

TEST_CASE("what stands behind 'and' is computed only under it, with all that it needs") {
  const std::string text = cuda_of(
      "@cuda.jit(device=True)\ndef bump(a, i):\n    a[i] += 1\n    return a[i]\n\n@cuda.jit\ndef k(a, n):\n"
      "    if n > 3 and a[0] < bump(a, 0):\n        a[1] = 1\n    if 0 < n < bump(a, 0) < bump(a, 1) < 9:\n"
      "        a[2] = 1\n",
      "uint64[::1], int32");
  CHECK(holds(text,
              "if (n > 3 && [&] { const unsigned long long value = a[0]; return value < bump(a, 0); }()) {"));
  CHECK(holds(text, "[&] { if (!(0 < n)) return false; const auto middle = bump(a, 0); if (!("));
}

TEST_CASE("a choice that is a function computes both its values") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    a[0] = cuda.selp(a[1] > 2, cuda.atomic.add(a, 3, 4), cuda.atomic.add(a, 5, "
      "6))\n",
      "(int32[::1],)");
  CHECK(holds(text, "const int value2 = atomicAdd(&a[3], 4);"));
  CHECK(holds(text, "const int value3 = atomicAdd(&a[5], 6);"));
}

TEST_CASE("only atomics that CUDA C++ lacks bring quern's header") {
  const std::string kernel =
      "@cuda.jit\ndef k(a):\n    cuda.atomic.add(a, 0, 1)\n    cuda.atomic.exch(a, 1, 2)\n"
      "    cuda.atomic.cas(a, 2, 3, 4)\n";
  const std::string narrow = cuda_of(kernel, "(int32[::1],)"), wide = cuda_of(kernel, "(int64[::1],)");
  CHECK_FALSE(holds(narrow, "atomic.cuh"));
  CHECK(holds(narrow, "atomicCAS(&a[2], 3, 4);"));
  CHECK(holds(wide, "#include <quern/cuda/atomic.cuh>"));
  CHECK(holds(wide, "quern::atomic_add(&a[0], 1LL);"));
  CHECK(holds(wide, "quern::atomic_exch(&a[1], 2LL);"));
  CHECK(holds(wide, "quern::atomic_cas(&a[2], 3LL, 4LL);"));
}

TEST_CASE("a call without effects whose value is not used is left out") {
  CHECK_FALSE(holds(cuda_of("@cuda.jit(device=True)\ndef f(x):\n    return x + 1\n\n@cuda.jit\ndef k(a):\n   "
                            " f(a[0])\n    a[1] = 1\n",
                            "(float32[::1],)"),
                    "f(a[0]);"));
}

TEST_CASE("debug builds check indices, divisors and assertions") {
  const auto source = quern::frontend::translate(
      quern::test::python(
          "from numba import cuda\n@cuda.jit('void(int64[:, ::1], int32)', debug=True)\ndef k(a, n):\n"
          "    a[n, 2] = a[0, 0] // n\n    assert n > 0, 'not positive'\n    raise ValueError('far')\n"),
      "", "");
  REQUIRE(source);
  CHECK(source->log.empty());
  CHECK(holds(source->text, "extern \"C\" __device__ char quern_failure_file[] = \"k.py\";"));
  CHECK(holds(source->text,
              "a(quern::debug::index<0>(n, 4, a.extents[0], a.extents[1]), "
              "quern::debug::index<1>(2, 4, a.extents[0], a.extents[1]))"));
  CHECK(holds(source->text, "quern::debug::divisor("));
  CHECK(holds(source->text, "quern::debug::raise(5, \"AssertionError: not positive\");"));
  CHECK(holds(source->text, "quern::debug::raise(6, \"ValueError: far\");"));
}

TEST_CASE("debug builds check what nobody uses as well") {
  const auto body = [](const std::string& text, const std::string& options = "debug=True") {
    return cuda_of("@cuda.jit(device=True)\ndef f(a, i):\n    return a[i]\n\n@cuda.jit(" + options +
                       ")\ndef k(a, n):\n    i = cuda.grid(1)\n    " + text + "\n",
                   "int64[::1], int64");
  };
  const std::string at = "quern::debug::index<0>(i, 12, a.extents[0])";
  CHECK(holds(body("v = a[i]"), "(void)(a[" + at + "]);"));
  CHECK(holds(body("a[i]"), "(void)(a[" + at + "]);"));
  CHECK(holds(body("v, w = a[i], 3"), "(void)(a[" + at + "]);"));
  CHECK(holds(body("v = float(a[i])"), "(void)(double(a[" + at + "]));"));
  CHECK(holds(body("v = 3 // n"), "quern::debug::divisor(n, 12)"));
  CHECK(holds(body("n //= i"), "(void)(quern::debug::divisor(i, 12));"));
  CHECK(holds(body("p, q = divmod(n, i)"), "quern::debug::divisor(i, 12)"));
  CHECK(holds(body("v = f(a, i)"), "f(a, i);"));
  CHECK(holds(body("a[0] = (a[i], 3)[1]"), "(void)(a[" + at + "]);"));
  CHECK_FALSE(holds(body("v = n // 3"), "(void)"));
  CHECK_FALSE(holds(body("v = a[i]", "debug=False"), "a["));
}

TEST_CASE("what a known_outcome choice leaves out is not looked at") {
  const std::string text = cuda_of(
      "@cuda.jit(debug=True)\ndef k(a, n):\n    b = 3\n    a[n] = n % 5 if not b else n // n\n"
      "    c = b or a[7] // divmod(a[8], n)[0]\n    a[1] = c\n",
      "int64[::1], int64");
  CHECK(holds(text, "quern::debug::divisor(n, 8)"));
  CHECK_FALSE(holds(text, "index<0>(7"));
}

TEST_CASE("what has effects is computed although its value is left out") {
  const auto body = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(a):\n    " + text + "\n", "(int32[::1],)");
  };
  CHECK(holds(body("a[1] = (cuda.atomic.add(a, 0, 5), 2)[1]"), "atomicAdd(&a[0], 5);"));
  CHECK(holds(body("a[1] = len((cuda.atomic.add(a, 0, 5), 2))"), "atomicAdd(&a[0], 5)"));
  CHECK(holds(body("float(cuda.atomic.add(a, 0, 5))"), "(void)("));
}

TEST_CASE("outside debug builds nothing is checked") {
  const std::string text =
      cuda_of("@cuda.jit\ndef k(a):\n    assert a[0] > 1, 'x'\n    a[1] = a[2] / a[3]\n", "(float32[::1],)");
  CHECK_FALSE(holds(text, "debug"));
  CHECK(holds(text, "return;"));
}

TEST_CASE("an argument that is None settles the branches that ask for it") {
  const std::string text = cuda_of(
      "@cuda.jit(device=True)\ndef f(x, y=None):\n    if y is None:\n        return x\n    else:\n        "
      "return x + y\n\n"
      "@cuda.jit(device=True)\ndef g(x, y=None):\n    return x if y is None else y[0]\n\n"
      "@cuda.jit\ndef k(a):\n    a[0] = f(a[1]) + f(a[2], a[3]) + g(a[4]) + g(a[5], a)\n",
      "(float32[::1],)");
  CHECK(holds(text, "static __device__ float f(float x) {"));
  CHECK(holds(text, "static __device__ float f_2(float x, float y) {"));
  CHECK(holds(text, "return y[0];"));
  CHECK(holds(text, "a[0] = f(a[1]) + f_2(a[2], a[3]) + g(a[4]) + g_2(a[5], a);"));
}

TEST_CASE("what follows a branch that None settles and that returns is not compiled") {
  const std::string text = cuda_of(
      "@cuda.jit(device=True)\ndef f(x, y=None):\n    if y is None:\n        return -x\n    return x + y\n\n"
      "@cuda.jit\ndef k(a):\n    a[0] = f(a[1]) + f(a[2], a[3])\n",
      "(int64[::1],)");
  CHECK(holds(text, "return (long long)(0 - (unsigned long long)x);"));
  CHECK(holds(text, "return (long long)((unsigned long long)x + y);"));
  CHECK(holds(text, "f(long long x) {"));
}

TEST_CASE("a kernel that another calls is a device function there") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef one(a):\n    return a[0]\n\n@cuda.jit('void(float32[::1])')\ndef k(a):\n    a[1] = "
      "one(a)\n",
      "");
  CHECK(holds(text, "kernel"));  // if there are two kernels, one must be named
  const auto source = quern::frontend::translate(
      quern::test::python("from numba import cuda\n@cuda.jit\ndef one(a):\n    return a[0]\n\n"
                          "@cuda.jit('void(float32[::1])')\ndef k(a):\n    a[1] = one(a)\n"),
      "k", "");
  REQUIRE(source);
  CHECK(holds(source->text, "static __device__ float one(quern::c_array<float, 1> a) {"));
}

TEST_CASE("functions of linked CUDA C++ are called as Numba calls them, or as C does") {
  const std::string text = cuda_of(
      "mul = cuda.declare_device('mul_f32', 'float32(float32, float32)', link='f.cu')\n"
      "plus = cuda.declare_device('plus', 'float32(float32)', abi='c')\n"
      "@cuda.jit(link=['g.cu'])\ndef k(a):\n    a[0] = mul(a[1], 2) + plus(a[2])\n",
      "(float32[::1],)");
  CHECK(holds(text, "#include \"f.cu\"\n#include \"g.cu\"\n"));
  CHECK(holds(text, "extern \"C\" __device__ int mul_f32(float*, float, float);"));
  CHECK(holds(
      text,
      "static __device__ float call_mul_f32(float x0, float x1) { float result; mul_f32(&result, x0, x1); "
      "return result; }"));
  CHECK(holds(text, "extern \"C\" __device__ float plus(float);"));
  CHECK(holds(text, "const float value = call_mul_f32(a[1], 2.0f); a[0] = value + plus(a[2]);"));
}

TEST_CASE("float16 keeps its type in the functions that Numba has for it") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    a[0] = math.sin(a[1]) + cuda.fp16.hmul(a[1], 2)\n", "(float16[::1],)");
  CHECK(holds(text, "a[0] = hsin(a[1]) + __hmul(a[1], "));
}

TEST_CASE("a signature may have a name, and a decorator may be applied to a function") {
  const auto kernel = [](const std::string& name) {
    const auto source = quern::frontend::translate(
        quern::test::python(
            "from numba import cuda, void, float32, int64\n"
            "TEXT = 'void(float32[::1], int64)'\nROW = float32[::1]\nTYPES = void(ROW, int64)\n"
            "@cuda.jit(TEXT)\ndef a(x, n):\n    x[0] = n\n\n@cuda.jit(TYPES)\ndef b(x, n):\n"
            "    x[0] = n\n\ndef plain(x, n):\n    x[1] = n\n\nc = cuda.jit(TYPES)(plain)\n"
            "d = cuda.jit(plain, fastmath=True)\n"),
        name, name == "d" ? "float32[::1], int64" : "");
    return source ? source->text : to_string(source.errors());
  };
  for (const char* name : {"a", "b", "c", "d"})
    CHECK(holds(kernel(name), "void " + std::string(name) + "(quern::c_array<float, 1> x, long long n)"));
  CHECK(holds(kernel("plain"), "'plain' is a function of the host program"));
}

TEST_CASE("what is wrong with one decorator leaves the file's other kernels usable") {
  const quern::abi::KernelSource file = quern::test::python(
      "from numba import cuda\n@cuda.jit('void(flaot32)')\ndef bad(x):\n    pass\n\n@cuda.jit(nonsense=3)\n"
      "def worse(x):\n    pass\n\n@cuda.jit\ndef good(x):\n    x[0] = 1\n");
  CHECK(quern::frontend::translate(file, "good", "(float32[::1],)"));
  const auto kernels = quern::frontend::outline(file);
  REQUIRE(kernels);
  CHECK(kernels->size() == 3);
  const auto bad = quern::frontend::translate(file, "bad", "(float32,)"),
             worse = quern::frontend::translate(file, "worse", "(float32,)");
  REQUIRE_FALSE(bad);
  CHECK(holds(to_string(bad.errors()), "k.py:2:17: error: in the signature"));
  REQUIRE_FALSE(worse);
  CHECK(holds(to_string(worse.errors()), "jit has no option 'nonsense'"));
}

TEST_CASE("an array's type may be named by a string, and a.dtype.type is a type") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    s = cuda.shared.array(4, 'float32')\n    s[0] = 1\n    a[0] = "
      "a.dtype.type(3) + s[0]\n",
      "(float64[::1],)");
  CHECK(holds(text, "__shared__ float s[4];"));
  CHECK(holds(text, "a[0] = 3.0 + s[0];"));
}

TEST_CASE("a signature compiles a kernel at its own line, with what names mean there") {
  const auto emitted = [](const std::string& decorator) {
    return quern::test::cuda_of("N = 3\n@cuda.jit(device=True)\ndef f(x):\n    return x + 1\n" + decorator +
                                    "\ndef k(a):\n    a[0] = f(N)\nN = 4\n@cuda.jit(device=True)\ndef f(x):\n"
                                    "    return x + 2\n",
                                "(int64[::1],)");
  };
  const std::string eager = emitted("@cuda.jit('void(int64[::1])')"), lazy = emitted("@cuda.jit");
  CHECK(holds(eager, "N = 3;"));
  CHECK(holds(eager, "return (long long)((unsigned long long)x + 1);"));
  CHECK(holds(lazy, "N = 4;"));
  CHECK(holds(lazy, "return (long long)((unsigned long long)x + 2);"));
}

TEST_CASE("a default value is what it is at the function's own line") {
  const std::string text = quern::test::cuda_of(
      "N = 3\n@cuda.jit(device=True)\ndef f(x, y=N):\n    return x + y\n@cuda.jit\ndef k(a):\n"
      "    a[0] = f(a[0])\nN = 4\n",
      "(int64[::1],)");
  CHECK(holds(text, "f(a[0], 3"));
}

TEST_CASE("the program may bind what the file imports, if it is a number or an array") {
  const auto said = [](const std::string& file) {
    const double value = 299792458.0;
    quern::abi::Constant constant{"c", quern::Dtype::float64, {}, {}};
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    constant.bytes.assign(bytes, bytes + sizeof value);
    const auto source = quern::frontend::translate(
        quern::test::python(quern::test::with_imports(file + "\n@cuda.jit\ndef k(a):\n    a[0] = c\n")), "",
        "(float64[::1],)", std::span(&constant, 1));
    return source ? source->text : to_string(source.errors());
  };
  for (const char* good : {"from scipy.constants import c", "from math import e as c",
                           "c = 1\nfor q in range(3):\n    c = 2", "c = some_function()", "c = 3\nc += 1"})
    CHECK(holds(said(good), "constexpr double c = 299792458.0;"));
  for (const char* bad : {"import math as c", "from math import sqrt as c", "from numpy import float32 as c",
                          "def c():\n    pass", "class c:\n    pass"})
    CHECK(holds(said(bad), "cannot bind 'c'"));
}

TEST_CASE("a number that the host binds keeps its type and its bits") {
  const auto bound = [](const std::string& name, quern::Dtype dtype, const auto& value) {
    quern::abi::Constant constant{name, dtype, {}, {}};
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    constant.bytes.assign(bytes, bytes + sizeof value);
    const auto source = quern::frontend::translate(
        quern::test::python(quern::test::with_imports("@cuda.jit\ndef k(a):\n    a[0] = EPS\n")), "",
        "(uint64[::1],)", std::span(&constant, 1));
    return source ? source->text : to_string(source.errors());
  };
  CHECK(holds(bound("EPS", quern::Dtype::uint64, UINT64_MAX),
              "constexpr unsigned long long EPS = 18446744073709551615ULL;"));
  CHECK(holds(bound("EPS", quern::Dtype::float64, HUGE_VAL), "constexpr double EPS = 1.0 / 0.0;"));
  CHECK(holds(bound("EPS", quern::Dtype::float16, std::uint16_t{0x2e66}),
              "constexpr __half EPS = __half_raw{0x2e66};"));
  CHECK(bound("ESP", quern::Dtype::int64, std::int64_t{3}).starts_with("k.py: error: cannot bind 'ESP'"));
}

TEST_SUITE_END();
