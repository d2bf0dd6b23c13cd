// SPDX-License-Identifier: Apache-2.0
// Kernels for tests of the code around launches.
#pragma once

namespace quern::test {

/// PTX of `add(x)`, which adds 1 to each element of a block's array of 32-bit integers; `fill(x, value)`,
/// which sets each; `hold(flag)`, which waits until the host sets the flag; `wild()`, which stores to an
/// address that no context has; `endless()`; and the variable `table`, 100 integers.
inline constexpr const char* kSmallKernels = R"(.version 6.0
.target sm_50
.address_size 64
.visible .global .align 4 .b32 table[100];
.visible .entry add(.param .u64 x)
{
  .reg .b32 %r<3>; .reg .b64 %d<3>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %d1, [x];
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r2, [%d1];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%d1], %r2;
  ret;
}
.visible .entry fill(.param .u64 x, .param .u32 value)
{
  .reg .b32 %r<3>; .reg .b64 %d<3>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %d1, [x];
  ld.param.u32 %r2, [value];
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  st.global.u32 [%d1], %r2;
  ret;
}
.visible .entry hold(.param .u64 x)
{
  .reg .pred %p; .reg .b32 %r; .reg .b64 %d;
  ld.param.u64 %d, [x];
again:
  ld.volatile.global.u32 %r, [%d];
  setp.eq.u32 %p, %r, 0;
  @%p bra again;
  ret;
}
.visible .entry wild()
{
  .reg .b64 %d;
  mov.u64 %d, 64;
  st.global.u32 [%d], 1;
  ret;
}
.visible .entry endless()
{
again:
  bra again;
})";

}  // namespace quern::test
