// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "cpu/lower/instructions/rows.hpp"
#include "support.hpp"

using namespace quern;

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("all unsupported instructions are reported, each with its text, its place and the reason") {
  const Diagnostics errors = test::refusals(test::kernel_text(R"(
    .loc 1 42 7
    movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;
    .loc 1 43 9
    barrier.cluster.wait;
    st.global.u32 [%rd1], %r1;)",
                                                              ".file 1 \"author.cu\""));
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].code == "ptx-unsupported");
  CHECK(errors[0].span.file == "author.cu");
  CHECK(errors[0].span.line == 42);
  CHECK(errors[0].span.column == 7);
  CHECK(contains(errors[0].message, "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2"));
  REQUIRE(errors[0].notes.size() == 1);
  CHECK(errors[0].notes[0].span.file == "test.ptx");
  CHECK(errors[0].notes[0].span.line == 16);
  CHECK(contains(errors[1].message, "'barrier.cluster.wait'"));
  CHECK(contains(errors[1].message, "clusters of several thread blocks are not supported"));
  CHECK(errors[1].span.line == 43);
}

TEST_CASE("of what a header's function does, the author's line is named, and the header's in a note") {
  const Diagnostics errors =
      test::refusals(test::kernel_text(R"(
    .loc 1 3 5
    .loc 2 4815 1, function_name info, inlined_at 1 3 5
    .loc 2 4809 1, function_name info, inlined_at 2 4815 1
    barrier.cluster.wait;
    st.global.u32 [%rd1], %r1;)",
                                       ".file 1 \"author.cu\"\n.file 2 \"lib/header.h\""));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].span.file == "author.cu");
  CHECK(errors[0].span.line == 3);
  REQUIRE(errors[0].notes.size() == 2);
  CHECK(errors[0].notes[1].span.file == "lib/header.h");
  CHECK(contains(errors[0].notes[1].message, "line 4809 of header.h"));
}

TEST_CASE("of what the author's own functions do, their lines are named") {
  const Diagnostics errors = test::refusals(test::kernel_text(R"(
    .loc 1 30 5
    .loc 1 12 1, function_name info, inlined_at 1 30 5
    .loc 2 4809 1, function_name info, inlined_at 1 12 1
    barrier.cluster.wait;
    st.global.u32 [%rd1], %r1;)",
                                                              ".file 1 \"author.cu\"\n.file 2 \"header.h\""));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].span.file == "author.cu");
  CHECK(errors[0].span.line == 12);
}

TEST_CASE("more static shared memory than a block of any GPU may have is refused, with the numbers") {
  const char* const body = R"(
    .loc 1 7 3
    mov.u32 %r1, big;
    st.global.u32 [%rd1], %r1;)";
  const std::string file = ".file 1 \"author.cu\"\n";
  CHECK(test::refusals(test::kernel_text(body, file + ".shared .align 4 .b8 big[49152];")).empty());
  const Diagnostics errors =
      test::refusals(test::kernel_text(body, file + ".shared .align 4 .b8 big[49153];"));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].code == "shared-too-large");
  CHECK(errors[0].span.file == "author.cu");
  CHECK(errors[0].span.line == 7);
  CHECK(contains(errors[0].message, "49153 bytes"));
  CHECK(contains(errors[0].message, "(0xc000)"));
  // Dynamic shared memory has a separate limit, which the launch checks.
  CHECK(test::refusals(test::kernel_text(body, file + ".extern .shared .align 4 .b8 big[];")).empty());
}

TEST_CASE("more local memory than a thread of any GPU may have is refused, soon, whatever its size") {
  const std::string file = ".file 1 \"author.cu\"\n";
  const auto with_array = [&](const char* bytes) {
    return test::refusals(
        test::kernel_text(std::string(".local .align 4 .b8 mine[") + bytes +
                              "];\n.loc 1 7 3\nmov.u32 %r1, mine;\nst.global.u32 [%rd1], %r1;",
                          file));
  };
  CHECK(with_array("524288").empty());
  for (const char* bytes : {"524289", "400000000", "4294967300", "8589934592"}) {
    CAPTURE(bytes);
    const Diagnostics errors = with_array(bytes);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].code == "local-too-large");
    CHECK(errors[0].span.file == "author.cu");
    CHECK(errors[0].span.line == 7);
    CHECK(contains(errors[0].message, "524288 bytes"));
  }
  const Diagnostics passed =
      test::refusals(test::kernel_text("ret;", ".func take(.param .align 8 .b8 all[4294967304]) { ret; }\n"));
  REQUIRE(passed.size() == 1);
  CHECK(contains(passed[0].message, "parameter all of 4294967304 bytes"));
}

TEST_CASE("without the author's place an error stands at the line of the PTX") {
  const Diagnostics errors = test::refusals(test::kernel_text("barrier.cluster.wait;"));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].span.file == "test.ptx");
  CHECK(errors[0].span.line == 14);
  CHECK(errors[0].notes.empty());
}

TEST_CASE("a modifier that would change the meaning is never skipped") {
  const Diagnostics errors =
      test::refusals(test::kernel_text("fma.rn.oob.f16 %rs1, %rs1, %rs2, %rs3; st.global.u16 [%rd1], %rs1;"));
  REQUIRE(errors.size() == 1);
  CHECK(contains(errors[0].message, ".oob"));
}

TEST_CASE("an instruction in a function that is inlined twice is reported once") {
  const Diagnostics errors = test::refusals(test::kernel_text("call f, (); call f, ();", R"(
.func f()
{
  .reg .b32 %r<2>;
  barrier.cluster.wait;
  ret;
})"));
  CHECK(errors.size() == 1);
  CHECK(contains(errors[0].message, "function 'f'"));
}

TEST_CASE("calls without a body and addresses of functions without one are refused by name") {
  const Diagnostics errors = test::refusals(test::kernel_text(R"(
    mov.u64 %rd2, cudaDeviceSynchronize;
    call cudaDeviceSynchronize, ();)",
                                                              R"(
.extern .func cudaDeviceSynchronize();)"));
  REQUIRE(errors.size() == 2);
  CHECK(contains(errors[0].message, "no body for function 'cudaDeviceSynchronize'"));
  CHECK(contains(errors[1].message, "cudaDeviceSynchronize"));
}

TEST_CASE("a vote or shuffle without .sync is refused where it is not defined which lanes take part") {
  const auto refused = [&](const std::string& target) {
    const std::string text = ".version 6.3\n.target " + target +
                             "\n.address_size 64\n.visible .entry k() { .reg .pred %p<2>; .reg .b32 %r<3>; "
                             "vote.ballot.b32 %r1, %p1; shfl.idx.b32 %r2, %r1, 0, 31; ret; }";
    return test::refusals(text);
  };
  CHECK(refused("sm_61").empty());
  const Diagnostics errors = refused("sm_70");
  REQUIRE(errors.size() == 2);
  CHECK(contains(errors[0].message, "without .sync it is not defined which lanes take part"));
}

TEST_CASE("a kernel that is not there is answered with those that are") {
  const Diagnostics errors = test::refusals(test::kernel_text("ret;"), "other");
  REQUIRE(errors.size() == 1);
  CHECK(contains(errors[0].message, "'other'"));
  CHECK(contains(errors[0].hint, "k"));
}

TEST_CASE("functions that multiply by inlining are stopped") {
  std::string functions =
      ".func f0() { .reg .b32 %r<2>; bar.sync 0; bar.sync 0; bar.sync 0; bar.sync 0; ret; }\n";
  for (int i = 1; i < 24; ++i) {
    const std::string callee = "f" + std::to_string(i - 1);
    functions +=
        ".func f" + std::to_string(i) + "() { call " + callee + ", (); call " + callee + ", (); ret; }\n";
  }
  const Diagnostics errors = test::refusals(test::kernel_text("call f23, ();", functions));
  REQUIRE_FALSE(errors.empty());
  CHECK(contains(errors[0].message, "inlined"));
}

TEST_CASE("each form is lowered by the family that its row names, and each row of a family has a form") {
  CHECK(quern::cpu::lower::row_defects() == "");
}
