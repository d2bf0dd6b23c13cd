// SPDX-License-Identifier: Apache-2.0
// The version that introduced each feature: NVIDIA, "Parallel Thread Execution ISA", "Release Notes".
#include "compile/ptx/ptx_version.hpp"

#include <doctest/doctest.h>

using namespace quern;
using namespace quern::compile;

namespace {

std::string module(std::string_view body, std::string_view target = "sm_80") {
  return ".version 9.0\n.target " + std::string(target) +
         "\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n" + std::string(body) + "\nret;\n}\n";
}
PtxVersion need(std::string_view body, std::string_view target = "sm_80") {
  const VersionNeed found = version_needed(module(body, target));
  CHECK_MESSAGE(found.known, found.word);
  return found.version;
}

}  // namespace

TEST_CASE("a driver takes PTX up to its release's version") {
  CHECK(version_of_driver(13000) == PtxVersion{9, 0});
  CHECK(version_of_driver(12090) == PtxVersion{8, 8});
  CHECK(version_of_driver(12070) == PtxVersion{8, 6});
  CHECK(version_of_driver(12060) == PtxVersion{8, 5});
  CHECK(version_of_driver(12050) == PtxVersion{8, 5});
  CHECK(version_of_driver(11080) == PtxVersion{7, 8});
  CHECK(version_of_driver(11000) == PtxVersion{7, 0});
  CHECK(version_of_driver(10020) == PtxVersion{0, 0});
}

TEST_CASE("what PTX 7.0 has needs no version") {
  CHECK(need(".reg .b32 %r<4>; .reg .pred %p1;\n mov.u32 %r1, %tid.x; @%p1 bra L;\n@!%p1 add.s32 %r1, %r1, "
             "1; L: bar.sync 0;\n"
             "shfl.sync.bfly.b32 %r2|%p1, %r1, 16, 31, -1; fma.rn.f32 %f1, %f2, %f3, %f4; "
             "ld.global.nc.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];\n"
             "atom.global.cta.add.u32 %r1, [%rd1], 1; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
             "{%f0}, {%r0}, {%r1}, {%f0};\n"
             "lop3.b32 %r1, %r2, %r3, %r4, 0x96; max.s32 %r1, %r2, %r3; vote.sync.ballot.b32 %r1, %p1, -1; "
             "mov.u32 %r1, %dynamic_smem_size;\n"
             ".pragma \"nounroll\";") == PtxVersion{0, 0});
}

TEST_CASE("each newer thing asks for the version that brought it") {
  CHECK(need("", "sm_86") == PtxVersion{7, 1});
  CHECK(need("} .section .debug_str { $L: .b8 95,0 }\n.func f() {") == PtxVersion{7, 2});
  CHECK(need("} .section .debug_info { .b32 $L1-$L0 }\n.func f() {") == PtxVersion{7, 5});
  CHECK(need("", "sm_89") == PtxVersion{7, 8});
  CHECK(need("", "sm_90a") == PtxVersion{8, 0});
  CHECK(need("", "sm_120") == PtxVersion{8, 7});
  CHECK(need("", "sm_88") == PtxVersion{9, 0});
  CHECK(need(".loc 1 3 0, function_name L, inlined_at 1 4 5") == PtxVersion{7, 2});
  CHECK(need("ld.global.L1::evict_last.f32 %f1, [%rd1];") == PtxVersion{7, 4});
  CHECK(need("cp.async.ca.shared.global [%r1], [%rd1], 16;") == PtxVersion{7, 5});
  CHECK(need("bmsk.clamp.b32 %r1, 2, 3;") == PtxVersion{7, 6});
  CHECK(need("cvta.param.u64 %rd1, %rd2;") == PtxVersion{7, 7});
  CHECK(need("griddepcontrol.wait;") == PtxVersion{7, 8});
  CHECK(need("mov.u32 %r1, %cluster_ctarank;") == PtxVersion{7, 8});
  CHECK(need("mov.u32 %r1, %clusterid.x;") == PtxVersion{7, 8});
  CHECK(need("st.shared::cluster.u32 [%r1], 1;") == PtxVersion{7, 8});
  CHECK(need("add.rn.bf16 %h1, %h2, %h3;") == PtxVersion{7, 8});
  CHECK(need("elect.sync %r1|%p1, -1;") == PtxVersion{8, 0});
  CHECK(need("add.u16x2 %r1, %r2, %r3;") == PtxVersion{8, 0});
  CHECK(need("atom.global.v4.f32.add {%f1,%f2,%f3,%f4}, [%rd1], {%f1,%f2,%f3,%f4};") == PtxVersion{8, 1});
  CHECK(need("lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x96, %p2;") == PtxVersion{8, 2});
  CHECK(need("mov.b128 %rq1, {%rd1, %rd2};") == PtxVersion{8, 4});
  CHECK(need("fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4;") == PtxVersion{8, 6});
  CHECK(need("add.f32.f16 %f1, %h1, %f2;") == PtxVersion{8, 6});
  CHECK(need("max.f32 %f1, %f2, %f3, %f4;") == PtxVersion{8, 8});
  CHECK(need("ld.global.v4.f64 {%fd1,%fd2,%fd3,%fd4}, [%rd1];") == PtxVersion{8, 8});
  CHECK(need(".pragma \"used_bytes_mask 0xff\";") == PtxVersion{8, 3});
}

TEST_CASE("a word in no table is of unknown age") {
  for (const char* body : {"frobnicate.f32 %f1, %f2;", "add.hyper.s32 %r1, %r2, %r3;",
                           "mov.u32 %r1, %new_thing;", ".novel 3;", ".pragma \"hurry\";"}) {
    const VersionNeed found = version_needed(module(body));
    CHECK_MESSAGE(!found.known, body);
    CHECK(found.line == 6);
  }
  CHECK_FALSE(version_needed(module("", "sm_500")).known);
}

TEST_CASE("the version is lowered to the driver's where nothing newer is used") {
  std::string ptx = module("add.s32 %r1, %r2, %r3;");
  REQUIRE(fit_to_driver(ptx, 12020));
  CHECK(ptx.starts_with(".version 8.2\n.target sm_80"));
  std::string older = module("add.s32 %r1, %r2, %r3;");
  REQUIRE(fit_to_driver(older, 11010));
  CHECK(older.starts_with(".version 7.1\n"));
}

TEST_CASE("the version stays where the driver is new enough, newer than all, or not known") {
  for (const std::uint32_t driver : {13000u, 13010u, 14000u, 0u}) {
    std::string ptx = module("elect.sync %r1|%p1, -1;");
    REQUIRE(fit_to_driver(ptx, driver));
    CHECK(ptx == module("elect.sync %r1|%p1, -1;"));
  }
  std::string low = ".version 7.0\n.target sm_80\n";
  REQUIRE(fit_to_driver(low, 11080));
  CHECK(low.starts_with(".version 7.0"));
}

TEST_CASE("where something newer is used the message names it, its line and both versions") {
  std::string ptx = module("add.s32 %r1, %r2, %r3;\nelect.sync %r1|%p1, -1;");
  const auto refused = fit_to_driver(ptx, 11080);
  REQUIRE_FALSE(refused);
  CHECK(refused.errors()[0].message ==
        "cannot load PTX 9.0 on a driver for CUDA 11.8, which takes PTX up to 7.8: 'elect' is of PTX 8.0");
  CHECK(refused.errors()[0].span.line == 7);
  CHECK(refused.errors()[0].source_line == "elect.sync %r1|%p1, -1;");
  CHECK(refused.errors()[0].hint.find("update the driver") != std::string::npos);
  CHECK(ptx.starts_with(".version 9.0"));
  std::string any = module("");
  const auto ancient = fit_to_driver(any, 10020);
  REQUIRE_FALSE(ancient);
  CHECK(ancient.errors()[0].message.find("older than CUDA 11.0") != std::string::npos);
}

TEST_CASE("parameters beyond 4352 bytes ask for PTX 8.1") {
  std::string ptx = ".version 9.0\n.target sm_80\n.entry k(.param .align 8 .b8 p[5000]) { ret; }\n";
  CHECK_FALSE(fit_to_driver(ptx, 12000));
  CHECK(fit_to_driver(ptx, 12010));
  CHECK(ptx.starts_with(".version 8.1"));
}
