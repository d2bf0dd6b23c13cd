// SPDX-License-Identifier: Apache-2.0
#include "compile/source/source_reader.hpp"

#include <doctest/doctest.h>

using namespace quern;
using compile::KernelDeclaration;
using compile::read_kernels;

namespace {

// "type name, type name" with '?' for a parameter without a name.
std::string parameters_of(const KernelDeclaration& kernel) {
  std::string text;
  for (const auto& parameter : kernel.parameters)
    text +=
        (text.empty() ? "" : ", ") + parameter.type + " " + (parameter.name.empty() ? "?" : parameter.name);
  return text;
}

std::string only(std::string_view declaration) {
  const auto kernels = read_kernels(declaration);
  REQUIRE(kernels.size() == 1);
  return parameters_of(kernels[0]);
}

}  // namespace

TEST_CASE("a plain declaration gives names and types in one spelling") {
  CHECK(only("__global__ void k(int n, float const * __restrict__ x, unsigned  m, float *y) {}") ==
        "int n, const float* x, unsigned int m, float* y");
  CHECK(only("extern \"C\" __global__ void k(void) {}").empty());
  CHECK(only("__global__ void k() {}").empty());
}

TEST_CASE("attributes between __global__ and the name are passed over") {
  const auto kernels = read_kernels(
      "__global__ void __launch_bounds__(128, (2 + 1)) __attribute__((used)) first(int a) {}\n"
      "extern \"C\" [[maybe_unused]] __global__ __cluster_dims__(2, 1, 1) void second(int b);\n"
      "static inline void __global__ third(int c) {}\n");
  REQUIRE(kernels.size() == 3);
  CHECK(kernels[0].name == "first");
  CHECK(kernels[1].name == "second");
  CHECK(kernels[2].name == "third");
  CHECK(kernels[1].line == 2);
  CHECK(parameters_of(kernels[2]) == "int c");
}

TEST_CASE("parameters of every shape are read") {
  CHECK(only("__global__ void k(float (&r)[3], float m[4][4], void (*f)(int), int* const p) {}") ==
        "float(&)[3] r, float[4][4] m, void(*)(int) f, int* p");
  CHECK(only("__global__ void k(quern::array<float, 2> a, const std::pair<int, float>* b) {}") ==
        "quern::array<float, 2> a, const std::pair<int, float>* b");
  CHECK(only("__global__ void k(struct S s, typename T::inner t, unsigned long long u, const "
             "__grid_constant__ S g) {}") == "S s, T::inner t, unsigned long long u, S g");
  CHECK(only("__global__ void k(int a = f(1, 2), float b = {3, 4}, [[maybe_unused]] int c = 5) {}") ==
        "int a, float b, int c");
  CHECK(
      only("__global__ void k(int, const float*, T, unsigned int, struct S, A::B, float* __restrict__) {}") ==
      "int ?, const float* ?, T ?, unsigned int ?, S ?, A::B ?, float* ?");
}

TEST_CASE("pointers tell what they point at") {
  const auto kernels =
      read_kernels("__global__ void k(const float* a, float* b, float** c, int& d, double e[], int f) {}");
  REQUIRE(kernels.size() == 1);
  const auto& parameters = kernels[0].parameters;
  REQUIRE(parameters.size() == 6);
  CHECK(parameters[0].pointee == "float");
  CHECK(parameters[0].read_only);
  CHECK(parameters[1].pointee == "float");
  CHECK_FALSE(parameters[1].read_only);
  CHECK(parameters[2].pointee == "float*");
  CHECK(parameters[3].pointer);
  CHECK(parameters[3].pointee == "int");
  CHECK(parameters[4].pointee == "double");
  CHECK_FALSE(parameters[5].pointer);
  CHECK(parameters[5].pointee.empty());
}

TEST_CASE("templates, specialisations and scopes are told apart") {
  const auto kernels = read_kernels(R"(
namespace outer { namespace inner::deep {
template <class T, int N = (1 < 2)> __global__ void scale(T* x, T a) {}
template <> __global__ void scale<float, 3>(float* y, float b) {}
struct Holder { static __global__ void member(int m); };
} }
__global__ void plain(int n) { { int x; } }
__global__ void outer::late(int q) {}
)");
  REQUIRE(kernels.size() == 5);
  CHECK(kernels[0].qualified_name() == "outer::inner::deep::scale");
  CHECK(kernels[0].is_template);
  CHECK(parameters_of(kernels[0]) == "T* x, T a");
  CHECK(kernels[1].name == "scale");
  CHECK(kernels[1].is_template);
  CHECK(parameters_of(kernels[1]) == "float* y, float b");
  CHECK(kernels[2].qualified_name() == "outer::inner::deep::Holder::member");
  CHECK(kernels[3].qualified_name() == "plain");
  CHECK_FALSE(kernels[3].is_template);
  CHECK(kernels[4].qualified_name() == "outer::late");
}

TEST_CASE("comments, strings and macros do not mislead") {
  const auto kernels = read_kernels(R"cuda(
// __global__ void no1(int a) {}
/* __global__ void no2(int a) {} */
#define KERNEL(name) __global__ void name(int a) \
  { name(a); }
const char* text = "__global__ void no3(int a) {}";
const char* raw = R"x(__global__ void no4(int a) {} )" )x";
char quote = '"';
__global__ void /* the real one */ yes(int /* count */ n, // comment
                                       float* x = nullptr) {}
#if 0
__global__ void other(int n) {}
#endif
int digits = 1'000'000;
__global__ void last(int n);
)cuda");
  REQUIRE(kernels.size() == 3);
  CHECK(kernels[0].name == "yes");
  CHECK(parameters_of(kernels[0]) == "int n, float* x");
  CHECK(kernels[1].name == "other");
  CHECK(kernels[2].name == "last");
}

TEST_CASE("no text, however broken, is read beyond its end") {
  const std::string whole =
      "template <class T> __global__ void __launch_bounds__(1) k<T>(const T (&a)[2], R\"x(\")x\", [[a]] int "
      "b = 'c') /* */ // \\\n";
  for (std::size_t begin = 0; begin < whole.size(); ++begin)
    for (std::size_t end = begin; end <= whole.size(); ++end)
      (void)read_kernels(whole.substr(begin, end - begin));
  (void)read_kernels("__global__");
  (void)read_kernels("__global__ (");
  (void)read_kernels("__global__ > (int a)");
  (void)read_kernels("__global__ void k(,,)");
  (void)read_kernels("}}}} __global__ void k(int a)");
}
