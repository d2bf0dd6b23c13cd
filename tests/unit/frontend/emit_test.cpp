// SPDX-License-Identifier: Apache-2.0
// Checks lines of the generated CUDA C++ that matter for readers or for speed.
#include <doctest/doctest.h>

#include "helpers.hpp"

using quern::test::cuda_of;
using quern::test::holds;

TEST_SUITE_BEGIN("frontend");

TEST_CASE("saxpy reads as its author wrote it") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef saxpy(a, x, y):\n    i = cuda.grid(1)\n    if i < x.size:\n        y[i] = a * x[i] + "
      "y[i]\n",
      "float32, float32[::1], float32[::1]");
  CHECK(text ==
        "// saxpy(float32, array(float32, 1d, C), array(float32, 1d, C)) of k.py\n"
        "#include <quern/cuda/c_array.cuh>\n"
        "\n"
        "#line 6 \"k.py\"\n"
        "extern \"C\" __global__ void saxpy(float a, quern::c_array<float, 1> x, quern::c_array<float, 1> y) "
        "{\n"
        "  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < x.size()) {\n"
        "    y[i] = a * x[i] + y[i];\n"
        "  }\n"
        "}\n");
}

TEST_CASE("an index that can be negative counts from the end, and no other does") {
  const auto index = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(a, n):\n    i = cuda.grid(1)\n" + text, "float32[:, ::1], int32");
  };
  CHECK(holds(index("    a[i, n] = 0\n"), "a(i, quern::wrap(n, a.extents[1])) = 0;"));
  CHECK(holds(index("    a[i, -1] = 0\n"), "a(i, a.extents[1] - 1) = 0;"));
  CHECK(holds(index("    if i > 0:\n        a[i - 1, 0] = 0\n"), "a(i - 1, 0) = 0;"));
  CHECK(holds(index("    if 0 <= n and n < 9:\n        a[n, 0] = 0\n"), "a(n, 0) = 0;"));
  CHECK(holds(index("    if n < 0:\n        return\n    a[n, 0] = 0\n"), "a(n, 0) = 0;"));
  CHECK(holds(index("    while n > 0:\n        n = n // 2\n        a[n, 0] = 0\n"), "a(n_int64, 0) = 0;"));
}

TEST_CASE("integers are computed in 32 bits where they fit, in 64 where Python's would not") {
  const auto statement = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(a, n):\n    t = cuda.threadIdx.x\n    " + text + "\n",
                   "int64[::1], int32");
  };
  CHECK(holds(statement("a[t] = t * 16 + 3"), "a[t] = t * 16 + 3;"));
  CHECK(holds(statement("a[t] = n * n"), "a[t] = (long long)n * n;"));
  CHECK(holds(statement("a[t] = n + 1"), "a[t] = (long long)n + 1;"));
  CHECK(holds(statement("a[t] = n & 15"), "a[t] = n & 15;"));
}

TEST_CASE("a loop up to the last int, or down to the first, does not count in an int") {
  const auto loop = [](const std::string& range) {
    return cuda_of("@cuda.jit\ndef k(a, n):\n    for i in range(" + range + "):\n        a[0] += i\n",
                   "(int32[::1], int64)");
  };
  CHECK(holds(loop("a[1], 2147483647"), "for (int i = a[1]; i < 2147483647; ++i)"));
  CHECK(holds(loop("n, 9223372036854775807"), "for (long long i = n; i < 9223372036854775807LL; ++i)"));
  CHECK(holds(loop("n, -9223372036854775807, -2"), "; i -= 2)"));
  for (const char* const range :
       {"a[1], 2147483648", "2147483640, 2147483648", "a[1], a[1] + n % 2", "a[1], -2147483649, -1",
        "-2147483647, -2147483649, -1", "n, 9223372036854775807, 2", "n, -9223372036854775807, -3"})
    CHECK(holds(loop(range), ": quern::range<long long>("));
}

TEST_CASE("a choice of two narrow integers has their type in C++, and is widened where its type matters") {
  const std::string text =
      cuda_of("@cuda.jit\ndef k(a, o, n):\n    x = a[0]\n    y = a[1]\n    o[0] = (x if n < 3 else y) % 6\n",
              "(int16[::1], int64[::1], int32)");
  CHECK(holds(text, "quern::floor_mod(int(n < 3 ? x : y), 6)"));
}

TEST_CASE("the magnitude of a narrow integer is of its type, as in Numba") {
  const auto statement = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(a, b):\n    " + text + "\n", "int64[::1], int8[::1]");
  };
  CHECK(holds(statement("a[0] = abs(b[1])"), "a[0] = (signed char)abs(b[1]);"));
  CHECK(holds(statement("x = b[1]\n    if x > 0:\n        a[0] = abs(x)"), "a[0] = x;"));
}

TEST_CASE("division is Python's") {
  const auto statement = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(a, n):\n    t = cuda.threadIdx.x\n    " + text + "\n",
                   "float64[::1], int32");
  };
  CHECK(holds(statement("a[t] = t // 4 + t % 4"), "a[t] = t / 4 + t % 4;"));
  CHECK(holds(statement("a[t] = n // 4"), "quern::floor_div((long long)n, 4LL)"));
  CHECK(holds(statement("a[t] = n / 4"), "a[t] = double(n) / 4.0;"));
  CHECK(holds(statement("a[t] = n ** 2"), "a[t] = (long long)n * n;"));
}

TEST_CASE("float32 with an integer is float64, as in Numba") {
  CHECK(holds(cuda_of("@cuda.jit\ndef k(a):\n    a[0] = a[1] * 2\n", "(float32[::1],)"),
              "a[0] = double(a[1]) * 2;"));
  CHECK(holds(cuda_of("@cuda.jit\ndef k(a):\n    a[0] = a[1] * float32(2)\n", "(float32[::1],)"),
              "a[0] = a[1] * 2.0f;"));
}

TEST_CASE("what numbers settle beforehand is left out, and has no say in types, as in Numba") {
  const std::string cuda = cuda_of(R"(
N = 3
DEBUG = False
SCALE = 0.0
@cuda.jit
def f(w, x, out):
    i = cuda.grid(1)
    two = 2
    out[i] = (two or w[i]) + (1.0 and x[i]) + (SCALE or x[i]) + (x[i] and two and x[i])
    if N > 2:
        c = x[i]
    else:
        c = 1.5
    d = w[i] if not DEBUG else -1
    out[i] += c + d
    if DEBUG:
        out[i] = "text"
)",
                                   "uint64[::1], float32[::1], float64[::1]");
  CHECK(holds(cuda, "out[i] = double(two) + x[i] + x[i] + quern::both(x[i], [&] { return x[i]; });"));
  CHECK(holds(cuda, "float c;"));
  CHECK(holds(cuda, "unsigned long long d = w[i];"));
  CHECK_FALSE(holds(cuda, "1.5"));
  CHECK_FALSE(holds(cuda, "text"));
}

TEST_CASE("what stands before a name on paths that numbers rule out has no say in its type") {
  const auto typed = [](std::string_view body) {
    return cuda_of("N = 4\n@cuda.jit\ndef f(a, c, out):\n    x = c[0]\n    n = 0\n" + std::string(body) +
                       "    out[0] = x\n",
                   "int64[::1], uint64[::1], float64[::1]");
  };
  // The common type of uint64 and int64 would be float64.
  CHECK(holds(typed("    if a.ndim < 3:\n        x = a[0]\n"), "long long x;"));
  CHECK(holds(typed("    while n < 3:\n        n += 1\n        x = a[n]\n"), "long long x;"));
  CHECK(holds(typed("    while n < 3 or a[0] > n:\n        n += 1\n        x = a[n]\n"), "long long x;"));
  CHECK(holds(typed("    while not n:\n        n += 1\n        x = a[n]\n"), "long long x;"));
  CHECK(holds(typed("    while n > 3:\n        n += 1\n        x = a[n]\n    else:\n        a[1] = 0\n"),
              "unsigned long long x = c[0];"));
  CHECK_FALSE(holds(
      typed("    while n > 3:\n        n += 1\n        x = a[n]\n    else:\n        a[1] = 0\n"), "while"));
  CHECK(holds(typed("    while n > 3:\n        n += 1\n        x = a[n]\n    else:\n        a[1] = 0\n"),
              "a[1] = 0;"));
  // The loop may not run, or not reach the assignment. Arithmetic on names is not evaluated.
  CHECK(
      holds(typed("    while n < 3 and a[0] > n:\n        n += 1\n        x = a[n]\n"), "double x = c[0];"));
  CHECK(holds(
      typed(
          "    while n < 3:\n        n += 1\n        if a[n] > 3:\n            continue\n        x = a[n]\n"),
      "double x = c[0];"));
  CHECK(holds(typed("    while n + 1 < N:\n        n += 1\n        x = a[n]\n"), "double x = c[0];"));
  CHECK(holds(typed("    for k in range(3):\n        x = a[k]\n"), "double x = c[0];"));
  // If the loop reads it, it still has both types.
  CHECK(holds(typed("    while n < 3:\n        n += 1\n        out[n] = x\n        x = a[n]\n"),
              "x_int64 = a[n]; x = x_int64;"));
}

TEST_CASE("the magnitude of a number of 64 bits is one of 64 bits, though an int carries it") {
  const std::string cuda = cuda_of(
      "@cuda.jit\ndef f(a, out):\n    out[0] = abs(7 if out[1] > 2 else a[0])\n    out[1] = abs(a[0])\n",
      "int32[::1], int64[::1]");
  CHECK(holds(cuda, "out[0] = llabs("));
  CHECK(holds(cuda, "out[1] = abs(a[0]);"));
}

TEST_CASE("shared and local arrays are C arrays, constants have their names") {
  const std::string text = cuda_of(
      "N = 16\nW = np.array([[1, 2], [3, 4]], dtype=np.float32)\n@cuda.jit\ndef k(a):\n    s = "
      "cuda.shared.array((N, N + 1), float32)\n"
      "    l = cuda.local.array(4, int32)\n    w = cuda.const.array_like(W)\n    s[1, 2] = a[0]\n    l[3] = "
      "5\n    a[0] = s[1, 2] + l[3] + w[1, 0] * N\n",
      "(float32[::1],)");
  CHECK(holds(text, "constexpr int N = 16;"));
  CHECK(holds(text, "__constant__ const float W[2][2] = {1.0f, 2.0f, 3.0f, 4.0f};"));
  CHECK(holds(text, "__shared__ float s[16][17];"));
  CHECK(holds(text, "int l[4];"));
  CHECK(holds(text, "s[1][2] = a[0];"));
}

TEST_CASE("a grid-stride loop is a plain loop") {
  CHECK(holds(cuda_of("@cuda.jit\ndef k(a):\n    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):\n   "
                      "     a[i] = 0\n",
                      "(float32[::1],)"),
              "for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < a.size(); i += (long "
              "long)gridDim.x * blockDim.x) {"));
  CHECK(
      holds(cuda_of("N = 256\n@cuda.jit\ndef k(a):\n    for i in range(cuda.threadIdx.x, N, cuda.blockDim.x):"
                    "\n        a[i] = 0\n",
                    "(float32[::1],)"),
            "for (int i = threadIdx.x; i < N; i += blockDim.x) {"));
  CHECK(holds(cuda_of("@cuda.jit\ndef k(a, n):\n    for i in range(0, 9, n):\n        a[i] = 0\n",
                      "float32[::1], int32"),
              "quern::range<long long>(0, 9, n)"));
}

TEST_CASE("places in the grid are written as in CUDA C++, in 32 bits where they fit") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    x, y = cuda.grid(2)\n    w, h = cuda.gridsize(2)\n    a[y, x] = w + h\n",
      "(int64[:, ::1],)");
  CHECK(holds(text, "const long long x = (long long)blockIdx.x * blockDim.x + threadIdx.x;"));
  CHECK(holds(text, "const int y = blockIdx.y * blockDim.y + threadIdx.y;"));
  CHECK(holds(text, "const long long w = (long long)gridDim.x * blockDim.x;"));
  CHECK(holds(text, "const int h = gridDim.y * blockDim.y;"));
}

TEST_CASE("the size of a warp is a number that the compiler knows") {
  CHECK(
      holds(cuda_of("@cuda.jit\ndef k(a):\n    a[0] = cuda.threadIdx.x // cuda.warpsize\n", "(int64[::1],)"),
            "a[0] = int(threadIdx.x) / 32;"));
}

TEST_CASE("a bound that stays in 32 bits is found in a loop that doubles") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    d = 1\n    while d < 32:\n        a[d] = 0\n        d *= 2\n    e = 1\n"
      "    while e < a.size:\n        a[e] = 0\n        e *= 2\n",
      "(float32[::1],)");
  CHECK(holds(text, "int d = 1;"));
  CHECK(holds(text, "long long e = 1;"));
}

TEST_CASE("arrays of one and two dimensions need the smallest header") {
  const auto of = [](const std::string& type) { return cuda_of("@cuda.jit\ndef k(a):\n    pass\n", type); };
  CHECK(holds(of("(complex64[::1],)"), "#include <quern/cuda/c_array.cuh>"));
  CHECK_FALSE(holds(of("(complex64[:, ::1],)"), "layout.cuh"));
  CHECK(holds(of("(complex64[:, :, ::1],)"), "#include <quern/cuda/layout.cuh>"));
}

TEST_CASE("names that C++ takes are changed as little as possible") {
  const std::string text = cuda_of("@cuda.jit\ndef k(double, new):\n    int_ = new\n    double[0] = int_\n",
                                   "float32[::1], float32");
  CHECK(holds(text, "quern::c_array<float, 1> double_, float new_"));
}

TEST_CASE("a device function is emitted once for each list of types") {
  const std::string text = cuda_of(
      "@cuda.jit(device=True)\ndef half(x):\n    return x / 2\n\n@cuda.jit\ndef k(a, b):\n    a[0] = "
      "half(a[1]) + half(a[2])\n    b[0] = half(b[1])\n",
      "float32[::1], float64[::1]");
  CHECK(holds(text, "static __device__ double half_(float x)"));
  CHECK(holds(text, "static __device__ double half__2(double x)"));
}

TEST_CASE("host code is passed over, whatever it holds") {
  const std::string text = cuda_of(
      "import matplotlib.pyplot as plt\n\nclass A:\n    def f(self): return {x: y for x, y in "
      "z}\n\n@cuda.jit\ndef k(a):\n    a[0] = 1\n\n"
      "if __name__ == '__main__':\n    with open('f') as f:\n        k[1, 1](*[lambda: f\"{x!r:>{10}}\"])\n",
      "(float32[::1],)");
  CHECK(holds(text, "a[0] = 1;"));
}

TEST_CASE("a signature in the decorator settles the types") {
  const auto source = quern::frontend::translate(
      quern::test::python("from numba import cuda, void, float32, int32\n@cuda.jit(void(float32[:, ::1], "
                          "int32))\ndef k(a, n):\n    a[0, 0] = n\n"),
      "", "");
  REQUIRE(source);
  CHECK(holds(source->text, "void k(quern::c_array<float, 2> a, int n)"));
}

TEST_CASE("options of the decorator reach NVRTC and the kernel") {
  const auto source = quern::frontend::translate(
      quern::test::python("from numba import cuda\n@cuda.jit('void(float32[:])', fastmath=True, "
                          "max_registers=32, launch_bounds=(128, 2))\ndef k(a):\n    a[0] = 1\n"),
      "", "");
  REQUIRE(source);
  CHECK(source->options == std::vector<std::string>{"--use_fast_math", "--maxrregcount=32"});
  CHECK(holds(source->text, "__launch_bounds__(128, 2)"));
  CHECK(holds(source->text, "quern::array<float, 1> a"));
}

TEST_CASE("C++ never mixes complex numbers or halves with other types: both operands are converted") {
  const auto statement = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(z, w, h, b, f):\n    " + text + "\n",
                   "complex64[::1], complex128[::1], float16[::1], bfloat16[::1], float32[::1]");
  };
  CHECK(holds(statement("z[0] += 2"),
              "z[0] = quern::complex<float>(quern::complex<double>(z[0]) + quern::complex<double>(2));"));
  CHECK(holds(statement("z[0] += z[1]"), "z[0] += z[1];"));
  CHECK(holds(statement("f[0] = z[0] == w[0]"), "f[0] = quern::complex<double>(z[0]) == w[0];"));
  CHECK(holds(statement("f[0] = h[0] > 2.5"), "f[0] = double(float(h[0])) > 2.5;"));
  CHECK(holds(statement("f[0] = h[0] < f[1]"), "f[0] = float(h[0]) < f[1];"));
  CHECK(holds(statement("f[0] = h[0] if f[1] > f[2] else f[3]"), "f[1] > f[2] ? float(h[0]) : f[3];"));
  CHECK(holds(statement("f[0] = 2 == b[0]"), "f[0] = 2.0 == double(float(b[0]));"));
  CHECK(holds(statement("f[0] = b[0] ** b[1]"), "pow(float(b[0]), float(b[1]))"));
  CHECK(
      holds(statement("f[0] = (h[0], 3) == (f[1], 3)"), "quern::item_equal(quern::tuple<float, long long>("));
  CHECK(holds(statement("f[0] = b[0] == z[0]"), "'==' does not compare bfloat16 and complex64"));
  CHECK(holds(statement("print(z[0])"), "complex64 cannot be printed"));
  CHECK(holds(statement("w[0] = complex(z[0], 2)"),
              "complex takes a real and an imaginary part, not complex64"));
}

TEST_CASE("arithmetic on literals is worked out as CPython does, and typed by what comes out") {
  const auto statement = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(d):\n    x = " + text + "\n    d[0] = x\n", "(float64[::1],)");
  };
  CHECK(holds(statement("10**-2"), "const double x = 0.01;"));
  CHECK(holds(statement("2**64 - 1"), "const unsigned long long x = 18446744073709551615ULL;"));
  CHECK(holds(statement("(2**64 - 1) >> 60"), "const int x = 15;"));
  CHECK(holds(statement("-9223372036854775808"), "x = (-9223372036854775807LL - 1);"));
  CHECK(holds(statement("100000000000 * 10000000000"), "this number does not fit an integer"));
  CHECK(holds(statement("-9223372036854775809"), "this number does not fit an integer"));
  CHECK(holds(statement("1 // 0"), "quern::floor_div(1LL, 0LL)"));
}

TEST_CASE("arithmetic on literals that 64 bits do not hold is refused, and no other") {
  const auto line = [](const std::string& value) {
    return quern::test::cuda_of("@cuda.jit\ndef k(a):\n    a[0] = " + value + "\n", "(float64[::1],)");
  };
  for (const char* beyond :
       {"2**100", "7**45", "2**100 >> 98", "2**100 * 1.0", "-(1 << 200)", "10**30", "5 + 3 * 3**50"})
    CHECK(holds(line(beyond), "does not fit an integer"));
  CHECK(holds(line("1 << 70 >> 68"), "a[0] = 4"));
  CHECK(holds(line("2.0**100"), "a[0] = 1.2676506002282294e+30"));
  CHECK(!holds(line("1**200"), "error"));
}

TEST_CASE("the least of two indices may be negative, and then counts from the end") {
  const auto line = [](const std::string& index) {
    return cuda_of("@cuda.jit\ndef k(a, i):\n    a[0] = a[" + index + "]\n", "(float32[::1], int64[::1])");
  };
  CHECK(holds(line("min(i[0], 3)"), "quern::wrap("));
  CHECK(holds(line("np.minimum(i[0], 3)"), "quern::wrap("));
  CHECK(!holds(line("max(i[0], 3)"), "quern::wrap("));
  CHECK(!holds(line("np.maximum(i[0], 3)"), "quern::wrap("));
}

TEST_CASE("of several integer forms, a call takes the first that holds the arguments' values") {
  const auto line = [](const std::string& call) {
    return cuda_of("@cuda.jit\ndef k(b, s, i, l, u, v):\n    r = " + call + "\n    l[0] = r\n",
                   "(uint8[::1], int16[::1], int32[::1], int64[::1], uint32[::1], uint64[::1])");
  };
  CHECK(holds(line("np.gcd(i[0], i[1])"), "const int r = (int)quern::gcd(i[0], i[1]);"));
  CHECK(holds(line("np.gcd(i[0], l[1])"), "const long long r = quern::gcd((long long)i[0], l[1]);"));
  CHECK(holds(line("np.gcd(l[0], 6)"), "const long long r = quern::gcd(l[0], 6LL);"));
  CHECK(holds(line("np.gcd(u[0], u[1])"), "const unsigned r = (unsigned)quern::gcd(u[0], u[1]);"));
  CHECK(
      holds(line("np.gcd(u[0], i[1])"), "const long long r = quern::gcd((long long)u[0], (long long)i[1]);"));
  CHECK(holds(line("np.gcd(b[0], s[1])"), "const short r = (short)quern::gcd(short(b[0]), s[1]);"));
  CHECK(holds(line("np.gcd(v[0], v[1])"), "const unsigned long long r = quern::unsigned_gcd(v[0], v[1]);"));
  CHECK(holds(line("np.gcd(v[0], l[1])"), "const long long r = quern::gcd((long long)v[0], l[1]);"));
  CHECK(holds(line("np.lcm(i[0], i[1])"), "const int r = (int)quern::lcm(i[0], i[1]);"));
  CHECK(holds(line("np.lcm(v[0], v[1])"), "const unsigned long long r = quern::unsigned_lcm(v[0], v[1]);"));
}

TEST_CASE("np.bitwise_count gives a uint8 for every integer type and for bool, as NumPy does") {
  const auto line = [](const std::string& type, const std::string& argument) {
    return cuda_of("@cuda.jit\ndef k(a, out):\n    r = np.bitwise_count(" + argument + ")\n    out[0] = r\n",
                   type + "[::1], int64[::1]");
  };
  for (const std::string type :
       {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}) {
    INFO(type);
    const std::string text = line(type, "a[1]");
    CHECK(holds(text, "const unsigned char r = quern::bitwise_count(a[1]);"));
    CHECK(holds(text, "#include <quern/cuda/warp.cuh>"));
  }
  CHECK(holds(line("int8", "-5"), "const unsigned char r = quern::bitwise_count(-5LL);"));
}

TEST_CASE("what math rounds to a whole number counts loops and indexes, as in Python") {
  const std::string text = quern::test::cuda_of(
      "@cuda.jit\ndef k(a, x):\n    for i in range(math.ceil(x)):\n        a[i] = 1.0\n"
      "    for i in range(math.floor(x), math.trunc(2 * x)):\n        a[i] = 2.0\n    a[0] = math.ceil(x) / "
      "2\n",
      "(float64[::1], float64)");
  CHECK(holds(text, "(long long)ceil(x)"));
  CHECK(holds(text, "(long long)floor(x)"));
  CHECK(holds(text, "(long long)trunc(2 * x)"));
  CHECK(holds(text, "a[0] = ceil(x) / 2;"));
  CHECK(holds(quern::test::cuda_of("@cuda.jit\ndef k(a, x):\n    for i in range(x):\n        a[0] = 1\n",
                                   "(float64[::1], float64)"),
              "error"));
}

TEST_CASE("a break in the else of an inner loop is the outer loop's") {
  const std::string text = cuda_of(
      "@cuda.jit\ndef k(a):\n    for i in range(3):\n        for j in range(2):\n            pass\n"
      "        else:\n            break\n    else:\n        a[0] = 5\n",
      "(int64[::1],)");
  CHECK(holds(text, "bool completed = true;"));
  CHECK(holds(text, "completed = false; break;"));
  CHECK(holds(text, "if (completed) {"));
}

TEST_CASE("enumerate and zip go over each other and over ranges by one index") {
  const auto loop = [](const std::string& line) {
    return cuda_of("@cuda.jit\ndef k(a, b):\n    for " + line + "\n", "int64[::1], float32[::1]");
  };
  std::string text = loop("j, (p, q) in enumerate(zip(a, b)):\n        a[j] = p + q");
  CHECK(holds(text, "for (long long k = 0; k < min(a.extents[0], b.extents[0]); ++k) {"));
  CHECK(holds(text, "const long long p = a[k];"));
  CHECK(holds(text, "const float q = b[k];"));
  text = loop("j, pq in enumerate(zip(a, b)):\n        a[j] = pq[0]");
  CHECK(holds(text, "pq = quern::tuple<long long, float>{a[k], b[k]};"));
  text = loop("j, v in enumerate(range(2, 8, 2), 5):\n        a[j] = v");
  CHECK(holds(text, "const auto items = quern::range<long long>(2, 8, 2);"));
  CHECK(holds(text, "k < items.size(); ++k"));
  CHECK(holds(text, "v = items[k];"));
  text = loop("v in a:\n        a = a[1:]\n        b[0] += v");
  CHECK(holds(text, "const auto items = a;"));
}

TEST_CASE("a transposed array brings the header of views") {
  CHECK(holds(cuda_of("@cuda.jit\ndef k(a):\n    b = a.T\n    b[1, 0] = 3\n", "(int64[:, ::1],)"),
              "#include <quern/cuda/view.cuh>"));
}

TEST_CASE("a place in a grid of several dimensions is a tuple like any other") {
  const auto body = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(a):\n    " + text + "\n", "(int64[:, ::1],)");
  };
  const std::string place =
      "quern::tuple<long long, long long>{(long long)blockIdx.x * blockDim.x + threadIdx.x, "
      "blockIdx.y * blockDim.y + threadIdx.y};";
  CHECK(holds(body("g = cuda.grid(2)\n    a[g] = g[1]"), " g = " + place));
  CHECK(holds(body("a[cuda.grid(2)] = 1"), " = " + place));
  CHECK(holds(body("a[0, 0] = cuda.gridsize(2)[1]"), "a(0, 0) = gridDim.y * blockDim.y;"));
  CHECK(holds(cuda_of("@cuda.jit(device=True)\ndef f():\n    return cuda.grid(2)\n\n@cuda.jit\ndef k(a):\n"
                      "    i, j = f()\n    a[i, j] = 1\n",
                      "(int64[:, ::1],)"),
              "return " + place));
}

TEST_CASE("threadIdx and its like can be named anew, passed on and held in tuples") {
  const std::string text = cuda_of(
      "@cuda.jit(device=True)\ndef f(d):\n    return d.y\n\n@cuda.jit\ndef k(a):\n    t = cuda.threadIdx\n"
      "    u = (t, cuda.blockDim)\n    a[t.x] = f(cuda.blockIdx) + u[1].z\n",
      "(int64[::1],)");
  CHECK(holds(text, "return blockIdx.y;"));
  CHECK(holds(text, "a[threadIdx.x] = (long long)f() + int(blockDim.z);"));
}

TEST_CASE("a parameter's default has the type that its value has") {
  const std::string text = cuda_of(
      "W = np.float32(3)\n@cuda.jit(device=True)\ndef f(x, y=10**-2, z=2**63, w=W, c=1j):\n    return x + y "
      "+ z + w + "
      "c.imag\n@cuda.jit\ndef k(a):\n    a[0] = f(1)\n",
      "(float64[::1],)");
  CHECK(holds(text, "f(long long x, double y, unsigned long long z, float w, quern::complex<double> c)"));
  CHECK(holds(text, "f(1, 0.01, 9223372036854775808ULL, 3.0f, quern::complex<double>(0.0, 1.0))"));
}

TEST_CASE("numbers of the file's level become constant expressions, infinities and halves too") {
  const std::string text = cuda_of(
      "INF = math.inf\nNONE = math.nan\nSINGLE = np.float32(-math.inf)\nHALF = np.float16(0.1)\nMASK = "
      "0xffffffffffffffff\nZ = 1 + 2j\nA = np.array([np.inf, 1], np.float16)\n@cuda.jit\ndef k(a):\n    a[0] "
      "= INF + "
      "NONE + SINGLE + HALF + MASK + Z.real + A[0]\n",
      "(float64[::1],)");
  CHECK(holds(text, "constexpr double INF = 1.0 / 0.0;"));
  CHECK(holds(text, "= -(0.0 / 0.0);"));
  CHECK(holds(text, "constexpr float SINGLE = -1.0f / 0.0f;"));
  CHECK(holds(text, "constexpr __half HALF = __half_raw{0x2e66};"));
  CHECK(holds(text, "constexpr unsigned long long MASK = 18446744073709551615ULL;"));
  CHECK(holds(text, "constexpr quern::complex<double> Z = quern::complex<double>{1.0, 2.0};"));
  CHECK(holds(text, "__constant__ const __half A[2] = {__half_raw{0x7c00}, __half_raw{0x3c00}};"));
}

TEST_CASE("tuples have a greatest item, and ranges hold numbers") {
  const auto value = [](const std::string& text) {
    return cuda_of("@cuda.jit\ndef k(a, n):\n    t = (n, a[1])\n    a[0] = " + text + "\n",
                   "int64[::1], int64");
  };
  CHECK(holds(value("max((n, 5))"), "max(n, 5LL)"));
  CHECK(holds(value("min(t)"), "min(quern::item<0>(t), quern::item<1>(t))"));
  CHECK(holds(value("n in range(5)"), "quern::range<long long>(5).contains(n)"));
  CHECK(holds(value("n not in range(1, n, 2)"), "!quern::range<long long>(1, n, 2).contains(n)"));
}

TEST_SUITE_END();
