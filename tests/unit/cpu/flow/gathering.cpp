// SPDX-License-Identifier: Apache-2.0
// The tests say which atomic updates a worker gathers, and before which instructions their values must be in
// memory.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "cpu/compiler/passes.hpp"
#include "harness.hpp"
#include "ptx/ptx.hpp"

namespace quern::cpu::test {
namespace {

/// The memory instructions, fences and host calls of the kernel, in the order of the blocks: `g` and the
/// window that gathers it, `b` for a biased update, `s` (some) or `S` (all) and the bits of the windows that
/// are applied before it, or `-`. `places`: with `n` if all blocks update the same elements.
std::string marks_of(const std::string& body, const Specialisation& specialisation, bool places = false) {
  auto module = ptx::parse(R"(
.version 8.0
.target sm_89
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) {
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<3>; .reg .pred %p<3>; .shared .align 4 .b32 s[64];
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mul.lo.u32 %r2, %r2, %r1; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
)" + body + "ret; }");
  REQUIRE(module);
  REQUIRE(ptx::verify(*module));
  Compilation compilation(*module, module->functions[0], "<ptx>", specialisation);
  REQUIRE(run_passes(compilation, Form::builder, Form::cut, {}));
  const ir::Function& function = compilation.module.functions[0];
  std::string text;
  for (const ir::BlockId block : compilation.plans[0].masked.order)
    for (const ir::Value value : function.blocks[block].insts) {
      const ir::Inst& inst = function[value];
      const bool memory = inst.op == ir::Op::load || inst.op == ir::Op::store || inst.op == ir::Op::atomic;
      if (!(memory && inst.attr.space != ir::Space::param) && inst.op != ir::Op::fence) continue;
      if (!text.empty()) text += ' ';
      if (inst.attr.gathers != 0) text += fmt::format("g{}", inst.attr.gathers - 1);
      if (places && inst.attr.same_places) text += 'n';
      if (inst.attr.biased) text += 'b';
      if (inst.attr.settles != 0)
        text += fmt::format("{}{:x}", inst.attr.settles_all ? 'S' : 's', inst.attr.settles);
      if (inst.attr.gathers == 0 && !inst.attr.biased && inst.attr.settles == 0) text += '-';
    }
  return text;
}

std::string marks_of(const std::string& body, bool places = false) {
  Specialisation specialisation;
  specialisation.block = {64, 1, 1};
  return marks_of(body, specialisation, places);
}

}  // namespace

TEST_CASE("relaxed integer updates without a result are gathered, a window for each array and operation") {
  CHECK(marks_of("red.global.add.u32 [%rd4], 1; red.global.add.u32 [%rd4+4], 2;") == "g0 g0");
  CHECK(marks_of("red.global.add.u32 [%rd4], 1; red.global.add.u32 [%rd5], 1;") == "g0 g1");
  CHECK(marks_of("atom.global.max.s32 %r3, [%rd4], 1;") == "g0");  // nothing reads %r3
  CHECK(marks_of("red.relaxed.gpu.global.xor.b64 [%rd4], %rd3; red.and.b32 [%rd5], 1;") == "g0 g1s1");
  CHECK(marks_of("red.global.add.f32 [%rd1], %f1;") == "g0");  // one address
  for (const char* other :
       {"red.release.gpu.global.add.u32 [%rd4], 1;", "red.relaxed.sys.global.add.u32 [%rd4], 1;",
        "red.relaxed.cta.global.add.u32 [%rd4], 1;", "red.shared.add.u32 [s], 1;",
        "red.global.inc.u32 [%rd4], 1;", "red.global.add.f32 [%rd4], %f1;",
        "atom.global.exch.b32 %r3, [%rd4], 1;"}) {
    CAPTURE(other);
    CHECK(marks_of(other) == "-");
  }
  Specialisation alone;
  alone.block = {64, 1, 1};
  alone.alone = true;
  CHECK(marks_of("red.global.add.u32 [%rd4], 1;", alone) == "-");
}

TEST_CASE("neighbours that all blocks update are gathered, and those of one block belong to a worker") {
  const auto with_places = [](const std::string& body) { return marks_of(body, true); };
  const std::string of_thread = "mov.u32 %r3, %tid.x; ", of_row = "mov.u32 %r4, %ctaid.y; ";
  const std::string update =
      "mul.wide.u32 %rd6, %r3, 4; add.s64 %rd7, %rd1, %rd6; red.global.add.u32 [%rd7], 1;";
  CHECK(with_places(of_thread + update) == "g0n");
  CHECK(with_places(of_thread + "add.u32 %r3, %r3, %r1;" + update) == "g0n");
  CHECK(with_places(of_thread + of_row + "mad.lo.u32 %r3, %r4, 64, %r3;" + update) == "b");
  CHECK(with_places(of_thread + "mov.u32 %r4, %ctaid.x; mad.lo.u32 %r3, %r4, 64, %r3;" + update) == "b");
  // The analysis knows nothing where the block's number is data.
  CHECK(with_places("ld.global.nc.u32 %r3, [%rd5];" + update) == "- g0");
  // A loop over more elements than there are threads.
  CHECK(with_places(of_thread + "again:" + update + R"(
  add.u32 %r3, %r3, 64; setp.lt.u32 %p1, %r3, 256; @%p1 bra again;
)") == "g0n");
}

TEST_CASE("what comes after an update applies it, and what comes before does not") {
  const auto after = [](const std::string& access) {
    return marks_of("red.global.add.u32 [%rd4], 1;" + access);
  };
  CHECK(after("ld.global.u32 %r3, [%rd5]; st.global.u32 [%rd5], %r3;") == "g0 s1 s1");
  CHECK(after("ld.global.nc.u32 %r3, [%rd5]; st.shared.u32 [s], %r3;") == "g0 - -");
  CHECK(after("ld.volatile.global.u32 %r3, [%rd5];") == "g0 S1");
  CHECK(after("st.relaxed.gpu.global.u32 [%rd5], 1;") == "g0 S1");
  CHECK(after("st.release.cta.shared.u32 [s], 1;") == "g0 S1");
  CHECK(after("fence.acq_rel.cta;") == "g0 S1");
  CHECK(after("membar.gl;") == "g0 S1");
  CHECK(after("atom.global.add.u32 %r3, [%rd5], 1; st.global.u32 [%rd5], %r3;") == "g0 S1 s1");
  CHECK(after("red.global.min.u32 [%rd5], 1;") == "g0 g1s1");
  CHECK(after("red.relaxed.sys.global.add.u32 [%rd4], 1;") == "g0 -");
  CHECK(marks_of("ld.global.u32 %r3, [%rd5]; fence.acq_rel.gpu; red.global.add.u32 [%rd4], %r3;") ==
        "- - g0");
}

TEST_CASE("an update in a loop is before the accesses of the next round") {
  CHECK(marks_of(R"(
again:
  ld.global.u32 %r3, [%rd5]; add.s64 %rd5, %rd5, 4; red.global.add.u32 [%rd4], %r3;
  sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra again;
)") == "s1 g0");
}

TEST_CASE("a barrier lets other threads continue in code that the update does not lead to") {
  // Half of the warps update, and the others read; all of them pass a barrier of number 1.
  const std::string body = R"(
  mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 0; @%p1 bra reads;
  red.global.add.u32 [%rd4], 1; {} bra done;
reads:
  {} ld.global.u32 %r3, [%rd5]; st.shared.u32 [s], %r3;
done:
)";
  const auto with = [&](const std::string& what) {
    std::string text = body;
    for (std::size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}"))
      text.replace(at, 2, what);
    return marks_of(text);
  };
  CHECK(with("").find('s') == std::string::npos);
  CHECK(with("bar.sync 1;").find("s1") != std::string::npos);
  CHECK(with("bar.warp.sync 0xffffffff;").find("s1") != std::string::npos);
}

}  // namespace quern::cpu::test
