// SPDX-License-Identifier: Apache-2.0
// Headers that are given as text, alone and through NVRTC.
#include "compile/source/virtual_headers.hpp"

#include <algorithm>

#include "../support/scratch.hpp"
#include "compile/compiler.hpp"
#include "toolkit.hpp"

using namespace quern;
using test::compiler;
using test::cuda;
using test::errors_of;

namespace {

abi::KernelRequest with_headers(const char* text, std::vector<abi::HeaderText> headers,
                                std::vector<std::string> options = {}) {
  abi::KernelRequest request = cuda(text);
  request.headers = std::move(headers);
  request.options = std::move(options);
  return request;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

constexpr const char* kKernel =
    "#include <lib/a.cuh>\nextern \"C\" __global__ void k(int* x) { *x = answer(); }\n";

}  // namespace

TEST_SUITE_BEGIN("virtual headers");

TEST_CASE("an include of a header beside the one it stands in gets that one's name") {
  const auto resolved = compile::resolve_headers({
      {"lib/a.cuh", "// #include \"b.cuh\"\n#  include  \"b.cuh\"  // \"b.cuh\"\n#include <b.cuh>\n"},
      {"lib/b.cuh", "#include \"../c.cuh\"\n#include \"./deep/d.cuh\"\n#include \"e.cuh\"\n"},
      {"c.cuh", "#include \"lib/b.cuh\"\nint x;\n"},
      {"lib/deep/d.cuh", ""},
  });
  REQUIRE(resolved);
  CHECK((*resolved)[0].text ==
        "// #include \"b.cuh\"\n#  include  \"lib/b.cuh\"  // \"b.cuh\"\n#include <b.cuh>\n");
  CHECK((*resolved)[1].text == "#include \"c.cuh\"\n#include \"lib/deep/d.cuh\"\n#include \"e.cuh\"\n");
  CHECK((*resolved)[2].text == "#include \"lib/b.cuh\"\nint x;\n");
}

TEST_CASE("names that no include can say, two of a name, and quern's own are refused") {
  const auto refused = [](std::vector<abi::HeaderText> headers) {
    const auto resolved = compile::resolve_headers(headers);
    return resolved ? std::string() : resolved.errors()[0].message;
  };
  CHECK(holds(refused({{"", ""}}), "no #include can name it"));
  CHECK(holds(refused({{"a\nb", ""}}), "no #include can name it"));
  CHECK(holds(refused({{"a>b", ""}}), "no #include can name it"));
  CHECK(holds(refused({{"a", ""}, {"b", ""}, {"a", ""}}), "two headers named 'a'"));
  CHECK(holds(refused({{"quern/device.cuh", ""}}), "quern's own"));
  CHECK(refused({{"a", ""}, {"./a", ""}}).empty());
}

TEST_CASE("headers are included by name, and include each other") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(with_headers(
      kKernel, {{"lib/a.cuh", "#pragma once\n#include \"b.cuh\"\n#include <lib/b.cuh>\n"},
                {"lib/b.cuh", "#pragma once\ninline __device__ int answer() { return 42; }\n"}}));
  REQUIRE_MESSAGE(image, errors_of(image));
  CHECK(holds((*image)->ptx, "42;"));
}

TEST_CASE("messages point into the header, by its name") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(
      with_headers(kKernel, {{"lib/a.cuh", "\n\ninline __device__ int answer() { return y; }\n"}}));
  REQUIRE_FALSE(image);
  CHECK(std::string(image.errors()[0].span.file) == "lib/a.cuh");
  CHECK(image.errors()[0].span.line == 3);
  CHECK(image.errors()[0].source_line == "inline __device__ int answer() { return y; }");
  const auto zero = compiler().compile(with_headers(kKernel, {{"lib/a.cuh", std::string("a\0b", 3)}}));
  REQUIRE_FALSE(zero);
  CHECK(std::string(zero.errors()[0].span.file) == "lib/a.cuh");
}

TEST_CASE("line information names a header as the author does") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(with_headers(
      kKernel, {{"lib/a.cuh", "__device__ __noinline__ int answer() {\n  return clock();\n}\n"}}));
  REQUIRE_MESSAGE(image, errors_of(image));
  CHECK(holds((*image)->ptx, "\"lib/a.cuh\""));
}

TEST_CASE("a changed header is compiled anew, and so is a file that a header includes") {
  if (!test::have_nvrtc()) return;
  const test::Scratch scratch;
  scratch.write("disk.cuh", "inline __device__ int answer() { return 1000; }\n");
  const std::vector<std::string> options{"-I" + scratch.path.string()};
  const auto ptx = [&](const char* text) {
    const auto image = compiler().compile(with_headers(kKernel, {{"lib/a.cuh", text}}, options));
    REQUIRE_MESSAGE(image, errors_of(image));
    return (*image)->ptx;
  };
  CHECK(holds(ptx("inline __device__ int answer() { return 2000; }"), " 2000;"));
  CHECK(holds(ptx("inline __device__ int answer() { return 3000; }"), " 3000;"));
  CHECK(holds(ptx("#include <disk.cuh>"), " 1000;"));
  scratch.write("disk.cuh", "inline __device__ int answer() { return 4000; }\n");
  CHECK(holds(ptx("#include <disk.cuh>"), " 4000;"));
  const std::uint64_t runs = compiler().stats().nvrtc_runs;
  CHECK(holds(ptx("#include <disk.cuh>"), " 4000;"));
  CHECK(compiler().stats().nvrtc_runs == runs);
}

TEST_CASE("a header of that name wins over a file with -I") {
  if (!test::have_nvrtc()) return;
  const test::Scratch scratch;
  scratch.write("lib/a.cuh", "#error the file\n");
  const auto image = compiler().compile(
      with_headers(kKernel, {{"lib/a.cuh", "inline __device__ int answer() { return 1; }\n"}},
                   {"-I" + scratch.path.string()}));
  CHECK_MESSAGE(image, errors_of(image));
}

TEST_CASE("the standard headers of the list compile with each other, in either order") {
  if (!test::have_nvrtc() || !test::have_toolkit_headers()) return;
  const auto known = compile::standard_headers(compiler().toolkit().include_directories);
  REQUIRE(known.size() == 49);
  std::string forwards, backwards;
  for (const abi::HeaderText& header : known) {
    const std::string include = "#include <" + header.name + ">\n";
    forwards += include;
    backwards = include + backwards;
  }
  for (const std::string& includes : {forwards, backwards}) {
    const auto image = compiler().compile(cuda((includes + "__global__ void k() {}\n").c_str()));
    CHECK_MESSAGE(image, errors_of(image));
  }
}

TEST_CASE("standard headers give their names in namespace std, those of C globally as well") {
  if (!test::have_nvrtc() || !test::have_toolkit_headers()) return;
  const auto image = compiler().compile(cuda(R"(
#include <algorithm>
#include <array>
#include <cassert>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <quern/device.cuh>
template <class T> __device__ T twice(T x) {
  static_assert(std::is_arithmetic_v<T> && std::is_same_v<std::remove_cvref_t<const T&>, T>);
  return std::forward<T>(x) + x;
}
extern "C" __global__ void k(std::int64_t* x, float* y, std::uint32_t n, std::size_t m) {
  assert(n > 0);
  std::tuple<int, float> t{1, 2.0f};
  auto [a, b] = t;
  std::array<int, 3> three{1, 2, 3};
  auto [c, d] = std::make_pair(3, 4);
  std::swap(c, d);
  std::optional<int> maybe = twice(c);
  int moved = std::move(a);
  std::memcpy(x + 4, y, 4);
  const std::uint64_t most = SIZE_MAX;
  const std::conditional_t<sizeof(std::ptrdiff_t) == 8, int, void> one = INT8_MAX;
  x[0] = moved + c + d + std::get<0>(t) + three[1] + std::numeric_limits<int>::max() + CHAR_BIT + *maybe;
  x[1] = std::max(c, d) + std::plus<>{}(c, d) + most + one + m + std::tuple_size<decltype(t)>::value;
  y[0] = std::sqrt(b) + std::fabs(y[1]) + std::pow(b, 2.0f) + std::numeric_limits<float>::infinity() + sqrt(b);
})"));
  CHECK_MESSAGE(image, errors_of(image));
  const auto c = compiler().compile(cuda(R"(
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
struct P { int a; float b; };
using namespace std;
extern "C" __global__ void k(uint32_t* x, float* y, size_t n) {
  assert(n < UINT32_MAX);
  x[0] = offsetof(P, b) + INT_MAX + sizeof(ptrdiff_t);
  y[0] = sqrt(y[1]) + FLT_MAX + fabsf(y[2]);
  static_assert(FLT_MAX == 3.402823466e+38f && FLT_MIN == 1.175494351e-38f && FLT_EPSILON == 1.192092896e-07f);
  static_assert(DBL_MAX == 1.7976931348623157e+308 && DBL_MIN == 2.2250738585072014e-308);
  static_assert(DBL_EPSILON == 2.2204460492503131e-16 && FLT_DIG == 6 && DBL_DIG == 15);
  memcpy(y + 3, x, sizeof(int8_t));
})"));
  CHECK_MESSAGE(c, errors_of(c));
}

TEST_CASE("libcu++'s own headers do not bring namespace std with them") {
  if (!test::have_nvrtc() || !test::have_toolkit_headers()) return;
  const auto image = compiler().compile(cuda(R"(
#include <cuda/std/cmath>
#include <cuda/std/tuple>
using namespace std;
extern "C" __global__ void k(float* x) { *x = sqrt(*x); }
)"));
  CHECK_MESSAGE(image, errors_of(image));
}

TEST_CASE("a standard header of the author's own wins, as a file with -I and as a text") {
  if (!test::have_nvrtc() || !test::have_toolkit_headers()) return;
  const char* const source = "#include <tuple>\nextern \"C\" __global__ void k(int* x) { *x = own_tuple; }\n";
  const test::Scratch scratch;
  scratch.write("tuple", "constexpr int own_tuple = 1;\n");
  const auto file = compiler().compile(with_headers(source, {}, {"-I" + scratch.path.string()}));
  CHECK_MESSAGE(file, errors_of(file));
  const auto text = compiler().compile(with_headers(source, {{"tuple", "constexpr int own_tuple = 2;\n"}}));
  CHECK_MESSAGE(text, errors_of(text));
  CHECK_FALSE(compiler().compile(with_headers(source, {})));
}
