// SPDX-License-Identifier: Apache-2.0
#include "quern/element_type.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

#include "quern/error.hpp"
#include "quern/record.hpp"

using namespace quern;

namespace {

struct Point {
  float x, y;
};
struct Particle {
  std::int8_t kind;
  double position[3];
  Point corners[2];
  std::array<std::int16_t, 4> counts;
  std::complex<float> phase;
  bool alive;
};

}  // namespace

TEST_CASE("a struct describes itself: names, types and offsets are the compiler's") {
  const RecordType type = record_type_of<Particle>();
  REQUIRE(type.fields().size() == 6);
  CHECK(type.size_bytes() == sizeof(Particle));
  CHECK(type.field("kind").element == ElementType(Dtype::int8));
  CHECK(type.field("position").offset_bytes == offsetof(Particle, position));
  CHECK(type.field("position").shape == std::vector<std::int64_t>{3});
  CHECK(type.field("corners").element == element_type_of<Point>());
  CHECK(type.field("corners").element.record->field("y").offset_bytes == 4);
  CHECK(type.field("counts").shape == std::vector<std::int64_t>{4});
  CHECK(type.field("phase").offset_bytes == offsetof(Particle, phase));
  CHECK(type.field("alive").offset_bytes == offsetof(Particle, alive));
  CHECK_THROWS_AS(type.field("nothing"), Error);
}

TEST_CASE("C++ types have the element type of their size and sign") {
  CHECK(element_type_of<long long>() == ElementType(Dtype::int64));
  CHECK(element_type_of<char>() == ElementType(Dtype::int8));
  CHECK(element_type_of<std::complex<double>>() == ElementType(Dtype::complex128));
  CHECK(element_type_of<float16>() == ElementType(Dtype::float16));
  enum class Colour : std::uint16_t { red };
  CHECK(element_type_of<Colour>() == ElementType(Dtype::uint16));
}

TEST_CASE("records are aligned as C does it, or packed as NumPy does it") {
  const std::vector<Field> fields = {
      {"a", Dtype::int8, 0, {}}, {"b", Dtype::float64, 0, {}}, {"c", Dtype::int16, 0, {2}}};
  const RecordType aligned = RecordType::aligned(fields);
  CHECK(aligned.field("b").offset_bytes == 8);
  CHECK(aligned.field("c").offset_bytes == 16);
  CHECK(aligned.size_bytes() == 24);
  CHECK(RecordType::packed(fields).size_bytes() == 13);
  CHECK(aligned.cuda_source("R") == "struct R { signed char a; double b; short c[2]; };");
  CHECK_THROWS_AS(RecordType::packed(fields).cuda_source("R"), Error);
}

TEST_CASE("fields that overlap, reach outside or share a name are refused") {
  CHECK_THROWS_AS(RecordType({{"a", Dtype::int32, 0, {}}, {"b", Dtype::int32, 2, {}}}, 8), Error);
  CHECK_THROWS_AS(RecordType({{"a", Dtype::int32, 6, {}}}, 8), Error);
  CHECK_THROWS_AS(RecordType({{"a", Dtype::int32, 0, {}}, {"a", Dtype::int32, 4, {}}}, 8), Error);
  CHECK_THROWS_AS(RecordType({{"", Dtype::int32, 0, {}}}, 8), Error);
}

TEST_CASE("type strings are NumPy's, both ways") {
  for (int i = 0; i <= static_cast<int>(Dtype::complex128); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    CHECK(element_of_typestr(typestr(dtype)) == ElementType(dtype));
  }
  CHECK(typestr(Dtype::bfloat16) == "<V2");  // ml_dtypes'
  CHECK(element_of_typestr("|V2") == ElementType::opaque(2));
  CHECK(typestr(Dtype::float32) == "<f4");
  CHECK(typestr(element_type_of<Point>()) == "|V8");
  CHECK(element_of_typestr("|V8") == ElementType::opaque(8));
  CHECK_FALSE(element_of_typestr(">f4"));
  CHECK_FALSE(element_of_typestr("|O8"));
  CHECK_FALSE(element_of_typestr(""));
}

TEST_CASE("half precision rounds to nearest even") {
  CHECK(float16(1.0f).bits() == 0x3c00);
  CHECK(static_cast<float>(float16(65520.0f)) == INFINITY);
  CHECK(float16(2049.0f).bits() == float16(2048.0f).bits());
  CHECK(bfloat16(1.0f).bits() == 0x3f80);
  CHECK(bfloat16(1.00390625f).bits() == 0x3f80);  // half-way: the even one
}
