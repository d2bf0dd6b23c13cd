// SPDX-License-Identifier: Apache-2.0
// PTX of small kernels k(p), which the benchmarks of growth launch on grids of all sizes.
#pragma once

#include <fmt/format.h>

#include <string>

namespace quern::bench {

inline std::string entry(const std::string& name, const std::string& body) {
  return fmt::format(
      ".visible .entry {}(.param .u64 p) {{\n.reg .b32 %r<8>;\n.reg .f32 %f<8>;\n.reg .b64 %a, %b;\n.reg "
      ".pred %p0;\n"
      "ld.param.u64 %b, [p];\ncvta.to.global.u64 %b, %b;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n"
      "mov.u32 %r2, %ntid.x;\n{}ret;\n}}\n",
      name, body);
}
inline std::string module_of(const std::string& entries) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + entries;
}
/// Each thread stores its block's number; grids of all sizes write to the same 1,024 blocks' places.
inline constexpr const char* kStore =
    "and.b32 %r3, %r1, 1023;\nmad.lo.u32 %r3, %r3, %r2, %r0;\nmul.wide.u32 %a, %r3, 4;\nadd.s64 %a, %b, "
    "%a;\nst.global.u32 [%a], %r1;\n";
/// 4,096 dependent steps of two chains a thread, whose results are stored.
inline constexpr const char* kCompute =
    "cvt.rn.f32.u32 %f0, %r0;\nmov.f32 %f1, %f0;\nmov.u32 %r4, 0;\n$again:\nfma.rn.f32 %f0, %f0, "
    "0f3F7FFFFF, 0f3F800000;\nfma.rn.f32 %f1, %f1, 0f3F7FFFFE, 0f3F800000;\nadd.u32 %r4, %r4, 1;\n"
    "setp.lt.u32 %p0, %r4, 4096;\n@%p0 bra $again;\nadd.f32 %f0, %f0, %f1;\nmad.lo.u32 %r3, %r1, %r2, %r0;\n"
    "and.b32 %r3, %r3, 262143;\nmul.wide.u32 %a, %r3, 4;\nadd.s64 %a, %b, %a;\nst.global.f32 [%a], %f0;\n";
/// Each thread adds 1 to an element.
inline constexpr const char* kStream =
    "mad.lo.u32 %r3, %r1, %r2, %r0;\nmul.wide.u32 %a, %r3, 4;\nadd.s64 %a, %b, %a;\nld.global.f32 %f0, "
    "[%a];\nadd.f32 %f0, %f0, 0f3F800000;\nst.global.f32 [%a], %f0;\n";

}  // namespace quern::bench
