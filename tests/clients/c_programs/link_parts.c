// SPDX-License-Identifier: Apache-2.0
// Links a kernel with a function of another module, and asks why a link without that function fails.
#include "program.h"

static const char kCaller[] = PTX_HEAD
    ".extern .func (.param .b32 result) triple(.param .b32 value);\n"
    ".visible .entry run(.param .u64 cell) {\n"
    "  .reg .u64 %rd; .reg .b32 %r<3>;\n"
    "  ld.param.u64 %rd, [cell]; ld.global.u32 %r1, [%rd];\n"
    "  { .param .b32 value; .param .b32 result;\n"
    "    st.param.b32 [value], %r1; call.uni (result), triple, (value); ld.param.b32 %r2, [result]; }\n"
    "  st.global.u32 [%rd], %r2; ret;\n"
    "}\n";
static const char kCallee[] = PTX_HEAD
    ".visible .func (.param .b32 result) triple(.param .b32 value) {\n"
    "  .reg .b32 %r<3>;\n"
    "  ld.param.b32 %r1, [value]; mul.lo.s32 %r2, %r1, 3; st.param.b32 [result], %r2; ret;\n"
    "}\n";

int main(void) {
  CUlinkState link;
  CUmodule module;
  CUfunction run;
  CUdeviceptr cell;
  void* image;
  size_t bytes;
  char log[1024] = "";
  int value = 14;
  begin();

  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, (void*)sizeof log};
  CHECK(cuLinkCreate(2, options, values, &link));
  CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void*)kCaller, sizeof kCaller, "caller", 0, NULL, NULL));
  REQUIRE(cuLinkComplete(link, &image, &bytes) != CUDA_SUCCESS);
  REQUIRE(strstr(log, "triple") != NULL);
  CHECK(cuLinkDestroy(link));

  CHECK(cuLinkCreate(0, NULL, NULL, &link));
  CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void*)kCaller, sizeof kCaller, "caller", 0, NULL, NULL));
  CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void*)kCallee, sizeof kCallee, "callee", 0, NULL, NULL));
  CHECK(cuLinkComplete(link, &image, &bytes));
  CHECK(cuModuleLoadData(&module, image));
  CHECK(cuLinkDestroy(link));
  CHECK(cuModuleGetFunction(&run, module, "run"));
  CHECK(cuMemAlloc(&cell, 4));
  CHECK(cuMemcpyHtoD(cell, &value, 4));
  void* arguments[] = {&cell};
  CHECK(cuLaunchKernel(run, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(&value, cell, 4));
  REQUIRE(value == 42);
  return 0;
}
