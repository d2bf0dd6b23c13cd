// SPDX-License-Identifier: Apache-2.0
#include "launch/signature.hpp"

#include <doctest/doctest.h>

using namespace quern;
using quern::launch::ParameterPlan;
using quern::launch::Takes;

namespace {

ParameterPlan plan(const char* type, std::uint32_t size) {
  abi::ParameterInfo info;
  info.type = type;
  info.name = "x";
  info.size = size;
  return launch::plan_parameter(info);
}

}  // namespace

TEST_CASE("C++ scalar types are read whatever their spelling") {
  CHECK(launch::dtype_of_type("int") == Dtype::int32);
  CHECK(launch::dtype_of_type("const unsigned   int") == Dtype::uint32);
  CHECK(launch::dtype_of_type("std::int64_t") == Dtype::int64);
  CHECK(launch::dtype_of_type("::std::size_t") == Dtype::uint64);
  CHECK(launch::dtype_of_type("unsigned long long") == Dtype::uint64);
  CHECK(launch::dtype_of_type("__half") == Dtype::float16);
  CHECK(launch::dtype_of_type("cuda::std::complex< double >") == Dtype::complex128);
  CHECK_FALSE(launch::dtype_of_type("Particle"));
}

TEST_CASE("pointers carry their pointee where it is a scalar") {
  CHECK(plan("const float* __restrict__", 8).takes == Takes::pointer);
  CHECK(plan("const float* __restrict__", 8).dtype == Dtype::float32);
  CHECK(plan("float *const", 8).dtype == Dtype::float32);
  CHECK(plan("Particle*", 8).takes == Takes::pointer);
  CHECK_FALSE(plan("Particle*", 8).dtype);
  CHECK_FALSE(plan("float**", 8).dtype);
  CHECK(plan("char*", 8).any_bytes);
  CHECK_FALSE(plan("void*", 8).dtype);
  CHECK(plan("int[]", 8).takes == Takes::pointer);
}

TEST_CASE("quern's arrays are read with element and rank") {
  const ParameterPlan array = plan("quern::array<const float, 2>", 40);
  CHECK(array.takes == Takes::device_array);
  CHECK(array.dtype == Dtype::float32);
  CHECK(array.ndim == 2);
  CHECK(array.read_only);
  CHECK(plan("quern::c_array<double const, 1>", 24).read_only);
  CHECK_FALSE(plan("quern::array<float, 2>", 40).read_only);
  CHECK_FALSE(plan("const quern::array<float, 2>", 40).read_only);
}

TEST_CASE("PTX types tell width but not sign, and a word may be an address") {
  CHECK(plan(".u64", 8).takes == Takes::word);
  CHECK(plan(".u32", 4).takes == Takes::scalar);
  CHECK(plan(".u32", 4).any_sign);
  CHECK(plan(".f32", 4).dtype == Dtype::float32);
  CHECK(plan(".b8", 12).takes == Takes::opaque);
}

TEST_CASE("a type that is not known is so many bytes") {
  CHECK(plan("Particle", 24).takes == Takes::opaque);
  CHECK(plan("", 8).takes == Takes::opaque);
}

TEST_CASE("a signature reads like the author's declaration") {
  abi::EntryInfo entry;
  entry.name = "saxpy";
  entry.parameters = {
      {"n", "int", 0, 4, 4, false}, {"x", "const float*", 8, 8, 8, true}, {"", "", 16, 12, 4, false}};
  const launch::Signature signature = launch::read_signature(entry);
  CHECK(signature.text == "saxpy(int n, const float* x, 12 bytes)");
  CHECK(signature.columns == std::vector<std::size_t>{6, 13, 29});
}
