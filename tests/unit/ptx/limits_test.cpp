// SPDX-License-Identifier: Apache-2.0
// Whatever the size, depth or validity of the text, the parser answers soon and uses little memory.

#include "helpers.hpp"

namespace quern::ptx::test {
namespace {

std::string repeated(std::string_view part, std::size_t count) {
  std::string text;
  text.reserve(part.size() * count);
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

bool fails(const std::string& text, const Limits& limits = {}) {
  return !parse(text, "test.ptx", limits).has_value();
}

}  // namespace

TEST_CASE("a count of registers beyond the limit is refused, not allocated") {
  CHECK(fails(kernel_text(".reg .b32 %x<4000000000>;")));
  CHECK(fails(kernel_text(".reg .b32 %x<99999999999999999999>;")));
  Limits few;
  few.max_registers = 3;
  CHECK(fails(kernel_text("add.s32 %r1, %r2, %r3; add.s32 %r4, %r5, %r6;"), few));
}

TEST_CASE("deep nesting is refused with an error") {
  for (const char* open : {"{", "mov.u32 %r1, (", "mov.u32 %r1, -", "mov.u32 %r1, {", "mov.u32 %r1, 1?",
                           "mov.u32 %r1, (.s64)", "tex.1d {%r1}, [p, {"}) {
    CHECK(fails(kernel_text(
        open + repeated(std::string(open).substr(std::string(open).find_last_of(' ') + 1), 200000))));
  }
  CHECK(fails(module_text(".global .b32 a[1] = " + repeated("{", 200000))));
  CHECK(fails(module_text(".section .x " + repeated("{", 200000))));
  CHECK(fails(module_text(".global .attribute" + repeated("(", 200000))));
}

TEST_CASE("a text beyond the limit is refused") {
  Limits small;
  small.max_text_bytes = 100;
  CHECK(fails(kernel_text("ret;"), small));
}

TEST_CASE("huge arrays cost nothing until they are too large") {
  CHECK(parse(module_text(".global .b8 a[1099511627776];")).has_value());
  CHECK(fails(module_text(".global .b8 a[18446744073709551615];")));
  CHECK(fails(module_text(".global .b64 a[4294967296][4294967296];")));
  CHECK(fails(module_text(".global .b8 a[2][1099511627776] = {{1}, {2}};")));
}

TEST_CASE("parameters of a kernel have the limits that ptxas has") {
  const auto verdict = [](const char* version, const char* parameters) {
    const Expected<Module> module =
        parse(std::string(".version ") + version + "\n.target sm_89\n.address_size 64\n.visible .entry k(" +
              parameters + ") { ret; }");
    REQUIRE(module.has_value());
    Module checked = *module;
    return verify(checked).has_value();
  };
  CHECK(verdict("8.0", ".param .align 4 .b8 a[4352]"));
  CHECK_FALSE(verdict("8.0", ".param .align 4 .b8 a[4356]"));
  CHECK(verdict("9.0", ".param .align 4 .b8 a[32764]"));
  CHECK_FALSE(verdict("9.0", ".param .align 4 .b8 a[32768]"));
  CHECK_FALSE(verdict("9.0", ".param .b8 a, .param .align 4 .b8 b[32764]"));
  CHECK_FALSE(verdict("9.0", ".param .align 4 .b8 a[4294967304]"));
}

TEST_CASE("many words, operands and scopes are no trouble") {
  CHECK(fails(kernel_text("add" + repeated(".f32", 1000) + " %f1, %f2, %f3;")));
  CHECK_FALSE(fails(kernel_text("tex.1d " + repeated("%r1, ", 10000) + "%r1;")));
  CHECK_FALSE(fails(kernel_text(repeated("{ .reg .b32 x; L: bra L; }", 5000))));
}

// The next two end within the time limit of the program only if the time grows linearly with the text, not
// quadratically.
TEST_CASE("forty thousand instructions in ten thousand scopes are read") {
  const std::string text =
      kernel_text(repeated("{ .reg .pred p; setp.ge.s32 p, %r1, %r2; @p bra L; ld.global.f32 %f1, [%rd1+4]; "
                           "fma.rn.f32 %f2, %f1, %f3, %f4; L: }\n",
                           10000));
  Expected<Module> module = parse(text);
  REQUIRE(module);
  CHECK(verify(*module));
}

TEST_CASE("labels that nothing finds are all looked for once") {
  CHECK(fails(kernel_text(repeated("{", 900) + repeated("bra nowhere; ", 20000) + repeated("L: }", 900))));
}

}  // namespace quern::ptx::test
