// SPDX-License-Identifier: Apache-2.0
#include "frontend/cpp/code.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "frontend/cpp/lines.hpp"

using namespace quern::frontend;

TEST_CASE("a literal is written in the type that it is converted to") {
  CHECK(convert(integer_code(12), CppType::i64).text == "12LL");
  CHECK(convert(integer_code(-12), CppType::i64).text == "-12LL");
  CHECK(convert(integer_code(12), CppType::u32).text == "12u");
  CHECK(convert(integer_code(-12), CppType::u32).text == "unsigned(-12)");
  CHECK(convert(integer_code(-12), CppType::f32).text == "-12.0f");
  CHECK(convert(real_code(1.5, false), CppType::f32).text == "1.5f");
  CHECK(convert(convert(integer_code(2), CppType::f64), CppType::f32).text == "2.0f");
}

TEST_CASE("a literal that is not exact in float is converted by C++") {
  CHECK(convert(real_code(0.1, false), CppType::f32).text == "float(0.1)");
}

TEST_CASE("the least integers are no literals") {
  CHECK(convert(integer_code(std::numeric_limits<std::int32_t>::min()), CppType::i64).text ==
        "(long long)(-2147483647 - 1)");
  CHECK(integer_code(std::numeric_limits<std::int64_t>::min()).text == "(-9223372036854775807LL - 1)");
}

TEST_CASE("a negated literal is one, and two signs do not become a decrement") {
  const Code minus = prefix(Tok::minus, integer_code(3), CppType::i32);
  CHECK(convert(minus, CppType::i64).text == "-3LL");
  CHECK(prefix(Tok::minus, minus, CppType::i32).text == "- -3");
}

TEST_CASE("equal signs are separated, and no others") {
  const Code name{"x", Precedence::primary, CppType::i32};
  const Code minus = prefix(Tok::minus, name, CppType::i32),
             inverted = prefix(Tok::invert, name, CppType::i32);
  CHECK(prefix(Tok::minus, minus, CppType::i32).text == "- -x");
  CHECK(prefix(Tok::invert, inverted, CppType::i32).text == "~ ~x");
  CHECK(prefix(Tok::minus, inverted, CppType::i32).text == "-~x");
  CHECK(prefix(Tok::minus, integer_code(-3), CppType::i32).text == "- -3");
  CHECK(prefix(Tok::minus, convert(integer_code(-3), CppType::i64), CppType::i64).text == "- -3LL");
  CHECK(prefix(Tok::minus, real_code(-1.5, false), CppType::f64).text == "- -1.5");
  CHECK(prefix(Tok::minus, real_code(-std::numeric_limits<double>::infinity(), true), CppType::f32).text ==
        "- -__int_as_float(0x7f800000)");
  CHECK(prefix(Tok::minus, integer_code(std::numeric_limits<std::int32_t>::min()), CppType::i32).text ==
        "-(-2147483647 - 1)");
  CHECK(prefix(Tok::minus, infix(Tok::plus, minus, name, CppType::i32), CppType::i32).text == "-(-x + x)");
}

TEST_CASE("members and addresses of what a pointer refers to use the pointer") {
  CHECK(member_of(dereference("p"), "x") == "p->x");
  CHECK(address_of(dereference("p")) == "p");
  CHECK(member_of(Code{"r"}, "x") == "r.x");
  CHECK(address_of(Code{"a + b", Precedence::plus}) == "&(a + b)");
}

TEST_CASE("lines know their depth and the author's line") {
  Lines lines;
  lines.set_source(7);
  lines.open("if (a) {");
  lines.add("x = 1;");
  lines.set_source(8);
  lines.reopen_at_source("} else if (b) {");
  const std::size_t mark = lines.mark();
  lines.add("y = 1;");
  CHECK(lines.cut(mark).front().text == "y = 1;");
  lines.reopen("} else {");
  lines.close();
  const std::vector<Line> all = lines.take();
  REQUIRE(all.size() == 5);
  CHECK(all[1].indent() == 2);
  CHECK(all[2].source == 8);
  CHECK(all[2].indent() == 0);
  CHECK(all[3].source == 0);
  CHECK(all[4].text == "}");
}
