// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

namespace quern::conformance {

const char* const kWaitingModule = R"ptx(
.version 7.0
.target sm_70
.address_size 64

// waits until *flag is not 0
.visible .entry spin(.param .u64 flag)
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p;
  ld.param.u64 %rd1, [flag];
again:
  ld.volatile.u32 %r1, [%rd1];
  setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  ret;
}

// block 0 traps; the others wait for ever
.visible .entry abandoned(.param .u64 words)
{
  .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [words];
  mov.u32 %r1, %ctaid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra again;
  trap;
again:
  ld.volatile.u32 %r2, [%rd1];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra again;
  ret;
}

// counts the threads in words[0]; when all blocks have come, words[1 + block] = what the count is
.visible .entry meet(.param .u64 words)
{
  .shared .align 4 .u32 mine;
  .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [words];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %nctaid.x;
  mov.u32 %r4, %ctaid.x;
  mul.lo.s32 %r3, %r3, %r2;
  red.global.add.u32 [%rd1], 1;
  setp.eq.u32 %p1, %r1, 0;
  @!%p1 bra together;
  st.shared.u32 [mine], %r4;
again:
  ld.volatile.global.u32 %r5, [%rd1];
  setp.lt.u32 %p2, %r5, %r3;
  @%p2 bra again;
together:
  bar.sync 0;
  ld.shared.u32 %r6, [mine];
  mul.wide.u32 %rd2, %r6, 4;
  add.u64 %rd3, %rd1, %rd2;
  @%p1 ld.volatile.global.u32 %r5, [%rd1];
  @%p1 st.global.u32 [%rd3+4], %r5;
  ret;
}
)ptx";

}  // namespace quern::conformance
