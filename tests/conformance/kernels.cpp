// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

namespace quern::conformance {

const char* const kEmptyModule = ".version 7.0\n.target sm_70\n.address_size 64\n";

const char* const kKernels = R"ptx(
.version 7.0
.target sm_70
.address_size 64
.file 9 "src/here.cu"

.visible .global .align 4 .u32 answer = 42;
.visible .global .align 8 .u64 answer_address = generic(answer);
.visible .const .align 4 .f32 table[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 text_message[6] = {97, 32, 61, 61, 32, 0};
.global .align 1 .b8 text_file[5] = {97, 46, 99, 117, 0};
.global .align 1 .b8 text_function[2] = {107, 0};

.visible .entry empty() { ret; }

// out[i] = value for i < n
.visible .entry fill(.param .u64 out, .param .u32 n, .param .u32 value)
{
  .reg .b32 %r<8>; .reg .b64 %rd<5>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  ld.param.u32 %r2, [value];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p, %r6, %r1;
  @%p bra done;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r2;
done:
  ret;
}

// y[i] = a * x[i] + y[i] for i < n
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
  .reg .b32 %r<6>; .reg .b64 %rd<7>; .reg .f32 %f<5>; .reg .pred %p;
  ld.param.u32 %r1, [n];
  ld.param.f32 %f1, [a];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p, %r5, %r1;
  @%p bra done;
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f4, %f1, %f2, %f3;
  st.global.f32 [%rd5], %f4;
done:
  ret;
}

// out[block * 64 + i] = block * 64 + (63 - i), through shared memory and a barrier; blocks of 64
.visible .entry reverse(.param .u64 out)
{
  .reg .b32 %r<10>; .reg .b64 %rd<5>;
  .shared .align 4 .b32 tile[64];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  shl.b32 %r3, %r1, 6;
  add.u32 %r4, %r3, %r2;
  mov.u32 %r5, tile;
  shl.b32 %r6, %r2, 2;
  add.u32 %r6, %r5, %r6;
  st.shared.u32 [%r6], %r4;
  bar.sync 0;
  sub.u32 %r7, 63, %r2;
  shl.b32 %r7, %r7, 2;
  add.u32 %r7, %r5, %r7;
  ld.shared.u32 %r8, [%r7];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r8;
  ret;
}

// out[linear thread] = tid.x + 10 tid.y + 100 tid.z + 1000 * linear block; blocks of 2 x 3 x 2, grid 2 x 2 x 2
.visible .entry shape(.param .u64 out)
{
  .reg .b32 %r<20>; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %ctaid.y;
  mov.u32 %r6, %ctaid.z;
  mov.u32 %r7, %nctaid.x;
  mov.u32 %r8, %nctaid.y;
  mov.u32 %r9, %ntid.x;
  mov.u32 %r10, %ntid.y;
  mov.u32 %r11, %ntid.z;
  mad.lo.u32 %r12, %r6, %r8, %r5;
  mad.lo.u32 %r12, %r12, %r7, %r4;
  mad.lo.u32 %r13, %r3, %r10, %r2;
  mad.lo.u32 %r13, %r13, %r9, %r1;
  mul.lo.u32 %r14, %r9, %r10;
  mul.lo.u32 %r14, %r14, %r11;
  mad.lo.u32 %r15, %r12, %r14, %r13;
  mul.lo.u32 %r16, %r12, 1000;
  add.u32 %r16, %r16, %r1;
  mad.lo.u32 %r16, %r2, 10, %r16;
  mad.lo.u32 %r16, %r3, 100, %r16;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r15, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r16;
  ret;
}

// every thread adds 2 to the counter, and ends after `time` nanoseconds
.visible .entry report(.param .u64 counter, .param .u64 time)
{
  .reg .b64 %rd<5>; .reg .pred %p;
  ld.param.u64 %rd1, [counter];
  ld.param.u64 %rd2, [time];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u64 %rd3, %globaltimer;
  add.u64 %rd2, %rd2, %rd3;
  red.global.add.u32 [%rd1], 1;
  red.global.add.u32 [%rd1], 1;
again:
  mov.u64 %rd4, %globaltimer;
  setp.lt.u64 %p, %rd4, %rd2;
  @%p bra again;
  ret;
}

// *counter += 1 once a thread
.visible .entry count(.param .u64 counter)
{
  .reg .b32 %r<2>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [counter];
  cvta.to.global.u64 %rd2, %rd1;
  atom.global.add.u32 %r1, [%rd2], 1;
  ret;
}

// out[i] = table[i] of constant memory, and answer += 1; one block of 4
.visible .entry read_table(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<7>; .reg .f32 %f<2>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  mov.u64 %rd3, table;
  add.s64 %rd4, %rd3, %rd2;
  ld.const.f32 %f1, [%rd4];
  cvta.to.global.u64 %rd5, %rd1;
  add.s64 %rd6, %rd5, %rd2;
  st.global.f32 [%rd6], %f1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra done;
  ld.global.u32 %r2, [answer];
  add.u32 %r2, %r2, 1;
  st.global.u32 [answer], %r2;
done:
  ret;
}

// parameters of many sizes, packed into out as 64-bit values
.visible .entry many_parameters(.param .u64 out, .param .u8 a, .param .u16 b, .param .u32 c, .param .f64 d, .param .u8 e)
{
  .reg .b16 %h<4>; .reg .b32 %r<2>; .reg .b64 %rd<7>; .reg .f64 %fd<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  ld.param.u8 %h1, [a];
  cvt.u64.u16 %rd3, %h1;
  st.global.u64 [%rd2], %rd3;
  ld.param.u16 %h2, [b];
  cvt.u64.u16 %rd4, %h2;
  st.global.u64 [%rd2+8], %rd4;
  ld.param.u32 %r1, [c];
  cvt.u64.u32 %rd5, %r1;
  st.global.u64 [%rd2+16], %rd5;
  ld.param.f64 %fd1, [d];
  st.global.f64 [%rd2+24], %fd1;
  ld.param.u8 %h3, [e];
  cvt.u64.u16 %rd6, %h3;
  st.global.u64 [%rd2+32], %rd6;
  ret;
}

// *address = 1, whatever the address is
.visible .entry store_to(.param .u64 address)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [address];
  st.u32 [%rd1], 1;
  ret;
}

// Each accesses base + offset, in its own way.
.visible .entry at_uniform(.param .u64 base, .param .u64 offset)
{
  .reg .b64 %rd<4>; .reg .f64 %fd<2>;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [offset];
  add.s64 %rd3, %rd1, %rd2;
  ld.f64 %fd1, [%rd3];
  add.f64 %fd1, %fd1, %fd1;
  st.f64 [%rd3], %fd1;
  ret;
}
.visible .entry at_lanes(.param .u64 base, .param .u64 offset)
{
  .reg .b32 %r<2>; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [offset];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 8;
  add.s64 %rd4, %rd1, %rd2;
  add.s64 %rd4, %rd4, %rd3;
  st.global.u64 [%rd4], %rd3;
  ret;
}
// the offset is in memory, at base
.visible .entry at_loaded(.param .u64 base, .param .u64 offset)
{
  .reg .b32 %r<3>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [offset];
  st.volatile.global.u64 [%rd1], %rd2;
  ld.volatile.global.u64 %rd3, [%rd1];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 8;
  add.s64 %rd5, %rd1, %rd3;
  add.s64 %rd5, %rd5, %rd4;
  ld.global.u64 %rd2, [%rd5];
  st.global.u64 [%rd1], %rd2;
  ret;
}
// only lane 5 is off; the offsets differ between the lanes in no simple way
.visible .entry at_gathered(.param .u64 base, .param .u64 offset)
{
  .reg .b32 %r<3>; .reg .b64 %rd<6>; .reg .pred %p;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [offset];
  mov.u32 %r1, %tid.x;
  xor.b32 %r2, %r1, 21;
  mul.wide.u32 %rd3, %r2, 8;
  add.s64 %rd4, %rd1, %rd3;
  setp.eq.u32 %p, %r1, 5;
  @%p add.s64 %rd4, %rd4, %rd2;
  ld.global.u64 %rd5, [%rd4];
  st.global.u64 [%rd4], %rd5;
  ret;
}
// odd lanes are off, and do not run
.visible .entry at_idle_lanes(.param .u64 base, .param .u64 offset)
{
  .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .pred %p;
  ld.param.u64 %rd1, [base];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 1;
  mul.lo.s32 %r3, %r1, 8;
  add.s32 %r3, %r3, %r2;
  cvt.u64.u32 %rd2, %r3;
  add.s64 %rd3, %rd1, %rd2;
  setp.eq.u32 %p, %r2, 0;
  @%p st.global.u64 [%rd3], %rd2;
  ret;
}
.visible .entry at_vector(.param .u64 base, .param .u64 offset)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [offset];
  add.s64 %rd3, %rd1, %rd2;
  ld.global.v2.u32 {%r1, %r2}, [%rd3];
  st.global.v2.u32 [%rd3], {%r2, %r1};
  ret;
}
.visible .entry at_atomic(.param .u64 base, .param .u64 offset)
{
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [offset];
  add.s64 %rd3, %rd1, %rd2;
  atom.global.add.u64 %rd4, [%rd3], 1;
  ret;
}
.visible .entry at_shared(.param .u64 base, .param .u64 offset)
{
  .shared .align 16 .b8 area[1024];
  .reg .b32 %r<3>; .reg .b64 %rd<6>;
  ld.param.u64 %rd2, [offset];
  mov.u64 %rd1, area;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 8;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd4, %rd4, %rd2;
  st.shared.u64 [%rd4], %rd3;
  ret;
}
.visible .entry at_local(.param .u64 base, .param .u64 offset)
{
  .local .align 16 .b8 area[64];
  .reg .b64 %rd<6>;
  ld.param.u64 %rd5, [base];
  ld.param.u64 %rd2, [offset];
  mov.u64 %rd1, area;
  add.s64 %rd4, %rd1, %rd2;
  st.local.u64 [%rd4], %rd2;
  ld.local.u64 %rd3, [%rd1+8];
  st.global.u64 [%rd5], %rd3;
  ret;
}
// The pointer comes round a loop.
.visible .entry at_rounds(.param .u64 base, .param .u64 offset)
{
  .reg .b32 %r<3>; .reg .b64 %rd<6>; .reg .pred %p;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [offset];
  mov.u32 %r1, 0;
again:
  st.global.u64 [%rd1], %rd2;
  add.s64 %rd1, %rd1, %rd2;
  add.s32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 3;
  @%p bra again;
  ret;
}
// The pointer decides if the first is a multiple of 8; the displacement counts.
.visible .entry at_displacement(.param .u64 base)
{
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [base];
  mov.u64 %rd2, 7;
  st.global.u64 [%rd1+12], %rd2;
  ret;
}
// 8 bytes every 4, so that only every second one is a multiple
.visible .entry at_half_steps(.param .u64 base, .param .u64 offset)
{
  .reg .b32 %r<2>; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [offset];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd2;
  add.s64 %rd4, %rd4, %rd3;
  ld.global.u64 %rd3, [%rd4];
  st.global.u64 [%rd1], %rd3;
  ret;
}
// 8 bytes at base + offset + 4 i, where i of each thread is in memory from base on
.visible .entry at_indices(.param .u64 base, .param .u64 offset)
{
  .reg .b32 %r<3>; .reg .b64 %rd<7>;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [offset];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r2, [%rd4];
  mul.wide.u32 %rd5, %r2, 4;
  add.s64 %rd6, %rd1, %rd2;
  add.s64 %rd6, %rd6, %rd5;
  st.global.u64 [%rd6], %rd5;
  ret;
}
// parameters may be packed
.visible .entry at_packed(.param .u64 base, .param .align 1 .b8 packed[9])
{
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [base];
  ld.param.u64 %rd2, [packed+1];
  st.global.u64 [%rd1], %rd2;
  ret;
}

// Thread `thread` of block `block` stores to nowhere.
.visible .entry at_one_thread(.param .u64 base, .param .u32 block, .param .u32 thread)
{
  .reg .b32 %r<5>; .reg .b64 %rd<2>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [base];
  ld.param.u32 %r1, [block];
  ld.param.u32 %r2, [thread];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %tid.x;
  setp.eq.u32 %p1, %r1, %r3;
  setp.eq.and.u32 %p2, %r2, %r4, %p1;
  @%p2 mov.u64 %rd1, 0;
  st.u32 [%rd1], %r1;
  ret;
}
.visible .entry trap_of_one(.param .u32 block, .param .u32 thread)
{
  .reg .b32 %r<5>; .reg .pred %p<3>;
  ld.param.u32 %r1, [block];
  ld.param.u32 %r2, [thread];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %tid.x;
  setp.eq.u32 %p1, %r1, %r3;
  setp.eq.and.u32 %p2, %r2, %r4, %p1;
  @!%p2 bra done;
  .loc 9 77 3
  trap;
done:
  ret;
}
// (NVIDIA's compiler in CUDA 13.0 crashes where a parameter has the name of another kernel.)
.visible .entry meet_at(.param .u32 id, .param .u32 threads)
{
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [id];
  ld.param.u32 %r2, [threads];
  bar.sync %r1, %r2;
  ret;
}

.visible .entry trap_here() { trap; ret; }

.func nowhere() { ret; }
.global .align 8 .u64 pointers[2] = {nowhere, 0};
.visible .entry call_pointer(.param .u32 which)
{
  .reg .b32 %r<2>; .reg .b64 %rd<4>;
  ld.param.u32 %r1, [which];
  mul.wide.u32 %rd1, %r1, 8;
  mov.u64 %rd2, pointers;
  add.s64 %rd2, %rd2, %rd1;
  ld.global.u64 %rd3, [%rd2];
  prototype: .callprototype ()_ ();
  call %rd3, (), prototype;
  ret;
}

.visible .entry assert_here()
{
  .reg .b64 %rd<7>;
  mov.u64 %rd1, text_message;
  cvta.global.u64 %rd2, %rd1;
  mov.u64 %rd3, text_file;
  cvta.global.u64 %rd4, %rd3;
  mov.u64 %rd5, text_function;
  cvta.global.u64 %rd6, %rd5;
  {
    .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;
    st.param.b64 [m], %rd2;
    st.param.b64 [f], %rd4;
    st.param.b32 [l], 7;
    st.param.b64 [n], %rd6;
    st.param.b64 [c], 1;
    call.uni __assertfail, (m, f, l, n, c);
  }
  ret;
}

.func (.param .b32 result) deep(.param .b32 n)
{
  .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p, %r1, 0;
  mov.u32 %r3, 0;
  @%p bra done;
  add.u32 %r2, %r1, -1;
  {
    .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r2;
    call.uni (b), deep, (a);
    ld.param.b32 %r3, [b];
  }
  add.u32 %r3, %r3, %r1;
done:
  st.param.b32 [result], %r3;
  ret;
}

// *out = 0 + 1 + ... + n by recursion
.visible .entry recurse(.param .u64 out, .param .u32 n)
{
  .reg .b32 %r<3>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  {
    .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call.uni (b), deep, (a);
    ld.param.b32 %r2, [b];
  }
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r2;
  ret;
}

// The same with a word of local memory in every call.
.func (.param .b32 r) deep_local(.param .b32 n)
{
  .local .align 4 .b8 word[4];
  .reg .pred %p<2>; .reg .b32 %r<4>;
  ld.param.u32 %r1, [n];
  st.local.u32 [word], %r1;
  st.param.b32 [r], 0;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 ret;
  sub.u32 %r2, %r1, 1;
  {
    .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r2;
    call.uni (b), deep_local, (a);
    ld.param.b32 %r2, [b];
  }
  ld.local.u32 %r3, [word];
  add.u32 %r2, %r2, %r3;
  st.param.b32 [r], %r2;
  ret;
}
.visible .entry recurse_local(.param .u64 out, .param .u32 n)
{
  .reg .b32 %r<3>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  {
    .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call.uni (b), deep_local, (a);
    ld.param.b32 %r2, [b];
  }
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r2;
  ret;
}
// The same for the number in memory.
.visible .entry recurse_from(.param .u64 out, .param .u64 n)
{
  .reg .b32 %r<3>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [n];
  ld.u32 %r1, [%rd2];
  {
    .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call.uni (b), deep_local, (a);
    ld.param.b32 %r2, [b];
  }
  st.u32 [%rd1], %r2;
  ret;
}

.visible .entry at_most_64() .maxntid 64, 1, 1 { ret; }
)ptx";

}  // namespace quern::conformance
