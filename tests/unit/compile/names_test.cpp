// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/names.hpp"

#include <doctest/doctest.h>

#include "compile/ptx/entries.hpp"
#include "compile/source/type_text.hpp"

using namespace quern;
using namespace quern::compile;

namespace {
abi::EntryInfo entry(std::string lowered, std::size_t parameters) {
  abi::EntryInfo info;
  info.lowered_name = std::move(lowered);
  info.parameters.resize(parameters);
  return info;
}
}  // namespace

TEST_CASE("types come in one spelling") {
  CHECK(normal_type("float const *") == "const float*");
  CHECK(normal_type("const  float  * __restrict__") == "const float*");
  CHECK(normal_type("unsigned") == "unsigned int");
  CHECK(normal_type("unsigned long long int") == "unsigned long long");
  CHECK(normal_type("long int") == "long");
  CHECK(normal_type("const int") == "int");
  CHECK(normal_type("int *const") == "int*");
  CHECK(normal_type("float**") == "float**");
  CHECK(normal_type("float const* const*") == "const float* const*");
  CHECK(normal_type("quern::array<float const,1>") == "quern::array<const float, 1>");
  CHECK(normal_type("std::pair<int,quern::array<unsigned,2> > &") ==
        "std::pair<int, quern::array<unsigned int, 2>>&");
  CHECK(normal_type("T [ 4 ]").starts_with("T["));
  CHECK(normal_type("").empty());
}

TEST_CASE("commas inside brackets do not split") {
  const auto parts = split_at_commas("a, b<c, d>, e(f, g) , {h, i}[j, k]");
  REQUIRE(parts.size() == 4);
  CHECK(parts[1] == "b<c, d>");
  CHECK(parts[2] == "e(f, g)");
  CHECK(split_at_commas("").empty());
}

TEST_CASE("mangled names give the author's name and the parameters' types") {
  // Expected: the C++ declarations from which NVRTC mangled these names.
  const DemangledName scale = demangle("_Z5scaleIfEvPT_S0_i");
  CHECK(scale.name == "scale<float>");
  CHECK(scale.parameter_types == std::vector<std::string>{"float*", "float", "int"});
  const DemangledName arrays = demangle("_Z1kN5quern5arrayIfLi2EEENS0_IKfLi1EEENS0_IiLi0EEE");
  CHECK(arrays.name == "k");
  CHECK(arrays.parameter_types == std::vector<std::string>{"quern::array<float, 2>",
                                                           "quern::array<const float, 1>",
                                                           "quern::array<int, 0>"});
  const DemangledName reference = demangle("_Z5other1SRA3_f");
  CHECK(reference.name == "other");
  CHECK(reference.parameter_types.size() == 2);
  CHECK(demangle("_Z4nonev").parameter_types.empty());
  CHECK(demangle("_ZN5tools5scaleIfLi2EEEvPT_S1_").name == "tools::scale<float, 2>");
}

TEST_CASE("a name that is not mangled stays as it is") {
  for (const char* name : {"saxpy", "f", "i", "_Znonsense", "", "_Z"}) {
    CHECK(demangle(name).name == name);
    CHECK_FALSE(demangle(name).mangled);
  }
}

TEST_CASE("overloads keep their parameter lists, and each gets its own parameters' names") {
  std::vector<abi::EntryInfo> entries = {entry("_Z1fi", 1), entry("_Z1ff", 1), entry("g", 1)};
  name_entries(entries, {},
               read_kernels("__global__ void f(int count); __global__ void f(float factor); extern \"C\" "
                            "__global__ void g(int* x);"));
  CHECK(entries[0].name == "f(int)");
  CHECK(entries[0].parameters[0].name == "count");
  CHECK(entries[1].name == "f(float)");
  CHECK(entries[1].parameters[0].name == "factor");
  CHECK(entries[2].name == "g");
  CHECK(entries[2].parameters[0].pointee == "int");
}

TEST_CASE("declarations that contradict each other give no names, later ones with names help") {
  std::vector<abi::EntryInfo> entries = {entry("k", 2), entry("m", 1), entry("elsewhere", 3)};
  name_entries(
      entries, {},
      read_kernels(
          "#if A\n__global__ void k(int a, int b);\n#else\n__global__ void k(int b, int a);\n#endif\n"
          "__global__ void m(int*); __global__ void m(int* data) {}"));
  CHECK(entries[0].parameters[0].name.empty());
  CHECK(entries[1].parameters[0].name == "data");
  CHECK(entries[2].name == "elsewhere");
  CHECK(entries[2].parameters[0].name.empty());
}

TEST_CASE("types that the text gives in two ways are not known, where the lowered name does not say") {
  std::vector<abi::EntryInfo> entries = {entry("k", 1), entry("_Z1mPf", 1), entry("s", 1), entry("n", 1)};
  name_entries(
      entries, {},
      read_kernels(
          "#if A\nextern \"C\" __global__ void k(int* o) {}\n#else\nextern \"C\" __global__ void k(float* "
          "o) {}\n#endif\n__global__ void m(int* o) {}\n__global__ void m(float* o) {}\n"
          "extern \"C\" __global__ void s(int* o);\nextern \"C\" __global__ void s(int* o) {}\n"
          "#if A\nextern \"C\" __global__ void n(int* o, int n) {}\n#else\n"
          "extern \"C\" __global__ void n(float* o) {}\n#endif\n"));
  CHECK(entries[0].parameters[0].name == "o");
  CHECK(entries[0].parameters[0].type.empty());
  CHECK(entries[0].parameters[0].pointee.empty());
  CHECK(entries[1].parameters[0].pointee == "float");
  CHECK(entries[2].parameters[0].pointee == "int");
  CHECK(entries[3].parameters[0].pointee == "float");
}

TEST_CASE("a name expression is the entry's name, without the address-of") {
  std::vector<abi::EntryInfo> entries = {entry("_Z5scaleIjEvPT_", 1)};
  name_entries(entries, {{" &scale<unsigned> ", "_Z5scaleIjEvPT_"}}, {});
  CHECK(entries[0].name == "scale<unsigned>");
  CHECK(entries[0].parameters[0].type == "unsigned int*");
}
