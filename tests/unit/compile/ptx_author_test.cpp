// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/ptx_author.hpp"

#include <doctest/doctest.h>

using namespace quern;
using namespace quern::compile;

namespace {
// As NVRTC writes it. Lines count from that of .version.
constexpr std::string_view kModule = R"(.version 9.0
.target sm_89
.func before()
{
	.loc	1 30 1
	ret;
}
.visible .entry k()
{
	.reg .b32 	%r<5>;
	.loc	1 7 0
	add.s32 	%r1, %r2, %r3;
	.loc	1 10 5
	.loc	2 40 3, function_name $L__info_string1, inlined_at 1 10 5
	.loc	3 50 9, function_name $L__info_string0+20, inlined_at 2 40 3
	ad.s32 %r3, %r4, 1;
	.loc	1 3 3, function_name $L__info_string0, inlined_at 1 10 5
	// begin inline asm
	/* two
lines */ ad.s32 %r3, %r4, 1;
	.loc	9 3 3
	ret;
}
	.file	1 "folder/k.cu"
	.file	2 "helper.cuh"
	.file	3 "deeper.cuh", 1700000000, 400
)";

Span in_kernel_file(std::uint32_t line, std::uint32_t column) { return {"folder/k.cu", line, column, 0}; }
}  // namespace

TEST_CASE("a line of PTX comes from the .loc before it in its function") {
  CHECK(author_place(kModule, 6) == in_kernel_file(30, 1));
  CHECK(author_place(kModule, 12) == in_kernel_file(7, 0));
  CHECK_FALSE(author_place(kModule, 2));
  CHECK_FALSE(author_place(kModule, 10));  // the .loc before it is another function's
}

TEST_CASE("code that was inlined comes from the innermost place in the kernel's file") {
  CHECK(author_place(kModule, 16) == in_kernel_file(10, 5));
  CHECK(author_place(kModule, 20) == in_kernel_file(3, 3));
}

TEST_CASE("a place without a file, and PTX without .loc, have no author") {
  CHECK_FALSE(author_place(kModule, 22));
  CHECK_FALSE(author_place("", 1));
  CHECK_FALSE(author_place(".entry k() {\n ad.s32 ;\n}", 2));
  CHECK_FALSE(author_place(".entry k() {\n .loc\n .loc 1 x, inlined_at , +\n}\n.file", 3));
  CHECK_FALSE(author_place(".entry k() {\n .loc 1 0 0\n ad.s32 ;\n}\n.file 1 \"k.cu\"", 3));
}
