// SPDX-License-Identifier: Apache-2.0
#include "helpers.hpp"

namespace quern::ptx::test {
namespace {

// Parses, prints, and parses again: both modules must be equal.
void check_round_trip(const std::string& text) {
  const Module first = parsed(text);
  const std::string printed = print(first);
  const Expected<Module> second = parse(printed, "printed.ptx");
  if (!second) FAIL(to_string(second.errors()) << printed);
  CHECK_MESSAGE(equal_ignoring_positions(first, *second), printed);
}

std::string printed_instruction(std::string_view statement) {
  const Module module = parsed(kernel_text(statement));
  return print(module, module.functions[0], module.functions[0].body[0]);
}

}  // namespace

TEST_CASE("an instruction prints as it is written") {
  for (const char* text :
       {"add.rn.f32 %f1, %f2, %f3", "@!%p1 ld.global.v2.f32 {%f1, _}, [%rd1+-8]",
        "setp.lt.and.s32 %p1|%p2, %r1, -5, !%p3", "prmt.b32.f4e %r1, %r2, %r3, %r4",
        "mov.f32 %f1, 0f3F800000", "mov.f64 %fd1, 0d3FF0000000000000",
        "vmad.s32.s32.s32 %r1, %r2.b3, -%r3.h1, %r4", "vadd2.s32.s32.s32 %r1.h10, %r2.h03, %r3.h11, %r4",
        "vset4.u32.s32.lt.add %r1.b310, %r2.b7052, %r3.b0000, %r4", "vmin4.u32.u32.u32 %r1.b2, %r2, %r3, %r4",
        "ld.param.u64 %rd1, [p+8]", "mov.u32 %r1, %tid.x", "mov.u64 %rd1, 18446744073709551615",
        "mov.u64 %rd1, 5U", "bar.sync 0", "ld.local.u32 %r1, [16]"}) {
    CHECK(printed_instruction(std::string(text) + ";") == text);
  }
}

TEST_CASE("the lowest integer prints as an expression that stays signed") {
  CHECK(printed_instruction("mov.s64 %rd1, -9223372036854775807-1;") ==
        "mov.s64 %rd1, (-9223372036854775807-1)");
}

TEST_CASE("declarations of every kind come back") {
  check_round_trip(
      module_text(".visible .global .attribute(.managed) .align 4 .u32 m = 7; .const .f64 d[2] = {1.5, "
                  "0d7FF8000000000000}; .extern .shared .align 16 .b8 s[];\n"
                  ".global .v4 .f32 v = {1.0, 2.0, 3.0, 4.0}; .global .b32 rows[2][2][3] = {{{1}, {2, 3}}, "
                  "{{4}}}; .weak .global .f32 w = 0.1; .common .global .b32 c;\n"
                  ".func f(); .global .u64 table[3] = {f, generic(m)+4, m}; .global .u8 bytes[2] = {0xff(m), "
                  "0xff00(m+4)}; .func f() { ret; }\n"
                  ".pragma \"nounroll\"; .file 1 \"a b.cu\", 1, 2\n.alias f, f;"));
}

TEST_CASE("variables and functions that refer to later ones come back in their order") {
  check_round_trip(
      module_text(".extern .global .u64 later; .global .u64 a = later; .visible .global .u64 later = 3;"));
  check_round_trip(module_text(".func b(); .func a() { call b; ret; } .func b() { call a; call b; ret; }"));
}

TEST_CASE("vector registers, as parameters too, and variables of bodies come back") {
  check_round_trip(module_text(
      ".func (.reg .v2 .f32 r) f(.reg .v4 .b32 v, .reg .u16 n) { mov.b32 r.x, v.w; ret; }\n"
      ".global .u32 g = 1; .visible .entry k() { .reg .v2 .f32 a<3>; .reg .v4 .b32 b; .global .u32 g = 2; "
      ".const .u64 p[2] = {generic(g), p}; call (a1), f, (b, 7); mov.v2.f32 a2, {a1.y, a1.r}; ret; }"));
}

TEST_CASE("signatures and directives come back") {
  check_round_trip(
      module_text(".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr b, .param .align "
                  "8 .b8 c[24]) .maxntid 16, 8 .minnctapersm 2 .maxclusterrank 8 { ret; }\n"
                  ".weak .func (.reg .f32 r) f(.reg .f32 a, .reg .b32 b) .noreturn { .reg .pred p; mov.f32 "
                  "r, a; trap; }\n"
                  ".extern .func (.param .align 16 .b8 r[16]) g(.param .b32 _, .param .b64 x);"));
}

TEST_CASE("scopes, labels, tables, prototypes, pragmas and lines come back") {
  check_round_trip(
      module_text(".file 1 \"x.cu\"\n.func f() { .reg .b64 p; .reg .b32 x; .loc 1 5 3\n .pragma "
                  "\"nounroll\"; { .reg .b32 x; .reg .pred q<3>; L: setp.eq.b32 q1|_, x, 0; @q1 bra L; }\n"
                  "{ .reg .v2 .f32 x; L: .loc 1 2 1, function_name $s, inlined_at 1 5 3\n mov.f32 x.x, x.y; "
                  "bra L; } pr: .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[8]) .noreturn;\n"
                  ".param .b32 a; .param .align 8 .b8 b[8]; call (a), p, (b), pr; ts: .branchtargets E, E; "
                  ".loc 1 5 3\n brx.idx.uni x, ts; .loc 1 9 9\n E: }\n"
                  ".section .debug_str { $s: .b8 65, 0 }"));
}

TEST_CASE("operands of every kind come back") {
  check_round_trip(kernel_text(
      "mov.b64 {%r1, _}, %rd1; mov.b32 %r1, {%rs1, 5}; shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1; "
      "vote.sync.all.pred %p1, !%p2, WARP_SZ; and.pred %p1, %p2, 1;\n"
      "mov.u32 %r1, WARP_SZ-1; mov.u64 %rd1, p+8; ld.u32 %r1, [%rd1+-4]; mov.s64 %rd1, "
      "-9223372036854775807-1; add.f32 %f1, %f2, 0.1; call %rd1, (); st.global.v2.u32 [%rd1], {1, %r1};"));
}

}  // namespace quern::ptx::test
