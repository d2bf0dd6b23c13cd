// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::failure {

/// PTX of `add(x, value)`, which adds to each element of a block's array of 32-bit integers, and of `wild()`,
/// which stores to an address that no context has.
inline constexpr const char* kKernels = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 x, .param .u32 value)
{
  .reg .b32 %r<4>; .reg .b64 %d<3>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %d1, [x];
  ld.param.u32 %r3, [value];
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r2, [%d1];
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%d1], %r2;
  ret;
}
.visible .entry wild()
{
  .reg .b64 %d;
  mov.u64 %d, 64;
  st.global.u32 [%d], 1;
  ret;
})";

}  // namespace quern::failure
