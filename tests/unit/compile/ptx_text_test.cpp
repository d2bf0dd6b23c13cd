// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/ptx_text.hpp"

#include <doctest/doctest.h>

#include "compile/ptx/entries.hpp"

using namespace quern;
using namespace quern::compile;

namespace {
constexpr std::string_view kModule = R"(
// a comment with .entry no(
.version 8.4
.target sm_90a, debug
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.shared .align 8 .b8 used[40];
.shared .align 4 .u32 unused[1000];
.visible .entry first(
	.param .align 8 .b8 first_param_0[12],
	.param .u64 .ptr .global .align 4 first_param_1,
	.param .u8 first_param_2,
	.param .v2 .f32 first_param_3
)
.maxntid 128, 2, 1
.minnctapersm 2
{
	.reg .b64 	%rd<8>;
	.shared .align 16 .b8 own[20];
	mov.u64 %rd1, used;
	call (retval0), helper, (param0);
	ld.shared.f32 %f1, [own];
	.loc 1 3, function_name $L__info_string0, inlined_at 1 4 5
}
.func (.param .b32 out) helper(.param .b32 in)
{
	.shared .align 4 .b8 helpers[8];
	mov.u32 %r1, helpers;
	ret;
}
.entry declared_only(.param .u32 p);
.weak .entry second() .reqntid 64 { ret; }
.entry third { ret; }
	.section	.debug_str
	{
.b8 95 // .entry nothing
	}
)";
}  // namespace

TEST_CASE("version and target are found, and where the version stands") {
  const auto line = find_version(kModule);
  REQUIRE(line);
  CHECK(line->version == PtxVersion{8, 4});
  CHECK(kModule.substr(line->begin, line->end - line->begin) == "8.4");
  CHECK(find_target(kModule) == "sm_90a");
  CHECK_FALSE(find_version(".target sm_80"));
  CHECK_FALSE(find_version(".version eight"));
  CHECK_FALSE(find_version(""));
  CHECK(find_target(".version 8.0 .entry k() {}").empty());
}

TEST_CASE("entries come with parameter layout, limits and static shared memory") {
  const auto entries = read_entries(kModule);
  REQUIRE(entries.size() == 3);
  const abi::EntryInfo& first = entries[0];
  CHECK(first.lowered_name == "first");
  REQUIRE(first.parameters.size() == 4);
  const std::uint32_t offsets[] = {0, 16, 24, 32}, sizes[] = {12, 8, 1, 8}, aligns[] = {8, 8, 1, 8};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(first.parameters[i].offset == offsets[i]);
    CHECK(first.parameters[i].size == sizes[i]);
    CHECK(first.parameters[i].align == aligns[i]);
    CHECK(first.parameters[i].pointer == (i == 1));
  }
  CHECK(first.max_threads == 256);
  // own: 20 bytes, used: 40 at 24, helpers: 8 at 64.
  CHECK(first.static_shared_bytes == 72);
  CHECK(entries[1].lowered_name == "second");
  CHECK(entries[1].max_threads == 64);
  CHECK(entries[1].static_shared_bytes == 0);
  CHECK(entries[2].lowered_name == "third");
  CHECK(entries[2].max_threads == 0);
}

TEST_CASE("qualifiers with colons are one word") {
  PtxTokens tokens("ld.global.L2::cache_hint.f32 L: a::b \"x::y\"");
  CHECK(tokens.next() == "ld.global.L2::cache_hint.f32");
  CHECK(tokens.next() == "L");
  CHECK(tokens.next() == ":");
  CHECK(tokens.next() == "a::b");
  CHECK(tokens.next() == "\"x::y\"");
  CHECK(tokens.next().empty());
}

TEST_CASE("a text that ends anywhere is read without harm") {
  for (std::size_t end = 0; end <= kModule.size(); ++end) {
    (void)read_entries(kModule.substr(0, end));
    (void)find_version(kModule.substr(end));
    (void)read_entries(kModule.substr(end));
  }
}

TEST_CASE("variables are named by the author's name, with name expressions, without internal prefixes") {
  auto variables = read_outline(R"(.version 8.0
.target sm_80
.address_size 64
.extern .global .align 4 .u32 elsewhere;
.visible .const .align 4 .f32 _ZN2ns5tableE[4] = {0f3F800000, 0f00000000, 0f00000000, 0f00000000};
.global .attribute(.managed) .align 8 .u64 shared_value = 9;
.global .attribute(.unified(1, 2)) .align 8 .v2 .f32 two[3];
.weak .global .align 1 .b8 _ZN32_INTERNAL_00000000_4_g_cu_unused2ns34_GLOBAL__N__00000000_4_g_cu_unused4anonE[];
.visible .entry k()
{
  .local .align 4 .b8 depot[16];
  .global .align 4 .u32 inside;
  ret;
}
.global .b32 last = generic(k);
)")
                       .variables;
  name_variables(variables, {{"&ns::table", "_ZN2ns5tableE"}, {" & two", "two"}});
  std::vector<std::string> names;
  for (const abi::VariableInfo& variable : variables) names.push_back(variable.name);
  CHECK(names == std::vector<std::string>{"ns::table", "shared_value", "two", "ns::anon", "last"});
}
