// SPDX-License-Identifier: Apache-2.0
// Functions that are called as parts of the kernel's graph, run by the interpreter of the IR. The records of
// their activations are in the kernel's local memory.
#include <doctest/doctest.h>

#include "cpu/lower/translate/activations.hpp"
#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;
using cpu::ir::Op;
using cpu::lower::CallForm;

namespace {

std::uint32_t word_of(const cpu::ir::Module& module, std::uint32_t tid) {
  test::IrInterpreter machine(module);
  machine.tid_x = tid;
  machine.run();
  return machine.word(0);
}

cpu::ir::Module lowered(const std::string& text) { return test::lowered(text, "k", CallForm::activations); }

/// A kernel that stores the result of `function` for tid.x.
std::string calls(const std::string& function, const std::string& functions) {
  return test::kernel_text(
      "mov.u32 %r1, %tid.x; st.global.u32 [%rd1], 77; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; "
      "call (b), " +
          function + ", (a); ld.param.b32 %r2, [b]; } st.global.u32 [%rd1], %r2;",
      functions);
}

}  // namespace

TEST_CASE("a function that calls itself twice keeps what it still needs, in the kernel's own graph") {
  const auto module = lowered(calls("fib", R"(
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
  CHECK(module.functions.size() == 1);
  CHECK(test::count(module.functions[0], Op::call) == 0);
  CHECK(module.functions[0].stack_bytes == cpu::lower::kActivationBytes);
  CHECK(module.functions[0].local_bytes == cpu::lower::kActivationBytes);
  CHECK(word_of(module, 0) == 0);
  CHECK(word_of(module, 15) == 610);
}

TEST_CASE(
    "functions that call each other, with a result written before the call and predicates live across it") {
  const auto module = lowered(calls("even", R"(
.func (.param .b32 r) odd(.param .b32 x);
.func (.param .b32 r) even(.param .b32 x)
{
  .reg .pred %p<3>; .reg .b32 %r<8>;
  ld.param.b32 %r1, [x];
  setp.eq.u32 %p1, %r1, 0;
  setp.gt.u32 %p2, %r1, 100;
  st.param.b32 [r], 1000;
  @%p1 ret;
  sub.u32 %r1, %r1, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), odd, (a); ld.param.b32 %r2, [b]; }
  @%p2 ret;
  add.u32 %r2, %r2, 1;
  st.param.b32 [r], %r2;
  ret;
}
.func (.param .b32 r) odd(.param .b32 x)
{
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<3>;
  ld.param.b32 %r1, [x];
  setp.eq.u32 %p1, %r1, 0;
  cvt.u64.u32 %rd1, %r1;
  st.param.b32 [r], 2000;
  @%p1 ret;
  sub.u32 %r1, %r1, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), even, (a); ld.param.b32 %r2, [b]; }
  cvt.u32.u64 %r3, %rd1;
  mad.lo.u32 %r2, %r3, 10000, %r2;
  st.param.b32 [r], %r2;
  ret;
})"));
  CHECK(word_of(module, 0) == 1000);
  // An even activation adds 1, an odd one n times 10,000; 0 returns 1000 to an odd one and 2000 to an even
  // one.
  CHECK(word_of(module, 5) == 2000 + 3 + (4 + 2) * 10000);
  CHECK(word_of(module, 6) == 1000 + 3 + (5 + 3 + 1) * 10000);
  CHECK(word_of(module, 101) == 1000);
}

TEST_CASE("every activation has its own array and its own copy of a parameter whose address is taken") {
  const auto module = lowered(calls("down", R"(
.func (.param .b32 r) down(.param .b32 x)
{
  .local .align 4 .b8 words[8]; .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  mov.u64 %rd1, x;
  ld.param.b32 %r1, [%rd1];
  mov.u64 %rd2, words;
  and.b32 %r2, %r1, 1;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd3, %rd2, %rd3;
  st.local.u32 [words], 0;
  st.local.u32 [words+4], 0;
  st.local.u32 [%rd3], %r1;
  st.param.b32 [r], 0;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 ret;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), down, (a); ld.param.b32 %r3, [b]; }
  ld.local.u32 %r4, [words];
  ld.local.u32 %r5, [words+4];
  ld.param.b32 %r6, [%rd1];
  mad.lo.u32 %r3, %r5, 100, %r3;
  mad.lo.u32 %r3, %r6, 10000, %r3;
  add.u32 %r3, %r3, %r4;
  st.param.b32 [r], %r3;
  ret;
})"));
  // Even numbers count once, odd ones a hundred times, all of them ten thousand times.
  CHECK(word_of(module, 6) == (2 + 4 + 6) + 100 * (1 + 3 + 5) + 10000 * 21);
}

TEST_CASE("a thread that ends in a called function ends") {
  const auto module = lowered(calls("down", R"(
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
  CHECK(word_of(module, 12) == 5 + 12 * 2);
  CHECK(word_of(module, 20) == 77);
}

TEST_CASE("a kernel without called functions is the same in either form") {
  const std::string text = test::kernel_text(
      "{ .param .b32 a; .param .b32 b; st.param.b32 [a], 5; call (b), twice, (a); ld.param.b32 %r1, [b]; } "
      "st.global.u32 [%rd1], %r1;",
      ".func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<2>; ld.param.b32 %r1, [x]; add.u32 %r1, "
      "%r1, %r1; "
      "st.param.b32 [r], %r1; ret; }");
  CHECK(cpu::ir::print(lowered(text)) == cpu::ir::print(test::lowered(text)));
}
