// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;

namespace {

/// Runs a kernel body; `out` is address 0.
test::IrInterpreter ran(const std::string& body) {
  static cpu::ir::Module module;
  module = test::lowered(test::kernel_text(body));
  test::IrInterpreter machine(module);
  machine.run();
  return machine;
}

}  // namespace

TEST_CASE("a chain of add.cc and addc adds numbers of 96 bits") {
  const auto machine = ran(R"(
    add.cc.u32 %r1, 0xffffffff, 2;
    addc.cc.u32 %r2, 0xfffffffe, 1;
    addc.u32 %r3, 5, 6;
    st.global.u32 [%rd1], %r1;
    st.global.u32 [%rd1+4], %r2;
    st.global.u32 [%rd1+8], %r3;)");
  // 0x00000005'fffffffe'ffffffff + 0x00000006'00000001'00000002
  CHECK(machine.word(0) == 1);
  CHECK(machine.word(1) == 0);
  CHECK(machine.word(2) == 12);
}

TEST_CASE("after sub.cc the carry says that nothing was borrowed") {
  const auto machine = ran(R"(
    sub.cc.u64 %rd2, 5, 7;
    subc.u64 %rd3, 9, 3;
    sub.cc.u32 %r1, 7, 5;
    addc.u32 %r2, 0, 0;
    sub.cc.u32 %r3, 5, 7;
    addc.u32 %r4, 0, 0;
    st.global.u64 [%rd1], %rd2;
    st.global.u64 [%rd1+8], %rd3;
    st.global.u32 [%rd1+16], %r2;
    st.global.u32 [%rd1+20], %r4;)");
  CHECK(machine.double_word(0) == static_cast<std::uint64_t>(-2));
  CHECK(machine.double_word(1) == 5);
  CHECK(machine.word(4) == 1);
  CHECK(machine.word(5) == 0);
}

TEST_CASE("mad.lo.cc and madc.hi give the 64-bit product plus a 64-bit number") {
  const auto machine = ran(R"(
    mov.u32 %r1, 0xdeadbeef;
    mov.u32 %r2, 0xcafebabe;
    mad.lo.cc.u32 %r3, %r1, %r2, 0xffffffff;
    madc.hi.u32 %r4, %r1, %r2, 7;
    st.global.u32 [%rd1], %r3;
    st.global.u32 [%rd1+4], %r4;)");
  const std::uint64_t expected = 0xdeadbeefull * 0xcafebabeull + 0x7ffffffffull;
  CHECK(machine.double_word(0) == expected);
}

TEST_CASE("products are low, high or wide, signed or not, of 24 bits or all") {
  const auto machine = ran(R"(
    mov.u32 %r1, -3;
    mul.wide.s32 %rd2, %r1, 5;
    mul.wide.u32 %rd3, %r1, 5;
    mul.hi.s32 %r2, %r1, 5;
    mul.hi.u32 %r3, %r1, 5;
    cvt.s16.s32 %rs1, %r1;
    mul.wide.s16 %r4, %rs1, 7;
    mul24.lo.s32 %r5, 0x01fffffe, 3;
    mul24.hi.u32 %r6, 0xffffff, 0xffffff;
    mad.wide.s16 %r7, %rs1, 7, 100;
    st.global.u64 [%rd1], %rd2;
    st.global.u64 [%rd1+8], %rd3;
    st.global.v2.u32 [%rd1+16], {%r2, %r3};
    st.global.v4.u32 [%rd1+24], {%r4, %r5, %r6, %r7};)");
  CHECK(machine.double_word(0) == static_cast<std::uint64_t>(-15));
  CHECK(machine.double_word(1) == 0xfffffffdull * 5);
  CHECK(machine.word(4) == 0xffffffff);
  CHECK(machine.word(5) == 4);
  CHECK(machine.word(6) == static_cast<std::uint32_t>(-21));
  CHECK(machine.word(7) == static_cast<std::uint32_t>(-6));  // the low 24 bits are -2
  CHECK(machine.word(8) == static_cast<std::uint32_t>((0xffffffull * 0xffffffull) >> 16));
  CHECK(machine.word(9) == 79);
}

TEST_CASE("cvt extends by the source's sign and fills the register by the destination's") {
  const auto machine = ran(R"(
    mov.u32 %r1, 0x1234f0;
    cvt.s32.s8 %r2, %r1;
    cvt.u32.u8 %r3, %r1;
    cvt.s8.s32 %r4, %r1;
    cvt.u8.s32 %r5, %r1;
    mov.u32 %r10, -5;
    cvt.s64.s32 %rd2, %r10;
    cvt.u64.u32 %rd3, %r10;
    st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};
    st.global.v2.u64 [%rd1+16], {%rd2, %rd3};)");
  CHECK(machine.word(0) == 0xfffffff0);
  CHECK(machine.word(1) == 0xf0);
  CHECK(machine.word(2) == 0xfffffff0);
  CHECK(machine.word(3) == 0xf0);
  CHECK(machine.double_word(2) == static_cast<std::uint64_t>(-5));
  CHECK(machine.double_word(3) == 0xfffffffbull);
}

TEST_CASE("cvt.sat limits a value that does not get narrower, too") {
  const auto machine = ran(R"(
    mov.u32 %r1, -5;
    cvt.sat.u32.s32 %r2, %r1;
    cvt.sat.s32.u32 %r3, %r1;
    cvt.sat.u64.s32 %rd2, %r1;
    st.global.v2.u32 [%rd1], {%r2, %r3};
    st.global.u64 [%rd1+16], %rd2;)");
  CHECK(machine.word(0) == 0);
  CHECK(machine.word(1) == 0x7fffffff);
  CHECK(machine.double_word(2) == 0);
}

TEST_CASE("a byte loaded into a wide register is extended by its own type, and a store takes the low bits") {
  const auto machine = ran(R"(
    st.global.u32 [%rd1], 0x80ff7f81;
    ld.global.s8 %r1, [%rd1];
    ld.global.u8 %r2, [%rd1];
    ld.global.s16 %rd2, [%rd1+2];
    ld.global.u8 %rs1, [%rd1+3];
    mov.u32 %r3, 0x12345678;
    st.global.u8 [%rd1+32], %r3;
    st.global.u16 [%rd1+34], %r3;
    st.global.v2.u32 [%rd1+8], {%r1, %r2};
    st.global.u64 [%rd1+16], %rd2;
    st.global.u16 [%rd1+24], %rs1;)");
  CHECK(machine.word(2) == 0xffffff81);
  CHECK(machine.word(3) == 0x81);
  CHECK(machine.double_word(2) == 0xffffffffffff80ffull);
  CHECK(machine.word(6) == 0x80);
  CHECK(machine.word(8) == 0x56780078);
}

TEST_CASE("setp combines its comparison, and its opposite, with a predicate") {
  const auto machine = ran(R"(
    setp.eq.u32 %p1, 1, 1;
    setp.lt.and.s32 %p2|%p3, -1, 1, %p1;
    setp.lo.or.u32 %p4|%p5, 2, 1, !%p1;
    setp.hi.xor.u32 %p6|%p7, 0xffffffff, 1, %p1;
    selp.u32 %r2, 1, 0, %p2;
    selp.u32 %r3, 1, 0, %p3;
    selp.u32 %r4, 1, 0, %p4;
    selp.u32 %r5, 1, 0, %p5;
    selp.u32 %r6, 1, 0, %p6;
    selp.u32 %r7, 1, 0, %p7;
    set.lt.u32.s32 %r8, -1, 1;
    set.lt.u32.u32 %r9, -1, 1;
    st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};
    st.global.v4.u32 [%rd1+16], {%r6, %r7, %r8, %r9};)");
  const std::uint32_t expected[] = {1, 0, 0, 1, 0, 1, 0xffffffff, 0};
  for (std::size_t i = 0; i < 8; ++i) {
    CAPTURE(i);
    CHECK(machine.word(i) == expected[i]);
  }
}

TEST_CASE("small operations are made of smaller ones") {
  const auto machine = ran(R"(
    mov.u32 %r1, 10;
    mov.u32 %r2, -7;
    sad.s32 %r3, %r1, %r2, 100;
    sad.u32 %r4, %r1, %r2, 0;
    cnot.b32 %r5, %r1;
    cnot.b32 %r6, 0;
    dp4a.s32.u32 %r7, 0x01ff0203, 0x02030405, 1000;
    neg.s32 %r8, %r1;
    not.b32 %r9, %r1;
    slct.u32.s32 %r10, 3, 4, %r2;
    mov.u32 %r20, 0x7fff0001;
    mov.u32 %r21, 0x0001ffff;
    add.s16x2 %r11, %r20, %r21;
    shl.b32 %r12, %r1, 40;
    st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};
    st.global.v4.u32 [%rd1+16], {%r7, %r8, %r9, %r10};
    st.global.v2.u32 [%rd1+32], {%r11, %r12};)");
  CHECK(machine.word(0) == 117);
  CHECK(machine.word(1) == 0xfffffff9 - 10);
  CHECK(machine.word(2) == 0);
  CHECK(machine.word(3) == 1);
  CHECK(machine.word(4) == 1000 + 1 * 2 - 1 * 3 + 2 * 4 + 3 * 5);
  CHECK(machine.word(5) == static_cast<std::uint32_t>(-10));
  CHECK(machine.word(6) == ~10u);
  CHECK(machine.word(7) == 4);
  CHECK(machine.word(8) == 0x80000000);
  CHECK(machine.word(9) == 0);
}

TEST_CASE(".relu makes negative results of min and max zero, in each half of a word by itself") {
  const auto machine = ran(R"(
    mov.u32 %r1, 0x8000fffe;
    mov.u32 %r2, 0x00037fff;
    min.relu.s32 %r3, -7, 5;
    min.relu.s32 %r4, 7, 5;
    max.relu.s32 %r5, -7, -5;
    min.relu.s16x2 %r6, %r1, %r2;
    max.relu.s16x2 %r7, %r1, %r2;
    min.s16x2 %r8, %r1, %r2;
    max.u16x2 %r9, %r1, %r2;
    st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};
    st.global.v2.u32 [%rd1+16], {%r7, %r8};
    st.global.u32 [%rd1+24], %r9;)");
  const std::uint32_t expected[] = {0, 5, 0, 0, 0x00037fff, 0x8000fffe, 0x8000fffe};
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    CAPTURE(i);
    CHECK(machine.word(i) == expected[i]);
  }
}

TEST_CASE("shifts of numbers by their width or more leave zeros or the sign") {
  const auto machine = ran(R"(
    shr.s32 %r1, -8, 40;
    shr.s32 %r2, 8, 32;
    shr.u32 %r3, -8, 32;
    shl.b32 %r4, -8, 32;
    st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};)");
  CHECK(machine.word(0) == 0xffffffff);
  CHECK(machine.word(1) == 0);
  CHECK(machine.word(2) == 0);
  CHECK(machine.word(3) == 0);
}

TEST_CASE("div.full is another approximation than div.approx") {
  for (const bool full : {false, true}) {
    const auto module = test::lowered(test::kernel_text(std::string("div.") + (full ? "full" : "approx") +
                                                        ".f32 %f1, %f2, %f3;\nst.global.f32 [%rd1], %f1;"));
    const auto which = full ? cpu::ir::Approx::div_full : cpu::ir::Approx::div;
    CHECK(test::first(module.functions[0], cpu::ir::Op::approx).imm == static_cast<std::uint64_t>(which));
  }
}

TEST_CASE("approximations flush subnormals where .ftz says so") {
  for (const char* op : {"rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"}) {
    CAPTURE(op);
    for (const bool ftz : {false, true}) {
      const std::string name = std::string(op) + ".approx" + (ftz ? ".ftz" : "") + ".f32";
      const auto module = test::lowered(test::kernel_text(name + " %f1, %f2;\nst.global.f32 [%rd1], %f1;"));
      CHECK(test::first(module.functions[0], cpu::ir::Op::approx).attr.ftz == ftz);
    }
  }
}

TEST_CASE("mov packs the first element into the low bits and takes words apart the same way") {
  const auto machine = ran(R"(
    mov.b64 %rd2, {0x11111111, 0x22222222};
    mov.b64 {%r1, %r2}, %rd2;
    mov.b64 {_, %r3}, %rd2;
    mov.b32 %r6, 0xaaaabbbb;
    mov.b32 {%rs1, %rs2}, %r6;
    mov.b32 %r4, {%rs2, %rs1};
    mov.b32 %f1, 0x3f800000;
    mov.b32 %r5, %f1;
    st.global.u64 [%rd1], %rd2;
    st.global.v4.u32 [%rd1+16], {%r1, %r2, %r3, %r4};
    st.global.u32 [%rd1+32], %r5;)");
  CHECK(machine.double_word(0) == 0x2222222211111111ull);
  CHECK(machine.word(4) == 0x11111111);
  CHECK(machine.word(5) == 0x22222222);
  CHECK(machine.word(6) == 0x22222222);
  CHECK(machine.word(7) == 0xbbbbaaaa);
  CHECK(machine.word(8) == 0x3f800000);
}
