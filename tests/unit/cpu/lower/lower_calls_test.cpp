// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;
using cpu::ir::Op;

namespace {

test::IrInterpreter ran(const cpu::ir::Module& module, std::uint32_t tid = 0) {
  test::IrInterpreter machine(module);
  machine.tid_x = tid;
  machine.run();
  return machine;
}

}  // namespace

TEST_CASE("a parameter may be written in other pieces than it is read in") {
  const auto module = test::lowered(test::kernel_text(R"(
    { .param .align 8 .b8 a[16]; .param .align 8 .b8 b[8];
      st.param.b64 [a], 0x1122334455667788;
      st.param.b8 [a+8], 0x99;
      st.param.b8 [a+9], 0xaa;
      st.param.v2.b16 [a+10], {%rs1, %rs2};
      call (b), f, (a);
      ld.param.b16 %rs3, [b+2];
      ld.param.b64 %rd2, [b]; }
    st.global.u64 [%rd1], %rd2;
    st.global.u16 [%rd1+8], %rs3;)",
                                                      R"(
.func (.param .align 8 .b8 result[8]) f(.param .align 8 .b8 x[16])
{
  .reg .b32 %r<4>; .reg .b16 %rs<4>;
  ld.param.b32 %r1, [x+4];
  ld.param.b16 %rs1, [x+8];
  ld.param.b8 %r2, [x+1];
  cvt.u32.u16 %r3, %rs1;
  shl.b32 %r2, %r2, 16;
  or.b32 %r2, %r2, %r3;
  st.param.b32 [result], %r2;
  st.param.b32 [result+4], %r1;
  ret;
})"));
  CHECK(module.functions.size() == 1);
  CHECK(module.functions[0].local_bytes == 0);
  const auto machine = ran(module);
  CHECK(machine.double_word(0) == 0x112233440077aa99ull);
  CHECK((machine.word(2) & 0xffff) == 0x0077);
}

TEST_CASE("vectors of arguments and results keep their elements in order") {
  const auto module = test::lowered(test::kernel_text(R"(
    { .param .align 16 .b8 a[16]; .param .align 16 .b8 b[16];
      st.param.v4.b32 [a], {1, 2, 3, 4};
      call (b), f, (a);
      ld.param.v2.b32 {%r1, %r2}, [b];
      ld.param.v2.b32 {%r3, %r4}, [b+8]; }
    st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};)",
                                                      R"(
.func (.param .align 16 .b8 result[16]) f(.param .align 16 .b8 x[16])
{
  .reg .b32 %r<8>;
  ld.param.v4.b32 {%r1, %r2, %r3, %r4}, [x];
  mad.lo.u32 %r5, %r1, 10, %r2;
  st.param.v2.b32 [result], {%r4, %r3};
  st.param.v2.b32 [result+8], {%r5, %r1};
  ret;
})"));
  const auto machine = ran(module);
  CHECK(machine.word(0) == 4);
  CHECK(machine.word(1) == 3);
  CHECK(machine.word(2) == 12);
  CHECK(machine.word(3) == 1);
}

TEST_CASE("a function that calls itself becomes a function with flat arguments and results") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a], %r1;
      call (b), fib, (a);
      ld.param.b32 %r2, [b]; }
    st.global.u32 [%rd1], %r2;)",
                                                      R"(
.func (.param .b32 result) fib(.param .b32 x)
{
  .reg .pred %p<2>; .reg .b32 %r<8>;
  ld.param.b32 %r1, [x];
  setp.lt.s32 %p1, %r1, 2;
  mov.u32 %r5, %r1;
  @%p1 bra end;
  sub.s32 %r2, %r1, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), fib, (a); ld.param.b32 %r3, [b]; }
  sub.s32 %r2, %r1, 2;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), fib, (a); ld.param.b32 %r4, [b]; }
  add.s32 %r5, %r3, %r4;
end:
  st.param.b32 [result], %r5;
  ret;
})"));
  REQUIRE(module.functions.size() == 2);
  CHECK(module.functions[1].argument_types == std::vector<cpu::ir::Type>{cpu::ir::Type::i32});
  CHECK(module.functions[1].result_types == std::vector<cpu::ir::Type>{cpu::ir::Type::i32});
  CHECK_FALSE(module.functions[1].kernel);
  CHECK(ran(module, 15).word(0) == 610);
}

TEST_CASE("functions that call each other are recursive, what they call besides is inlined") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), even, (a); ld.param.b32 %r2, [b]; }
    st.global.u32 [%rd1], %r2;)",
                                                      R"(
.func (.param .b32 r) odd(.param .b32 x);
.func (.param .b32 r) less(.param .b32 x)
{
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [x]; sub.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret;
}
.func (.param .b32 r) even(.param .b32 x)
{
  .reg .pred %p<2>; .reg .b32 %r<8>;
  ld.param.b32 %r1, [x];
  setp.eq.u32 %p1, %r1, 0;
  st.param.b32 [r], 1;
  @%p1 ret;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), less, (a); ld.param.b32 %r1, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), odd, (a); ld.param.b32 %r2, [b]; }
  st.param.b32 [r], %r2;
  ret;
}
.func (.param .b32 r) odd(.param .b32 x)
{
  .reg .pred %p<2>; .reg .b32 %r<8>;
  ld.param.b32 %r1, [x];
  setp.eq.u32 %p1, %r1, 0;
  st.param.b32 [r], 0;
  @%p1 ret;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), less, (a); ld.param.b32 %r1, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), even, (a); ld.param.b32 %r2, [b]; }
  st.param.b32 [r], %r2;
  ret;
})"));
  CHECK(module.functions.size() == 3);
  CHECK(ran(module, 10).word(0) == 1);
  CHECK(ran(module, 11).word(0) == 0);
}

TEST_CASE("a thread that ends in a recursive function ends its callers, one after the other") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    st.global.u32 [%rd1], 1;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), down, (a); ld.param.b32 %r2, [b]; }
    st.global.u32 [%rd1], %r2;)",
                                                      R"(
.func (.param .b32 r) down(.param .b32 x)
{
  .reg .pred %p<3>; .reg .b32 %r<8>;
  ld.param.b32 %r1, [x];
  setp.eq.u32 %p1, %r1, 13;
  @%p1 exit;
  st.param.b32 [r], 5;
  setp.eq.u32 %p2, %r1, 0;
  @%p2 ret;
  sub.u32 %r1, %r1, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), down, (a); ld.param.b32 %r2, [b]; }
  add.u32 %r2, %r2, 2;
  st.param.b32 [r], %r2;
  ret;
})"));
  CHECK(ran(module, 12).word(0) == 5 + 12 * 2);
  CHECK(ran(module, 20).word(0) == 1);
}

TEST_CASE("parameters in registers are passed as they are") {
  const auto module = test::lowered(test::kernel_text("call (%r1), add3, (4, 5); st.global.u32 [%rd1], %r1;",
                                                      R"(
.func (.reg .u32 sum) add3(.reg .u32 a, .reg .u32 b)
{
  add.u32 sum, a, b;
  add.u32 sum, sum, 3;
  ret;
})"));
  CHECK(ran(module).word(0) == 12);
}

TEST_CASE("a parameter whose address is taken lies in local memory") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    { .param .align 4 .b8 a[12]; .param .b32 i; .param .b32 b;
      st.param.b32 [a], 11; st.param.b32 [a+4], 22; st.param.b32 [a+8], 33; st.param.b32 [i], %r1;
      call (b), pick, (a, i);
      ld.param.b32 %r2, [b]; }
    st.global.u32 [%rd1], %r2;)",
                                                      R"(
.func (.param .b32 r) pick(.param .align 4 .b8 x[12], .param .b32 i)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.b32 %r1, [i];
  mov.u64 %rd1, x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.param.b32 %r2, [%rd1];
  st.param.b32 [r], %r2;
  ret;
})"));
  CHECK(module.functions[0].local_bytes >= 12);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(ran(module, i).word(0) == 11 * (i + 1));
}

TEST_CASE("callees that do not live at the same time share local memory") {
  constexpr const char* kFunction = R"(
{
  .local .align 8 .b8 buffer[24]; .reg .b32 %r<4>;
  ld.param.b32 %r1, [x];
  st.local.u32 [buffer+16], %r1;
  ld.local.u32 %r2, [buffer+16];
  st.param.b32 [r], %r2;
  ret;
})";
  const std::string header = "(.param .b32 x)";
  const auto module = test::lowered(test::kernel_text(
      R"(
    .local .align 4 .b8 mine[4];
    { .param .b32 a; .param .b32 b; st.param.b32 [a], 5; call (b), f, (a); ld.param.b32 %r1, [b]; }
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), g, (a); ld.param.b32 %r1, [b]; }
    st.global.u32 [%rd1], %r1;)",
      ".func (.param .b32 r) f" + header + kFunction + "\n.func (.param .b32 r) g" + header + kFunction));
  CHECK(module.functions[0].local_bytes == 32);
  CHECK(ran(module).word(0) == 5);
}

TEST_CASE("calls that the host carries out get 64-bit arguments") {
  const auto module = test::lowered(test::kernel_text(R"(
    { .param .b64 a; .param .b64 b; st.param.b64 [a], 40; call (b), malloc, (a); ld.param.b64 %rd2, [b]; }
    { .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd2; st.param.b64 [b], 0;
      call (c), vprintf, (a, b); ld.param.b32 %r1, [c]; }
    st.global.u32 [%rd2], %r1;)",
                                                      R"(
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc(.param .b64 a);)"));
  const cpu::ir::Inst& call = test::first(module.functions[0], Op::host_call);
  CHECK(call.imm == static_cast<std::uint64_t>(cpu::ir::HostCall::malloc));
  CHECK(call.type == cpu::ir::Type::i64);
  CHECK(test::operand(module.functions[0], call, 0).imm == 40);
  CHECK(test::count(module.functions[0], Op::host_call) == 2);
}
