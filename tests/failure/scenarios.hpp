// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <quern/quern.hpp>

#include <span>
#include <string_view>

namespace quern::failure {

/// Uses some functions of the layer as a program does. Returns true if every value is correct. A driver call
/// that fails may end it with a quern::Error, but must never cause a wrong value.
struct Scenario {
  std::string_view name;
  bool (*run)(const Session& session);
  bool compiles = false;  ///< compiles source with NVRTC
};
std::span<const Scenario> scenarios();

// Defined in c_scenarios.cpp.
bool c_functions(const Session& session);
bool c_memory(const Session& session);

// x[i] += 1 for i < n. It is PTX, so that thousands of rounds need no compiler.
inline constexpr const char* kAddOne = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry add_one(.param .u64 x, .param .u32 n)
{
  .reg .pred %p; .reg .b32 %r<5>; .reg .f32 %f; .reg .b64 %d<3>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  ld.param.u32 %r4, [n];
  setp.ge.u32 %p, %r1, %r4;
  @%p bra done;
  ld.param.u64 %d1, [x];
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.f32 %f, [%d1];
  add.f32 %f, %f, 0f3F800000;
  st.global.f32 [%d1], %f;
done:
  ret;
})";
inline constexpr int kCount = 100;

}  // namespace quern::failure
