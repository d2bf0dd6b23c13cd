// SPDX-License-Identifier: Apache-2.0
// The error report for invalid PTX: code, place, source line, message, hint.
#include "helpers.hpp"

namespace quern::ptx::test {
namespace {

Diagnostic only_error(const std::string& text) {
  const Diagnostics errors = errors_of(text);
  REQUIRE(errors.size() == 1);
  return errors[0];
}

}  // namespace

TEST_CASE("an error has the file, line, column and source line of the text") {
  const Diagnostic error = only_error(kernel_text("mov.u32 %r1, 0;\n  add.s32 %r1, %r2, %r77;"));
  CHECK(error.severity == Severity::error);
  CHECK(error.code == "ptx-name");
  CHECK(error.span.file == "test.ptx");
  CHECK(error.span.line == 6);
  CHECK(error.span.column == 21);
  CHECK(error.span.end_column == 25);
  CHECK(error.source_line == "  add.s32 %r1, %r2, %r77;");
  CHECK(error.message == "'%r77' is not declared");
}

TEST_CASE("a misspelt instruction is answered with the nearest one") {
  const Diagnostic error = only_error(kernel_text("mvo.u32 %r1, 0;"));
  CHECK(error.code == "ptx-syntax");
  CHECK(error.message == "'mvo' is no PTX instruction");
  CHECK(error.hint == "did you mean 'mov'?");
  CHECK(only_error(kernel_text("mov.u33 %r1, 0;")).hint == "did you mean '.u32'?");
  CHECK(only_error(kernel_text("mov.u32 %r1, %tid.q;")).hint == "did you mean '%tid.x'?");
  CHECK(only_error(kernel_text("zzzzzzzz.u32 %r1, 0;")).hint.empty());
}

TEST_CASE("several errors are reported in one run") {
  const Diagnostics errors =
      errors_of(kernel_text("mvo.u32 %r1, 0;\nadd.s32 %r1, %q2, 1;\nmov.u32 %r1, {5;\nbra nowhere;\nadd.s32 "
                            "%r1, %r2 %r3;\nmov.u32 %r2, 1;"));
  REQUIRE(errors.size() == 5);
  CHECK(errors[0].span.line == 5);
  CHECK(errors[1].span.line == 6);
  CHECK(errors[2].span.line == 7);
  CHECK(errors[3].span.line == 9);
  CHECK(errors[4].span.line == 8);  // labels are resolved at the end of the block
}

TEST_CASE("a forgotten semicolon is one error, and the next line is read") {
  const Diagnostics errors = errors_of(kernel_text("mov.u32 %r1, 0\nmvo.u32 %r1, 0;"));
  REQUIRE(errors.size() == 2);
  CHECK(contains(errors[0].message, "';'"));
  CHECK(errors[0].span.line == 5);
  CHECK(errors[0].span.column == 15);
  CHECK(errors[1].hint == "did you mean 'mov'?");
}

TEST_CASE("errors in one function do not hide those of the next") {
  const Diagnostics errors = errors_of(
      module_text(".func f() {\n foo; }\n.func g(.param .b33 a) { ret; }\n.func h() {\n bar.nonsense; }"));
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].span.line == 5);
  CHECK(errors[1].span.line == 6);
  CHECK(errors[2].span.line == 8);
}

TEST_CASE("there are at most as many errors as the limit says") {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "foo;\n";
  Limits limits;
  limits.max_errors = 7;
  const Expected<Module> module = parse(kernel_text(lines), "test.ptx", limits);
  REQUIRE_FALSE(module);
  CHECK(module.errors().size() == 7);
}

TEST_CASE("text that is no PTX says what PTX starts with") {
  CHECK(contains(errors_of("hello world")[0].message, "'.version'"));
  CHECK(contains(errors_of("")[0].message, "'.version'"));
  CHECK(contains(errors_of(".version 9.0\n")[0].message, "'.target'"));
  CHECK(contains(errors_of(".version nine\n")[0].message, "version such as"));
}

TEST_CASE("unfinished text is an error, not the end") {
  CHECK(contains(errors_of(module_text(".func f() { ret; "))[0].message, "'f' has no end"));
  CHECK(contains(errors_of(module_text(".global .b32 a"))[0].message, "the end of the text"));
  CHECK(contains(errors_of(module_text("/* no end"))[0].message, "comment has no end"));
  CHECK(contains(errors_of(module_text(".section .debug { .b8 1"))[0].message, "section has no end"));
}

TEST_CASE("a minus sign in an address is answered with how to write it") {
  CHECK(contains(only_error(kernel_text("ld.global.u32 %r1, [%rd1-4];")).hint, "+-4"));
}

TEST_CASE("an error's text as a person sees it points at the place") {
  const std::string text = to_string(only_error(kernel_text("add.s32 %r1, %r2, %r77;")));
  CHECK(contains(text, "test.ptx:5:19: error: '%r77' is not declared"));
  CHECK(contains(text, "                      ^~~~"));
}

}  // namespace quern::ptx::test
