// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module/linking.hpp"

namespace quern::cpu::device {

// Interfaces: cuda_device_runtime_api.h, cudaCG*, cudaGraphSetConditional. A grid's handle is the address of
// its workspace, which only cooperative launches have: a size, and at offset 4 the word by which
// cooperative_groups' own grid barrier works too. Block 0 adds what makes the sum of all blocks' arrivals
// flip the word's top bit; the other blocks add 1, and all wait until the bit has changed. Results are
// cudaError_t: 0, or 1 (cudaErrorInvalidValue). The handle of a graph's condition is the address of its
// value.
const std::string_view kDeviceRuntime = R"ptx(
.version 6.3
.target sm_50
.address_size 64

.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<3>;
  ld.param.u32 %r1, [scope];
  setp.eq.s32 %p, %r1, 1;
  mov.u32 %r2, %envreg2;
  mov.u32 %r3, %envreg1;
  mov.b64 %rd1, {%r2, %r3};
  selp.b64 %rd2, %rd1, 0, %p;
  st.param.b64 [result], %rd2;
  ret;
}

.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [handle];
  mov.u32 %r1, 1;
  setp.eq.u64 %p1, %rd1, 0;
  @%p1 bra done;
  bar.sync 0;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %tid.z;
  or.b32 %r2, %r2, %r3;
  or.b32 %r2, %r2, %r4;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra together;
  mov.u32 %r5, %nctaid.x;
  mov.u32 %r6, %nctaid.y;
  mul.lo.u32 %r5, %r5, %r6;
  mov.u32 %r7, %nctaid.z;
  mul.lo.u32 %r5, %r5, %r7;
  mov.u32 %r8, %ctaid.x;
  mov.u32 %r9, %ctaid.y;
  mov.u32 %r10, %ctaid.z;
  or.b32 %r8, %r8, %r9;
  or.b32 %r8, %r8, %r10;
  setp.eq.u32 %p3, %r8, 0;
  mov.u32 %r11, 0x80000001;
  sub.u32 %r11, %r11, %r5;
  selp.b32 %r12, %r11, 1, %p3;
  membar.gl;
  atom.add.u32 %r13, [%rd1+4], %r12;
again:
  ld.volatile.u32 %r14, [%rd1+4];
  xor.b32 %r15, %r14, %r13;
  setp.ge.s32 %p3, %r15, 0;
  @%p3 bra again;
  membar.gl;
together:
  bar.sync 0;
  mov.u32 %r1, 0;
done:
  st.param.b32 [result], %r1;
  ret;
}

.visible .func (.param .b32 result) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [handle];
  mov.u32 %r1, 1;
  setp.eq.u64 %p1, %rd1, 0;
  @%p1 bra done;
  bar.sync 0;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %tid.z;
  or.b32 %r2, %r2, %r3;
  or.b32 %r2, %r2, %r4;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra together;
  mov.u32 %r5, %nctaid.x;
  mov.u32 %r6, %nctaid.y;
  mul.lo.u32 %r5, %r5, %r6;
  mov.u32 %r7, %nctaid.z;
  mul.lo.u32 %r5, %r5, %r7;
  mov.u32 %r8, %ctaid.x;
  mov.u32 %r9, %ctaid.y;
  mov.u32 %r10, %ctaid.z;
  or.b32 %r8, %r8, %r9;
  or.b32 %r8, %r8, %r10;
  setp.eq.u32 %p3, %r8, 0;
  mov.u32 %r11, 0x80000001;
  sub.u32 %r11, %r11, %r5;
  selp.b32 %r12, %r11, 1, %p3;
  membar.gl;
  atom.add.u32 %r13, [%rd1+4], %r12;
again:
  ld.volatile.u32 %r14, [%rd1+4];
  xor.b32 %r15, %r14, %r13;
  setp.ge.s32 %p3, %r15, 0;
  @%p3 bra again;
  membar.gl;
together:
  bar.sync 0;
  mov.u32 %r1, 0;
done:
  st.param.b32 [result], %r1;
  ret;
}

.visible .func (.param .b32 result) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle)
{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [threads];
  ld.param.u64 %rd2, [grids];
  ld.param.u64 %rd3, [handle];
  mov.u32 %r1, 1;
  setp.eq.u64 %p1, %rd3, 0;
  @%p1 bra done;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %ntid.y;
  mul.lo.u32 %r2, %r2, %r3;
  mov.u32 %r4, %ntid.z;
  mul.lo.u32 %r2, %r2, %r4;
  mov.u32 %r5, %nctaid.x;
  mul.lo.u32 %r2, %r2, %r5;
  mov.u32 %r6, %nctaid.y;
  mul.lo.u32 %r2, %r2, %r6;
  mov.u32 %r7, %nctaid.z;
  mul.lo.u32 %r2, %r2, %r7;
  setp.ne.u64 %p2, %rd1, 0;
  @%p2 st.u32 [%rd1], %r2;
  setp.ne.u64 %p3, %rd2, 0;
  @%p3 st.u32 [%rd2], %r1;
  mov.u32 %r1, 0;
done:
  st.param.b32 [result], %r1;
  ret;
}

.visible .func (.param .b32 result) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle)
{
  .reg .pred %p<4>; .reg .b32 %r<14>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [thread];
  ld.param.u64 %rd2, [grid];
  ld.param.u64 %rd3, [handle];
  mov.u32 %r1, 1;
  setp.eq.u64 %p1, %rd3, 0;
  @%p1 bra done;
  mov.u32 %r2, %ctaid.z;
  mov.u32 %r3, %nctaid.y;
  mov.u32 %r4, %ctaid.y;
  mad.lo.u32 %r2, %r2, %r3, %r4;
  mov.u32 %r5, %nctaid.x;
  mov.u32 %r6, %ctaid.x;
  mad.lo.u32 %r2, %r2, %r5, %r6;
  mov.u32 %r7, %ntid.z;
  mov.u32 %r8, %tid.z;
  mad.lo.u32 %r2, %r2, %r7, %r8;
  mov.u32 %r9, %ntid.y;
  mov.u32 %r10, %tid.y;
  mad.lo.u32 %r2, %r2, %r9, %r10;
  mov.u32 %r11, %ntid.x;
  mov.u32 %r12, %tid.x;
  mad.lo.u32 %r2, %r2, %r11, %r12;
  setp.ne.u64 %p2, %rd1, 0;
  @%p2 st.u32 [%rd1], %r2;
  mov.u32 %r1, 0;
  setp.ne.u64 %p3, %rd2, 0;
  @%p3 st.u32 [%rd2], %r1;
done:
  st.param.b32 [result], %r1;
  ret;
}
)ptx";

const std::string_view kConditionSetter = R"ptx(
.version 6.3
.target sm_50
.address_size 64

.visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [handle];
  ld.param.u32 %r1, [value];
  st.volatile.global.u32 [%rd1], %r1;
  ret;
}
)ptx";

}  // namespace quern::cpu::device
