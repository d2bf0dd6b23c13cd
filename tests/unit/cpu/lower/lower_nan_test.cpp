// SPDX-License-Identifier: Apache-2.0
// NaNs get the bits that PTX specifies if an operation reads their bits, and only then. The oracle checks the
// values of the bits (tests/oracle/forms.def).
#include <doctest/doctest.h>

#include "support.hpp"

using namespace quern;
using cpu::ir::Op;

namespace {

cpu::ir::Function kernel_of(const std::string& body) {
  return test::lowered(test::kernel_text(body)).functions[0];
}
std::size_t canonical_in(const std::string& body) { return test::count(kernel_of(body), Op::canonical_nan); }

}  // namespace

TEST_CASE("a chain of arithmetic is made canonical once, where it is stored") {
  const auto kernel = kernel_of(R"(
  ld.global.f32 %f1, [%rd1];
  add.f32 %f2, %f1, %f1;
  mul.f32 %f3, %f2, %f1;
  sqrt.rn.f32 %f4, %f3;
  st.global.f32 [%rd1], %f4;)");
  REQUIRE(test::count(kernel, Op::canonical_nan) == 1);
  CHECK(test::operand(kernel, test::first(kernel, Op::canonical_nan), 0).op == Op::fsqrt);
  CHECK(test::operand(kernel, test::first(kernel, Op::store), 1).op == Op::canonical_nan);
}

TEST_CASE("what is only moved keeps its bits") {
  CHECK(canonical_in("ld.global.f32 %f1, [%rd1]; mov.f32 %f2, %f1; st.global.f32 [%rd1+4], %f2;") == 0);
  CHECK(canonical_in("ld.global.u32 %r1, [%rd1]; mov.b32 %f2, %r1; st.global.f32 [%rd1+4], %f2;") == 0);
}

TEST_CASE("integer arithmetic, shuffles, the sign of copysign and wider formats look at bits") {
  const std::string sum = "ld.global.f32 %f1, [%rd1]; add.f32 %f2, %f1, %f1; ";
  CHECK(canonical_in(sum + "mov.b32 %r1, %f2; shr.u32 %r2, %r1, 31; st.global.u32 [%rd1], %r2;") == 1);
  CHECK(canonical_in(sum +
                     "mov.b32 %r1, %f2; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; st.global.u32 [%rd1], %r2;") ==
        1);
  CHECK(canonical_in(sum + "copysign.f32 %f3, %f2, %f1; st.global.f32 [%rd1], %f3;") == 1);
  CHECK(canonical_in(sum + "cvt.f64.f32 %fd1, %f2; st.global.f64 [%rd1], %fd1;") == 1);
  CHECK(canonical_in(sum + "cvt.rzi.s32.f32 %r1, %f2; st.global.u32 [%rd1], %r1;") == 0);
}

TEST_CASE("a value that is moved or computed is made canonical only where it is computed") {
  const auto kernel = kernel_of(R"(
  ld.global.f32 %f1, [%rd1];
  add.f32 %f2, %f1, %f1;
  setp.gt.f32 %p1, %f1, 0f00000000;
  selp.f32 %f3, %f1, %f2, %p1;
  st.global.f32 [%rd1], %f3;)");
  REQUIRE(test::count(kernel, Op::canonical_nan) == 1);
  CHECK(test::operand(kernel, test::first(kernel, Op::canonical_nan), 0).op == Op::fadd);
}

TEST_CASE("a sum in a loop is made canonical behind the loop, in registers of integers too") {
  for (const char* type : {"f", "r"}) {
    const std::string sum = type[0] == 'f' ? "%f9" : "%r9";
    const std::string body =
        "  mov.b32 " + sum +
        ", 0f00000000;\n  mov.u32 %r1, 0;\nloop:\n  ld.global.f32 %f1, [%rd1];\n  add.f32 " + sum + ", " +
        sum + ", %f1;\n  add.u32 %r1, %r1, 1;\n  setp.lt.u32 %p1, %r1, 9;\n  @%p1 bra loop;\n" +
        "  st.global.b32 [%rd1], " + sum + ";\n";
    const auto kernel = kernel_of(body);
    REQUIRE(test::count(kernel, Op::canonical_nan) == 1);
    CHECK(test::first(kernel, Op::canonical_nan).block == test::first(kernel, Op::store).block);
    CHECK(test::first(kernel, Op::canonical_nan).block != test::first(kernel, Op::fadd).block);
  }
}

TEST_CASE("numbers of a known range are no NaNs") {
  CHECK(canonical_in(R"(
  ld.global.f32 %f1, [%rd1];
  fma.rn.sat.f32 %f2, %f1, 0f3BBB989D, 0f3F000000;
  fma.rm.f32 %f3, %f2, 0f437C0000, 0f4B400001;
  mov.b32 %r1, %f3;
  shl.b32 %r2, %r1, 23;
  st.global.u32 [%rd1], %r2;)") == 0);
}
