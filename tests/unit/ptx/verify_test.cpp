// SPDX-License-Identifier: Apache-2.0
// Validity of PTX. Expectations follow the text of the PTX ISA, and the verdicts of ptxas 13.0.
#include "helpers.hpp"

namespace quern::ptx::test {

TEST_CASE("a verified instruction knows its form") {
  Module module = parsed(kernel_text("add.rn.f32 %f1, %f2, %f3;"));
  CHECK(module.functions[0].body[0].form == kNoForm);
  REQUIRE(verify(module));
  CHECK(module.functions[0].body[0].form != kNoForm);
}

TEST_CASE("modifiers may stand in any order, types may not") {
  CHECK(accepted("add.sat.ftz.rn.f32 %f1, %f2, %f3;"));
  CHECK(accepted("ld.v2.global.u32 {%r1, %r2}, [%rd1];"));
  CHECK(accepted("cvt.rn.f32.f64 %f1, %fd1;"));
  CHECK_FALSE(accepted("cvt.rn.f64.f32 %fd1, %f1;"));
}

TEST_CASE("a word that does not fit is named") {
  CHECK(first_error("add.rn.s32 %r1, %r2, %r3;") == "'.rn' does not go with 'add.rn.s32'");
  CHECK(first_error("shl.u32 %r1, %r2, %r3;") == "'.u32' does not go with 'shl.u32'");
  CHECK(contains(first_error("div.f32 %f1, %f2, %f3;"), "'div.f32' needs one of '.approx', '.full'"));
  CHECK(contains(first_error("cvt.s32.f32 %r1, %f2;"), "needs one of '.rni'"));
  CHECK(first_error("add.rn.rn.f32 %f1, %f2, %f3;") == "'.rn' does not go with 'add.rn.rn.f32'");
}

TEST_CASE("operands are counted and must be of the right kind") {
  CHECK(contains(first_error("add.s32 %r1, %r2;"), "does not have 2 operands"));
  CHECK(contains(first_error("add.s32 1, %r2, %r3;"), "operand 1 of 'add.s32' must be a register"));
  CHECK(contains(first_error("add.s32 %r1, [%rd1], %r3;"), "operand 2"));
  CHECK(contains(first_error("bra 5;"), "must be a label"));
  CHECK(contains(first_error("lop3.b32 %r1, %r2, %r3, %r4, %r5;"), "must be an integer constant"));
  CHECK(contains(first_error("add.u32 _, %r1, %r2;"), "cannot be '_'"));
  CHECK(accepted("atom.global.add.u32 _, [%rd1], 1;"));
  CHECK(contains(first_error("add.u32 %r1, %tid.x, %r2;"), "special register"));
}

TEST_CASE("register types must go with the instruction's type") {
  CHECK(accepted("add.s32 %r1, %r2, %r3;"));
  CHECK(accepted("add.f32 %r1, %r2, %r3;"));
  CHECK(contains(first_error("add.s32 %f1, %f2, %f3;"), "must go with .s32, but '%f1' is .f32"));
  CHECK(contains(first_error("mov.u32 %f1, %r1;"), "operand 1"));
  CHECK(accepted("mov.b32 %f1, %r1;"));
  CHECK(contains(first_error("mov.b32 %rd1, %r1;"), "operand 1"));
  CHECK(contains(first_error("shl.b32 %r1, %r2, %rs3;"), "operand 3"));
  CHECK(contains(first_error("@%r1 ret;"), "is no predicate"));
}

TEST_CASE("loads, stores and conversions take wider registers, except floating ones") {
  CHECK(accepted("ld.global.u8 %r1, [%rd1];"));
  CHECK(accepted("ld.global.f32 %rd1, [%rd1];"));
  CHECK(accepted("ld.global.b16 %f1, [%rd1];"));
  CHECK_FALSE(accepted("ld.global.u8 %f1, [%rd1];"));
  CHECK_FALSE(accepted("ld.global.f32 %fd1, [%rd1];"));
  CHECK_FALSE(accepted("ld.global.u64 %r1, [%rd1];"));
  CHECK(accepted("st.global.b8 [%rd1], %fd1;"));
  CHECK_FALSE(accepted("st.global.u8 [%rd1], %fd1;"));
  CHECK(accepted("cvt.u8.u32 %rd1, %r2;"));
  CHECK_FALSE(accepted("cvt.rn.f32.s32 %f1, %f2;"));
}

TEST_CASE("constants must be of the instruction's kind") {
  CHECK(accepted("mov.b32 %r1, 0f3F800000;"));
  CHECK_FALSE(accepted("mov.u32 %r1, 0f3F800000;"));
  CHECK_FALSE(accepted("mov.b32 %r1, 1.0;"));
  CHECK(accepted("mov.b64 %rd1, 1.0;"));
  CHECK(accepted("add.f32 %f1, %f2, 0d3FF0000000000000;"));
  CHECK_FALSE(accepted("mov.f32 %f1, 1;"));
  CHECK_FALSE(accepted("add.f16 %rs1, %rs2, 1.0;"));
  CHECK(accepted("and.pred %p1, %p2, 1;"));
  CHECK(contains(first_error("cp.async.cg.shared.global [%r1], [%rd1], 8;"), "must be 16"));
  CHECK(accepted("cp.async.ca.shared.global [%r1], [%rd1], 8;"));
}

TEST_CASE("addresses are integers, and a symbol is accessed in its own space") {
  CHECK(accepted("ld.shared.u32 %r1, [%r2];"));
  CHECK_FALSE(accepted("ld.global.u32 %r1, [%f1];"));
  CHECK(contains(first_error(".shared .b32 s; ld.global.u32 %r1, [s];"), "another state space"));
  CHECK(accepted(".shared .b32 s; ld.shared.u32 %r1, [s];"));
  CHECK(accepted(".shared .b32 s; ld.u32 %r1, [s];"));
  CHECK(contains(first_error("st.param.u32 [p], %r1;"), "cannot be written"));
  CHECK(contains(first_error("ld.global.u32 %r1, [16];"), "plain number"));
}

TEST_CASE("vectors have the length that the instruction says, of elements of one size") {
  CHECK(accepted("ld.global.v2.f32 {%f1, _}, [%rd1];"));
  CHECK_FALSE(accepted("ld.global.v4.f32 {%f1, %f2}, [%rd1];"));
  CHECK_FALSE(accepted("ld.global.f32 {%f1, %f2}, [%rd1];"));
  CHECK(contains(first_error("ld.global.v2.u8 {%rs1, %r2}, [%rd1];"), "different sizes"));
  CHECK(contains(first_error("ld.global.v4.f64 {%fd1, %fd2, %fd3, %fd4}, [%rd1];"), "256 bits"));
  CHECK(accepted("mov.b32 %r1, {%rs1, 5};"));
  CHECK_FALSE(accepted("mov.b32 %r1, {%rs1, %rs2, %rs3};"));
  CHECK_FALSE(accepted("mov.b64 %rd1, {%rs1, %rs2};"));
}

TEST_CASE(
    "a vector register stands where its length and element type fit, and nowhere whole in place of a "
    "scalar") {
  const auto fits = [](const std::string& statement) {
    return accepted(".reg .v2 .b32 h; .reg .v4 .b32 q; .reg .v4 .f32 f; .reg .v4 .b16 s; " + statement);
  };
  CHECK(fits("mov.v4.b32 q, {q.w, q.z, 1, h.x};"));
  CHECK(fits("mov.b64 %rd1, h; mov.b64 h, %rd1; mov.b64 %rd1, s;"));
  CHECK(fits("ld.global.v4.f32 f, [%rd1]; st.global.v2.u32 [%rd1], h;"));
  CHECK_FALSE(fits("mov.b32 %r1, h;"));
  CHECK_FALSE(fits("mov.b64 %rd1, f;"));
  CHECK_FALSE(fits("mov.b64 %rd1, q;"));
  CHECK_FALSE(fits("add.u32 %r1, h, 1;"));
  CHECK_FALSE(fits("ld.global.v2.f32 f, [%rd1];"));
  CHECK_FALSE(fits("mov.b64 %rd1, h.x;"));
  CHECK(contains(first_error(".reg .v4 .f64 x;"), "a vector of 32 bytes is too large; the limit is 16"));
  CHECK(contains(first_error(".reg .v2 .pred x;"), "predicates have no vectors"));
}

TEST_CASE("a vector register is an argument for a parameter of its length") {
  const auto called = [](const std::string& call) {
    return errors_of(module_text(".func (.reg .v2 .f32 r) f(.reg .v4 .b32 v) { ret; }\n.func (.reg .f32 r) "
                                 "g(.reg .b32 v) { ret; }\n.visible .entry k() { .reg .v2 .f32 h; .reg .v4 "
                                 ".f32 q; .reg .f32 a; " +
                                 call + " ret; }"))
        .empty();
  };
  CHECK(called("call (h), f, (q);"));
  CHECK(called("call (h.x), g, (q.w);"));
  CHECK(called("call (_), f, (q);"));
  CHECK_FALSE(called("call (h), f, (h);"));
  CHECK_FALSE(called("call (a), f, (q);"));
  CHECK_FALSE(called("call (h), f, (1);"));
  CHECK_FALSE(called("call (h), g, (a);"));
  CHECK_FALSE(called("call (a), g, (q);"));
}

TEST_CASE("votes and shuffles without .sync are in old versions, and in later ones for targets below sm_70") {
  for (const char* statement : {"vote.all.pred %p1, !%p2;", "vote.ballot.b32 %r1, %p1;",
                                "shfl.up.b32 %r1|%p1, %r2, 1, 0;", "shfl.idx.b32 %r1, %r2, %r3, 31;"}) {
    CAPTURE(statement);
    CHECK(accepted(statement, "sm_60", "9.0"));
    CHECK(accepted(statement, "sm_70", "6.3"));
    CHECK(contains(first_error(statement, "sm_70", "6.4"),
                   "without '.sync' is not in '.version 6.4' and later for '.target sm_70' and higher"));
    CHECK_FALSE(accepted(statement, "sm_89", "8.0"));
  }
  CHECK_FALSE(accepted("vote.all.pred %p1, %p2, %r1;", "sm_60"));
  CHECK(accepted("vote.sync.all.pred %p1, %p2, %r1;", "sm_70", "6.4"));
}

TEST_CASE("mad.f32 without a rounding is in versions before 3.2, and in later ones for targets below sm_20") {
  for (const char* statement : {"mad.f32 %f1, %f2, %f3, %f4;", "mad.sat.f32 %f1, %f2, %f3, %f4;",
                                "mad.ftz.sat.f32 %f1, %f2, %f3, 0f3F800000;"}) {
    CAPTURE(statement);
    CHECK(accepted(statement, "sm_10", "1.4"));
    CHECK(accepted(statement, "sm_13", "9.0"));
    CHECK(accepted(statement, "sm_20", "3.1"));
    CHECK(
        contains(first_error(statement, "sm_20", "3.2"),
                 "without one of '.rn', '.rz', '.rm', '.rp' is not in '.version 3.2' and later for '.target "
                 "sm_20' and higher"));
    CHECK_FALSE(accepted(statement, "sm_89", "9.0"));
  }
  CHECK(accepted("mad.rn.f32 %f1, %f2, %f3, %f4;", "sm_20", "3.2"));
  CHECK_FALSE(accepted("mad.rn.f32 %f1, %f2, %f3, %f4;", "sm_13", "9.0"));
  CHECK(accepted("mad.lo.u32 %r1, %r2, %r3, %r4;", "sm_89", "9.0"));
}

TEST_CASE("a second predicate goes where the instruction has one") {
  CHECK(accepted("setp.eq.u32 %p1|%p2, %r1, %r2;"));
  CHECK(accepted("shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;"));
  CHECK(contains(first_error("add.s32 %r1|%p1, %r2, %r3;"), "cannot be a pair"));
  CHECK(contains(first_error("elect.sync %r1, %r2;"), "must be a pair"));
  CHECK_FALSE(accepted("setp.eq.u32 %p1|%r2, %r1, %r2;"));
}

TEST_CASE("a barrier's constants are a barrier that there is and threads of whole warps") {
  CHECK(first_error("bar.sync 16;") == "there is no barrier 16: they are 0 to 15");
  CHECK(contains(first_error("barrier.cta.red.popc.aligned.u32 %r1, 17, %p1;"), "no barrier 17"));
  CHECK(contains(first_error("bar.sync 1, 33;"), "33 threads cannot meet"));
  CHECK(contains(first_error("bar.red.popc.u32 %r1, 1, 31, %p1;"), "31 threads"));
  CHECK(contains(first_error("bar.arrive 1, 0;"), "cannot be 0"));
  CHECK(accepted("bar.sync 15;"));
  CHECK(accepted("bar.sync 1, 0;"));
  CHECK(accepted("bar.sync 1, 2048;"));
  CHECK(accepted("bar.sync %r1, %r2;"));
  CHECK(accepted("bar.warp.sync 16;"));
}

TEST_CASE("what needs a newer target or version says which") {
  CHECK(first_error("fma.rn.bf16 %rs1, %rs2, %rs3, %rs4;", "sm_75") ==
        "'fma.rn.bf16' needs '.target sm_80' or higher; the module says sm_75");
  CHECK(contains(first_error("fma.rn.bf16 %rs1, %rs2, %rs3, %rs4;", "sm_75", "6.5"), "sm_80"));
  CHECK(first_error("redux.sync.add.s32 %r1, %r2, -1;", "sm_75", "9.0") ==
        "'redux.sync.add.s32' needs '.target sm_80' or higher; the module says sm_75");
  // .version 7.8 supports sm_90; sm_89 needs 8.1.
  CHECK(first_error("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;", "sm_80", "8.8") ==
        "'cvt.rn.satfinite.e4m3x2.f32' needs '.target sm_89' or higher; the module says sm_80");
  CHECK(contains(first_error("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;", "sm_89", "7.8"), "sm_90"));
  CHECK(accepted("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;", "sm_89", "8.1"));
  CHECK(contains(first_error("ld.global.L1::no_allocate.u32 %r1, [%rd1];", "sm_80", "7.0"),
                 "needs '.version 7.4' or later"));
  CHECK(contains(first_error("setmaxnreg.inc.sync.aligned.u32 40;", "sm_90"), "'.target sm_90a'"));
  CHECK(accepted("setmaxnreg.inc.sync.aligned.u32 40;", "sm_90a"));
  CHECK(contains(first_error("ret;", "sm_89", "7.0"), "'.target sm_89' needs '.version 7.8'"));
  CHECK(contains(first_error("ret;", "sm_47", "7.0"), "no architecture"));
}

TEST_CASE("a call must fit what the callee declares") {
  const auto error = [](std::string_view call) {
    const Diagnostics errors =
        errors_of(module_text(".func (.param .b32 r) f(.param .b64 a) { ret; } .func g(.reg .b32 a) { ret; } "
                              ".func h() { .reg .b32 x; .reg .b64 y; .reg .f32 z;\n"
                              ".param .b32 p4; .param .b64 p8; .param .b8 b8[8]; pr: .callprototype (.param "
                              ".b32 _) _ (.param .b64 _);\n" +
                              std::string(call) + " ret; }"));
    return errors.empty() ? std::string() : errors[0].message;
  };
  CHECK(error("call (p4), f, (p8);").empty());
  CHECK(error("call (p4), y, (p8), pr;").empty());
  CHECK(error("call (p4), f, (y);").empty());
  CHECK(error("call g, (x);").empty());
  CHECK(error("call g, (7);").empty());
  CHECK(contains(error("call f, (p8);"), "'f' has 1 return values; this call gives 0"));
  CHECK(contains(error("call (p4), f;"), "'f' has 1 arguments; this call gives 0"));
  CHECK(contains(error("call (p4), f, (p4);"), "argument 1 does not fit"));
  CHECK(contains(error("call (p8), f, (p8);"), "return value 1 does not fit"));
  CHECK(contains(error("call g, (y);"), "argument 1"));
  CHECK(contains(error("call (p4), y, (p8);"), "prototype"));
  CHECK(contains(error("call (p4), z, (p8), pr;"), "integer register"));
}

TEST_CASE("instructions of newer architectures are known by name and refused for this target only") {
  CHECK(contains(first_error("wgmma.fence.sync.aligned;", "sm_89"), "'.target sm_90a'"));
  CHECK(accepted("wgmma.fence.sync.aligned;", "sm_90a"));
  CHECK(contains(first_error("tcgen05.wait::ld.sync.aligned;", "sm_90"), "'.target sm_100a'"));
}

}  // namespace quern::ptx::test
