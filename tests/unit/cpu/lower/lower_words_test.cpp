// SPDX-License-Identifier: Apache-2.0
// 64-bit numbers of which only the low words are read are computed in 32 bits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <string>
#include <vector>

#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;
using cpu::ir::Op;
using cpu::ir::Type;

namespace {

bool is_arithmetic(Op op) {
  constexpr std::array kOps = {Op::iadd, Op::isub, Op::imul, Op::and_,   Op::or_,
                               Op::xor_, Op::shl,  Op::lshr, Op::select, Op::phi};
  return std::ranges::find(kOps, op) != kOps.end();
}

std::size_t count_wide(const cpu::ir::Function& function) {
  std::size_t count = 0;
  for (const cpu::ir::Block& block : function.blocks)
    count += static_cast<std::size_t>(std::ranges::count_if(block.insts, [&](cpu::ir::Value value) {
      return is_arithmetic(function[value].op) && function[value].type == Type::i64;
    }));
  return count;
}

test::IrInterpreter ran(const cpu::ir::Module& module, std::uint32_t tid) {
  test::IrInterpreter machine(module);
  machine.tid_x = tid;
  machine.run();
  return machine;
}

/// %rd2 = tid * 0x9e3779b97f4a7c15
const std::string kSpread = R"(
    mov.u32 %r1, %tid.x;
    cvt.u64.u32 %rd2, %r1;
    mul.lo.u64 %rd2, %rd2, -7046029254386353131;)";

}  // namespace

TEST_CASE("a generator of 32-bit random numbers in 64-bit registers is computed in 32 bits") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %tid.x;
    cvt.u64.u32 %rd2, %r1;
    mov.u32 %r2, 5;
  L:
    shl.b64 %rd3, %rd2, 13;
    and.b64 %rd3, %rd3, 4294967295;
    and.b64 %rd4, %rd2, 4294967295;
    xor.b64 %rd2, %rd3, %rd4;
    shr.u64 %rd3, %rd2, 17;
    xor.b64 %rd2, %rd3, %rd2;
    shl.b64 %rd3, %rd2, 5;
    xor.b64 %rd2, %rd3, %rd2;
    add.u32 %r2, %r2, -1;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra L;
    cvt.u32.u64 %r3, %rd2;
    st.global.u32 [%rd1], %r3;)"));
  CHECK(count_wide(module.functions[0]) == 0);
  for (const std::uint32_t tid : {0u, 1u, 77u, 4000000000u}) {
    std::uint32_t expected = tid;
    for (int round = 0; round < 5; ++round) {
      expected ^= expected << 13;
      expected ^= expected >> 17;
      expected ^= expected << 5;
    }
    CHECK(ran(module, tid).word(0) == expected);
  }
}

TEST_CASE("numbers whose high words are read stay 64 bits wide") {
  struct Reader {
    const char* text;  ///< reads %rd3 = 3 * %rd2; its result is in %rd4
    std::uint64_t (*expected)(std::uint64_t);
  };
  const Reader readers[] = {
      {"shr.u64 %rd4, %rd3, 32;", [](std::uint64_t x) { return x >> 32; }},
      {"shr.s64 %rd4, %rd3, 7; and.b64 %rd4, %rd4, 255;",
       [](std::uint64_t x) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(x) >> 7) & 255; }},
      {"mov.b64 %rd4, %rd3;", [](std::uint64_t x) { return x; }},
      {"and.b64 %rd5, %rd3, 255; or.b64 %rd4, %rd5, %rd3; shr.u64 %rd4, %rd4, 20; and.b64 %rd4, %rd4, "
       "4294967295;",
       [](std::uint64_t x) { return x >> 20 & 0xffffffffu; }},
      {"and.b64 %rd4, %rd3, 0xff00000000;", [](std::uint64_t x) { return x & 0xff00000000u; }},
      {"mul.hi.u64 %rd4, %rd3, 16;", [](std::uint64_t x) { return x >> 60; }},
      {"popc.b64 %r4, %rd3; cvt.u64.u32 %rd4, %r4;",
       [](std::uint64_t x) { return static_cast<std::uint64_t>(std::popcount(x)); }},
      {"setp.lt.u64 %p1, %rd3, 0x100000000; selp.b64 %rd4, 1, 2, %p1;",
       [](std::uint64_t x) { return std::uint64_t{x < 0x100000000u ? 1u : 2u}; }},
      {"rem.u64 %rd4, %rd3, 1000;", [](std::uint64_t x) { return x % 1000; }},
  };
  for (const Reader& reader : readers) {
    const auto module = test::lowered(test::kernel_text(kSpread + "mul.lo.u64 %rd3, %rd2, 3;" + reader.text +
                                                        "st.global.u64 [%rd1], %rd4;"));
    for (const std::uint32_t tid : {1u, 2u, 1234567u})
      CHECK_MESSAGE(ran(module, tid).double_word(0) == reader.expected(tid * 0x9e3779b97f4a7c15u * 3),
                    reader.text);
  }
}

TEST_CASE("shifts by 32 and more leave nothing of a low word") {
  for (const int by : {0, 1, 31, 32, 33, 63, 64, 100}) {
    const auto module = test::lowered(test::kernel_text(kSpread + fmt::format(R"(
    and.b64 %rd3, %rd2, 4294967295;
    shr.u64 %rd4, %rd3, {};
    shl.b64 %rd5, %rd2, {};
    cvt.u32.u64 %r3, %rd4;
    cvt.u32.u64 %r4, %rd5;
    st.global.u32 [%rd1], %r3;
    st.global.u32 [%rd1+4], %r4;)",
                                                                              by, by)));
    const std::uint64_t x = 99 * 0x9e3779b97f4a7c15u;
    const auto machine = ran(module, 99);
    CHECK(machine.word(0) == (by > 63 ? 0 : static_cast<std::uint32_t>((x & 0xffffffffu) >> by)));
    CHECK(machine.word(1) == (by > 63 ? 0 : static_cast<std::uint32_t>(x << by)));
  }
}

namespace {

constexpr unsigned kRegisters = 8, kRounds = 3;

struct Step {
  unsigned kind, to, a, b, by;
};

std::string text_of(const Step& step) {
  static constexpr const char* kTexts[] = {
      "add.u64 %rd{0}, %rd{1}, %rd{2};",
      "sub.u64 %rd{0}, %rd{1}, %rd{2};",
      "mul.lo.u64 %rd{0}, %rd{1}, %rd{2};",
      "and.b64 %rd{0}, %rd{1}, %rd{2};",
      "or.b64 %rd{0}, %rd{1}, %rd{2};",
      "xor.b64 %rd{0}, %rd{1}, %rd{2};",
      "and.b64 %rd{0}, %rd{1}, 4294967295;",
      "and.b64 %rd{0}, %rd{1}, 4294901760;",
      "shl.b64 %rd{0}, %rd{1}, {3};",
      "shr.u64 %rd{0}, %rd{1}, {3};",
      "cvt.u32.u64 %r9, %rd{1}; cvt.u64.u32 %rd{0}, %r9;",
      "cvt.u32.u64 %r9, %rd{1}; cvt.s64.s32 %rd{0}, %r9;",
      "setp.lt.u32 %p2, %r2, {3}; selp.b64 %rd{0}, %rd{1}, %rd{2}, %p2;",
  };
  return fmt::format(fmt::runtime(kTexts[step.kind]), step.to + 10, step.a + 10, step.b + 10, step.by) + "\n";
}

std::uint64_t result_of(const Step& step, std::uint64_t a, std::uint64_t b, unsigned round) {
  switch (step.kind) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b;
    case 3:
      return a & b;
    case 4:
      return a | b;
    case 5:
      return a ^ b;
    case 6:
      return a & 0xffffffffu;
    case 7:
      return a & 0xffff0000u;
    case 8:
      return step.by > 63 ? 0 : a << step.by;
    case 9:
      return step.by > 63 ? 0 : a >> step.by;
    case 10:
      return static_cast<std::uint32_t>(a);
    case 11:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(a)));
    default:
      return round < step.by ? a : b;
  }
}

}  // namespace

TEST_CASE("random chains of 64-bit operations in loops, of which some results are read in full") {
  std::mt19937 random(7);
  const auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  std::size_t wide = 0, steps_in_all = 0;
  for (int program = 0; program < 400; ++program) {
    std::vector<Step> steps(3 + below(15));
    for (Step& step : steps) {
      step = {below(13), below(kRegisters), below(kRegisters), below(kRegisters), below(70)};
      if (step.kind == 12) step.by = below(kRounds + 1);
    }
    const unsigned in_full = below(4) == 0 ? below(kRegisters) : kRegisters;
    std::string body = kSpread + "mov.u32 %r2, 0;\n";
    for (unsigned i = 0; i < kRegisters; ++i) body += fmt::format("add.u64 %rd{}, %rd2, {};\n", i + 10, i);
    body += "L:\n";
    for (const Step& step : steps) body += text_of(step);
    body += fmt::format("add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, {}; @%p1 bra L;\n", kRounds);
    for (unsigned i = 0; i < kRegisters; ++i)
      body += i == in_full
                  ? fmt::format("st.global.u64 [%rd1+{}], %rd{};\n", 8 * i, i + 10)
                  : fmt::format("cvt.u32.u64 %r3, %rd{}; st.global.u32 [%rd1+{}], %r3;\n", i + 10, 8 * i);
    const auto module = test::lowered(test::kernel_text(body));
    wide += count_wide(module.functions[0]);
    steps_in_all += steps.size();

    const std::uint32_t tid = 1 + below(1000);
    std::array<std::uint64_t, kRegisters> registers{};
    for (unsigned i = 0; i < kRegisters; ++i) registers[i] = tid * 0x9e3779b97f4a7c15u + i;
    for (unsigned round = 0; round < kRounds; ++round)
      for (const Step& step : steps)
        registers[step.to] = result_of(step, registers[step.a], registers[step.b], round);
    const auto machine = ran(module, tid);
    for (unsigned i = 0; i < kRegisters; ++i) {
      const std::uint64_t mask = i == in_full ? ~std::uint64_t{0} : 0xffffffffu;
      REQUIRE_MESSAGE(machine.double_word(i) == (registers[i] & mask), body);
    }
  }
  CHECK(wide < steps_in_all / 2);
}
