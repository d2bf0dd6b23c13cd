// SPDX-License-Identifier: Apache-2.0
// Loaded numbers of 8 or 16 bits are compared in that width.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;
using cpu::ir::Op;
using cpu::ir::Type;

namespace {

/// Compares two loaded bytes, or one with a constant.
std::string compare(std::string_view load, std::string_view how, std::string_view other) {
  return test::kernel_text(fmt::format(R"(
    ld.global.{0} %rs1, [%rd1];
    ld.global.{0} %rs2, [%rd1+4];
    setp.{1}16 %p1, %rs1, {2};
    selp.u32 %r1, 1, 0, %p1;
    st.global.u32 [%rd1+8], %r1;
    ret;)",
                                       load, how, other));
}

Type compared(const cpu::ir::Module& module) {
  const cpu::ir::Function& function = module.functions[0];
  return test::operand(function, test::first(function, Op::icmp), 0).type;
}

}  // namespace

TEST_CASE("bytes are compared as bytes, unless a constant does not fit") {
  CHECK(compared(test::lowered(compare("u8", "ne.s", "%rs2"))) == Type::i8);
  CHECK(compared(test::lowered(compare("s8", "lt.s", "%rs2"))) == Type::i8);
  CHECK(compared(test::lowered(compare("u8", "lt.s", "255"))) == Type::i8);
  CHECK(compared(test::lowered(compare("u8", "lt.s", "256"))) == Type::i16);
  CHECK(compared(test::lowered(compare("u8", "gt.s", "-1"))) == Type::i16);
  CHECK(compared(test::lowered(compare("s8", "gt.s", "-1"))) == Type::i8);
  CHECK(compared(test::lowered(compare("s8", "gt.s", "128"))) == Type::i16);
}

TEST_CASE("comparisons of bytes give what those of the widened numbers give") {
  constexpr std::array<int, 6> kBytes{0, 1, 127, 128, 200, 255};
  const auto holds = [](std::string_view how, int a, int b) {
    const std::string_view name = how.substr(0, 2);
    return name == "eq"   ? a == b
           : name == "ne" ? a != b
           : name == "lt" ? a < b
           : name == "le" ? a <= b
           : name == "gt" ? a > b
                          : a >= b;
  };
  for (const std::string_view load : {"u8", "s8"})
    for (const std::string_view how :
         {"eq.s", "ne.u", "lt.s", "lt.u", "le.s", "le.u", "gt.s", "gt.u", "ge.s"}) {
      const cpu::ir::Module module = test::lowered(compare(load, how, "%rs2"));
      for (const int a : kBytes)
        for (const int b : kBytes) {
          CAPTURE(load);
          CAPTURE(how);
          // The numbers as ld widens them, then as the comparison reads 16 bits.
          const auto wide = [&](int byte) {
            const int number = load == "s8" && byte > 127 ? byte - 256 : byte;
            return how.ends_with("u") ? number & 0xffff : number;
          };
          test::IrInterpreter machine(module);
          machine.global[0] = static_cast<std::uint8_t>(a);
          machine.global[4] = static_cast<std::uint8_t>(b);
          machine.run();
          REQUIRE((machine.word(2) == 1) == holds(how, wide(a), wide(b)));
        }
    }
}
