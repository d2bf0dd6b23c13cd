// SPDX-License-Identifier: Apache-2.0
// Conversions that begin with a loaded byte or half, and bits that a shift drops.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;
using cpu::ir::Op;
using cpu::ir::Type;

namespace {

/// The operations between the first load and the store, in their order.
std::vector<Op> between(const cpu::ir::Module& module) {
  std::vector<Op> found;
  bool loaded = false;
  for (const cpu::ir::Block& block : module.functions[0].blocks)
    for (const cpu::ir::Value value : block.insts) {
      const Op op = module.functions[0][value].op;
      if (op == Op::store) return found;
      if (loaded && op != Op::constant) found.push_back(op);
      loaded |= op == Op::load;
    }
  return found;
}

std::vector<Op> left_of(std::string_view body) { return between(test::lowered(test::kernel_text(body))); }

}  // namespace

TEST_CASE("a byte becomes a number of another type by one conversion") {
  CHECK(left_of(R"(
    ld.global.u8 %r1, [%rd1];
    cvt.u16.u32 %rs1, %r1;
    and.b16 %rs2, %rs1, 255;
    cvt.rn.f32.u16 %f1, %rs2;
    st.global.f32 [%rd1], %f1;
    ret;)") == std::vector{Op::u_to_f});
  CHECK(left_of(R"(
    ld.global.s8 %r1, [%rd1];
    cvt.u16.u32 %rs1, %r1;
    cvt.rn.f32.s16 %f1, %rs1;
    st.global.f32 [%rd1], %f1;
    ret;)") == std::vector{Op::s_to_f});
  CHECK(left_of(R"(
    ld.global.u32 %r1, [%rd1];
    cvt.u16.u32 %rs1, %r1;
    st.global.u8 [%rd1], %rs1;
    ret;)") == std::vector{Op::trunc});
  // As an unsigned number, a negative byte is a large number.
  CHECK(left_of(R"(
    ld.global.s8 %r1, [%rd1];
    cvt.rn.f32.u32 %f1, %r1;
    st.global.f32 [%rd1], %f1;
    ret;)") == std::vector{Op::sext, Op::u_to_f});
  // Indices of 32 bits stay, from which addresses are computed best.
  CHECK(left_of(R"(
    ld.global.u8 %r1, [%rd1];
    mul.wide.u32 %rd2, %r1, 4;
    st.global.u64 [%rd1], %rd2;
    ret;)") == std::vector{Op::zext, Op::zext, Op::imul});
}

TEST_CASE("joined conversions give what each gives after the other") {
  struct Case {
    std::string_view load, convert;
    std::uint32_t (*expected)(std::uint32_t number);  ///< of the number that the load widens to 32 bits
  };
  const Case cases[] = {
      {"u8", "cvt.u16.u32 %rs1, %r1; and.b16 %rs2, %rs1, 255; cvt.u32.u16 %r2, %rs2;",
       [](std::uint32_t number) { return number & 0xff; }},
      {"u8", "cvt.u16.u32 %rs1, %r1; and.b16 %rs2, %rs1, 127; cvt.u32.u16 %r2, %rs2;",
       [](std::uint32_t number) { return number & 0x7f; }},
      {"s8", "cvt.u16.u32 %rs1, %r1; and.b16 %rs2, %rs1, 255; cvt.u32.u16 %r2, %rs2;",
       [](std::uint32_t number) { return number & 0xff; }},
      {"s8", "cvt.u16.u32 %rs1, %r1; cvt.u32.u16 %r2, %rs1;",
       [](std::uint32_t number) { return number & 0xffff; }},
      {"s8", "cvt.u16.u32 %rs1, %r1; cvt.s32.s16 %r2, %rs1;", [](std::uint32_t number) { return number; }},
      {"u16", "cvt.s32.s8 %r2, %r1;",
       [](std::uint32_t number) { return static_cast<std::uint32_t>(static_cast<std::int8_t>(number)); }},
      {"s16", "cvt.u16.u32 %rs1, %r1; cvt.s32.s8 %r2, %rs1;",
       [](std::uint32_t number) { return static_cast<std::uint32_t>(static_cast<std::int8_t>(number)); }},
      {"s16", "and.b32 %r2, %r1, 65535;", [](std::uint32_t number) { return number & 0xffff; }},
      {"u16", "and.b32 %r2, %r1, 131071;", [](std::uint32_t number) { return number; }},
  };
  for (const Case& each : cases) {
    CAPTURE(each.load);
    CAPTURE(each.convert);
    const cpu::ir::Module module = test::lowered(test::kernel_text(fmt::format(
        "ld.global.{} %r1, [%rd1]; {} st.global.u32 [%rd1+4], %r2; ret;", each.load, each.convert)));
    for (const std::uint32_t loaded :
         {0u, 1u, 0x7fu, 0x80u, 0xffu, 0x7fffu, 0x8000u, 0x80ffu, 0xff7fu, 0xffffu}) {
      test::IrInterpreter machine(module);
      machine.global[0] = static_cast<std::uint8_t>(loaded);
      machine.global[1] = static_cast<std::uint8_t>(loaded >> 8);
      machine.run();
      const std::uint32_t number =
          each.load == "u8"    ? loaded & 0xff
          : each.load == "s8"  ? static_cast<std::uint32_t>(static_cast<std::int8_t>(loaded))
          : each.load == "u16" ? loaded
                               : static_cast<std::uint32_t>(static_cast<std::int16_t>(loaded));
      REQUIRE(machine.word(1) == each.expected(number));
    }
  }
}

TEST_CASE("bits that a shift drops are not set before it") {
  const auto shifted = [](std::string_view shift, std::uint32_t set) {
    return test::kernel_text(
        fmt::format("ld.global.u32 %r1, [%rd1]; or.b32 %r2, %r1, {}; {} %r3, %r2, 5; st.global.u32 [%rd1+4], "
                    "%r3; ret;",
                    set, shift));
  };
  for (const std::string_view shift : {"shr.u32", "shr.s32"}) {
    CAPTURE(shift);
    CHECK(left_of(
              "ld.global.u32 %r1, [%rd1]; or.b32 %r2, %r1, 31; shr.s32 %r3, %r2, 5; st.global.u32 [%rd1+4], "
              "%r3; ret;") == std::vector{Op::ashr});
    for (const std::uint32_t set : {1u, 31u, 32u, 33u, 0x80000000u})
      for (const std::uint32_t number : {0u, 5u, 0x7fffffffu, 0x80000000u, 0xffffffe0u}) {
        const cpu::ir::Module module = test::lowered(shifted(shift, set));
        test::IrInterpreter machine(module);
        for (unsigned byte = 0; byte < 4; ++byte)
          machine.global[byte] = static_cast<std::uint8_t>(number >> 8 * byte);
        machine.run();
        const std::uint32_t with = number | set;
        const std::uint32_t expected =
            shift == "shr.u32" ? with >> 5 : static_cast<std::uint32_t>(static_cast<std::int32_t>(with) >> 5);
        REQUIRE(machine.word(1) == expected);
      }
  }
}
