// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;
using cpu::ir::Op;

namespace {

/// The first word after thread `tid` has run the kernel.
std::uint32_t result(const cpu::ir::Module& module, std::uint32_t tid = 0) {
  test::IrInterpreter machine(module);
  machine.tid_x = tid;
  machine.run();
  return machine.word(0);
}

}  // namespace

TEST_CASE("a guarded arithmetic instruction keeps the old value where its guard is false") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    setp.gt.u32 %p1, %r1, 3;
    mov.u32 %r2, 100;
    @%p1 add.u32 %r2, %r2, 1;
    @!%p1 add.u32 %r2, %r2, 20;
    st.global.u32 [%rd1], %r2;)"));
  CHECK(module.functions[0].blocks.size() == 1);
  CHECK(test::count(module.functions[0], Op::select) == 2);
  CHECK(result(module, 4) == 101);
  CHECK(result(module, 3) == 120);
}

TEST_CASE("neighbouring accesses under one guard share a block, until something changes the guard") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 st.global.u32 [%rd1], 5;
    @%p1 ld.global.u32 %r2, [%rd1];
    @%p1 setp.eq.u32 %p1, %r2, 6;
    @%p1 st.global.u32 [%rd1], 7;)"));
  // The entry, the first guarded block and its alternative, the second guarded block and its alternative, the
  // end.
  CHECK(test::count(module.functions[0], Op::cond_br) == 2);
  CHECK(result(module, 1) == 5);
  CHECK(result(module, 0) == 0);
}

TEST_CASE("exit ends a thread from inside a called function, ret only the function") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a], %r1;
      call (b), f, (a);
      ld.param.b32 %r2, [b]; }
    st.global.u32 [%rd1], %r2;)",
                                                      R"(
.func (.param .b32 result) f(.param .b32 x)
{
  .reg .pred %p<4>; .reg .b32 %r<4>;
  ld.param.b32 %r1, [x];
  setp.eq.u32 %p1, %r1, 7;
  @%p1 exit;
  st.param.b32 [result], 1;
  setp.eq.u32 %p2, %r1, 8;
  @%p2 ret;
  st.param.b32 [result], 2;
})"));
  CHECK(module.functions.size() == 1);
  CHECK(test::count(module.functions[0], Op::ret) == 1);
  CHECK(result(module, 7) == 0);
  CHECK(result(module, 8) == 1);
  CHECK(result(module, 9) == 2);
}

TEST_CASE("brx.idx chooses among its table's labels, which may repeat") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, 10;
    ts: .branchtargets A, B, A, C;
    brx.idx %r1, ts;
    A: add.u32 %r2, %r2, 1; bra C;
    B: add.u32 %r2, %r2, 2;
    C: st.global.u32 [%rd1], %r2;)"));
  CHECK(result(module, 0) == 11);
  CHECK(result(module, 1) == 12);
  CHECK(result(module, 2) == 11);
  CHECK(result(module, 3) == 10);
}

TEST_CASE("a nest of loops with several ways out computes what the PTX says and is in loop-closed form") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    mov.u32 %r9, %tid.x;
  outer:
    mov.u32 %r3, 0;
  inner:
    add.u32 %r2, %r2, %r3;
    add.u32 %r3, %r3, 1;
    setp.eq.u32 %p1, %r2, %r9;
    @%p1 bra done;
    setp.lt.u32 %p2, %r3, 4;
    @%p2 bra inner;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p3, %r1, 3;
    @%p3 bra outer;
  done:
    mad.lo.u32 %r4, %r1, 1000, %r2;
    mad.lo.u32 %r4, %r3, 100, %r4;
    st.global.u32 [%rd1], %r4;)"));
  const auto expected = [](std::uint32_t tid) {
    std::uint32_t a = 0, sum = 0, b = 0;
    for (a = 0; a < 3;) {
      for (b = 0;;) {
        sum += b;
        ++b;
        if (sum == tid) return a * 1000 + sum + b * 100;
        if (b >= 4) break;
      }
      ++a;
    }
    return a * 1000 + sum + b * 100;
  };
  for (std::uint32_t tid = 0; tid < 24; ++tid) {
    CAPTURE(tid);
    CHECK(result(module, tid) == expected(tid));
  }
}

namespace {

/// A 64-bit remainder of %tid.x * 2^31 - 5 and %tid.x + 7, as NVRTC writes it: in 32 bits if both numbers
/// fit.
std::string chosen_remainder(const std::string& test, const std::string& divisor) {
  return "mov.u32 %r9, %tid.x; cvt.u64.u32 %rd2, %r9; add.s64 %rd3, %rd2, 7; shl.b64 %rd2, %rd2, 31;"
         "sub.s64 %rd2, %rd2, 5; or.b64 %rd4, %rd2, %rd3; and.b64 %rd4, %rd4, -4294967296;" +
         test +
         "@%p1 bra short; rem.s64 %rd5, %rd2, %rd3; bra.uni after;"
         "short: cvt.u32.u64 %r1, %rd2; cvt.u32.u64 %r2, " +
         divisor +
         "; rem.u32 %r3, %r1, %r2; cvt.u64.u32 %rd5, %r3;"
         "after: st.global.u64 [%rd1], %rd5;";
}

std::uint64_t remainder_of(const cpu::ir::Module& module, std::uint32_t tid) {
  test::IrInterpreter machine(module);
  machine.tid_x = tid;
  machine.run();
  return machine.double_word(0);
}

}  // namespace

TEST_CASE("a choice between a 32-bit and a 64-bit division is a 64-bit division") {
  const auto module = test::lowered(test::kernel_text(chosen_remainder("setp.eq.s64 %p1, %rd4, 0;", "%rd3")));
  CHECK(test::count(module.functions[0], Op::urem) == 0);
  CHECK(test::count(module.functions[0], Op::srem) == 1);
  CHECK(test::count(module.functions[0], Op::cond_br) == 0);
  for (const std::uint32_t tid : {0u, 1u, 2u, 1000u}) {
    const std::int64_t a = (std::int64_t{tid} << 31) - 5, b = std::int64_t{tid} + 7;
    CHECK(remainder_of(module, tid) == static_cast<std::uint64_t>(a % b));
  }
}

TEST_CASE("a choice between other divisions stays") {
  // The other side of the branch, and another divisor on one side.
  for (const std::string& body : {chosen_remainder("setp.ne.s64 %p1, %rd4, 0;", "%rd3"),
                                  chosen_remainder("setp.eq.s64 %p1, %rd4, 0;", "%rd2")}) {
    const auto module = test::lowered(test::kernel_text(body));
    CHECK(test::count(module.functions[0], Op::cond_br) == 1);
    CHECK(test::count(module.functions[0], Op::urem) == 1);
  }
}

TEST_CASE("a choice between divisions of which the remainder is needed, too") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r9, %tid.x;
    cvt.s64.s32 %rd2, %r9;
    sub.s64 %rd2, %rd2, 5;
    mul.lo.s64 %rd2, %rd2, 3000000019;
    cvt.u64.u32 %rd3, %r9;
    add.s64 %rd3, %rd3, 7;
    or.b64 %rd4, %rd2, %rd3;
    and.b64 %rd4, %rd4, -4294967296;
    setp.eq.s64 %p1, %rd4, 0;
    @%p1 bra short;
    div.s64 %rd5, %rd2, %rd3;
    mul.lo.s64 %rd7, %rd5, %rd3;
    sub.s64 %rd6, %rd2, %rd7;
    bra.uni after;
  short:
    cvt.u32.u64 %r1, %rd3;
    cvt.u32.u64 %r2, %rd2;
    div.u32 %r3, %r2, %r1;
    mul.lo.s32 %r4, %r3, %r1;
    sub.s32 %r4, %r2, %r4;
    cvt.u64.u32 %rd5, %r3;
    cvt.u64.u32 %rd6, %r4;
  after:
    shl.b64 %rd5, %rd5, 10;
    add.s64 %rd5, %rd5, %rd6;
    st.global.u64 [%rd1], %rd5;)"));
  CHECK(test::count(module.functions[0], Op::udiv) == 0);
  CHECK(test::count(module.functions[0], Op::sdiv) == 1);
  CHECK(test::count(module.functions[0], Op::cond_br) == 0);
  for (const std::uint32_t tid : {0u, 5u, 6u, 1000u}) {
    const std::int64_t a = (std::int64_t{tid} - 5) * 3000000019, b = std::int64_t{tid} + 7;
    CHECK(remainder_of(module, tid) == static_cast<std::uint64_t>(a / b * 1024 + a % b));
  }
}

namespace {

/// Stores 7 or %tid.x + 1, by whether %tid.x is less than 3, and nothing if it is 9.
std::string either_store(const std::string& first, const std::string& second) {
  return "mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; mov.u32 %r3, 7;"
         "setp.eq.u32 %p2, %r1, 9; @%p2 bra after; setp.lt.u32 %p1, %r1, 3; @%p1 bra small;" +
         second + "bra.uni after; small:" + first + "after: ret;";
}

}  // namespace

TEST_CASE("stores to one address on both sides of a branch are one store") {
  const auto module = test::lowered(
      test::kernel_text(either_store("st.global.u32 [%rd1+4], %r3;", "st.global.u32 [%rd1+4], %r2;")));
  const cpu::ir::Function& function = module.functions[0];
  CHECK(test::count(function, Op::store) == 1);
  CHECK(test::count(function, Op::select) == 1);
  CHECK(test::count(function, Op::cond_br) == 1);
  for (const std::uint32_t tid : {0u, 2u, 3u, 8u, 9u}) {
    test::IrInterpreter machine(module);
    machine.tid_x = tid;
    machine.run();
    CHECK(machine.word(1) == (tid == 9 ? 0 : tid < 3 ? 7 : tid + 1));
  }
}

TEST_CASE("other stores on the sides of a branch stay there") {
  const std::string plain = "st.global.u32 [%rd1+4], %r3;";
  for (const char* other : {"st.global.u32 [%rd1+8], %r2;", "st.shared.u32 [%rd1+4], %r2;",
                            "st.volatile.global.u32 [%rd1+4], %r2;", "st.global.b16 [%rd1+4], %rs1;",
                            "st.global.u32 [%rd1+4], %r2; ld.volatile.global.u32 %r5, [%rd1+4];"}) {
    CAPTURE(other);
    CHECK(test::count(test::lowered(test::kernel_text(either_store(plain, other))).functions[0], Op::store) ==
          2);
  }
  const std::string ordered = "st.volatile.global.u32 [%rd1+4], %r3;";
  CHECK(test::count(test::lowered(test::kernel_text(either_store(ordered, ordered))).functions[0],
                    Op::store) == 2);
}

TEST_CASE("a loop with two ways back gets one latch and one preheader") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, 0;
    mov.u32 %r2, %tid.x;
    setp.gt.u32 %p1, %r2, 5;
    @%p1 bra L;
    mov.u32 %r1, 10;
  L:
    add.u32 %r1, %r1, 1;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra L;
    add.u32 %r1, %r1, 4;
    setp.lt.u32 %p3, %r1, 40;
    @%p3 bra L;
    st.global.u32 [%rd1], %r1;)"));
  const auto expected = [](std::uint32_t tid) {
    std::uint32_t r = tid > 5 ? 0 : 10;
    for (;;) {
      ++r;
      if ((r & 1) == 0) continue;
      r += 4;
      if (r >= 40) return r;
    }
  };
  CHECK(result(module, 0) == expected(0));
  CHECK(result(module, 6) == expected(6));
}

TEST_CASE("what follows an unconditional end is not there, even if it could not be lowered") {
  const auto module = test::lowered(test::kernel_text(R"(
    st.global.u32 [%rd1], 3;
    ret;
    mov.b32 %r1, %envreg3;
    st.global.u32 [%rd1], %r1;)"));
  CHECK(test::count(module.functions[0], Op::store) == 1);
  CHECK(result(module) == 3);
}

TEST_CASE("a trap ends the launch where it is reached, and no block: what follows is reached by all others") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 5;
    @!%p1 trap;
    st.global.u32 [%rd1], %r1;)"));
  CHECK(test::count(module.functions[0], Op::trap) == 0);
  CHECK(test::count(module.functions[0], Op::host_call) == 1);
  CHECK(result(module, 2) == 2);
}

TEST_CASE("an endless loop is a function without a way to return") {
  const auto module = test::lowered(test::kernel_text("L: st.global.u32 [%rd1], 1; bra L;"));
  CHECK(test::count(module.functions[0], Op::ret) == 0);
}
