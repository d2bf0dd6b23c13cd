// SPDX-License-Identifier: Apache-2.0
// What the C programs share. They are written against cuda.h alone.
#pragma once
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                            \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)
#define CHECK(call) REQUIRE((call) == CUDA_SUCCESS)

#define PTX_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

// add: out[i] = a[i] + b[i] for i < count, one thread an element. set: *out = value.
static const char* const kAddPtx __attribute__((unused)) = PTX_HEAD
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 out, .param .u32 count) {\n"
    "  .reg .u64 %rd<8>; .reg .u32 %r<6>; .reg .f32 %f<4>; .reg .pred %p;\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "  mad.lo.u32 %r4, %r1, %r2, %r3; ld.param.u32 %r5, [count];\n"
    "  setp.ge.u32 %p, %r4, %r5; @%p ret;\n"
    "  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [out];\n"
    "  mul.wide.u32 %rd4, %r4, 4; add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, "
    "%rd4;\n"
    "  ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f1, %f2; st.global.f32 [%rd7], "
    "%f3;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry set(.param .u64 out, .param .u32 value) {\n"
    "  .reg .u64 %rd; .reg .u32 %r;\n"
    "  ld.param.u64 %rd, [out]; ld.param.u32 %r, [value]; st.global.u32 [%rd], %r; ret;\n"
    "}\n"
    ".visible .entry increment(.param .u64 out) {\n"
    "  .reg .u64 %rd; .reg .u32 %r<3>;\n"
    "  ld.param.u64 %rd, [out]; ld.global.u32 %r1, [%rd]; add.u32 %r2, %r1, 1; st.global.u32 [%rd], %r2; "
    "ret;\n"
    "}\n"
    ".visible .entry stop() { trap; }\n";

static inline CUcontext begin(void) {
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  return context;
}

static inline CUfunction function(CUmodule* module, const char* name) {
  CUfunction its_function;
  if (*module == NULL) CHECK(cuModuleLoadData(module, kAddPtx));
  CHECK(cuModuleGetFunction(&its_function, *module, name));
  return its_function;
}
