// SPDX-License-Identifier: Apache-2.0
// With QUERN_CPU_TIMEOUT, a kernel that does not end is ended, whatever it is doing, and the process
// continues.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "driver/loader.hpp"

namespace quern {
namespace {

constexpr const char* kModule = R"ptx(
.version 7.0
.target sm_70
.address_size 64

.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 nothing[1] = {0};

// while (true);
.visible .entry forever(.param .u64 out)
{
  .reg .b32 %r<2>;
  mov.u32 %r1, 0;
again:
  add.u32 %r1, %r1, 1;
  bra again;
}

// while (true) with stores and a call that makes no progress
.visible .entry busy(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
again:
  atom.global.add.u32 %r2, [%rd3], %r1;
  bra again;
}

// prints an empty line for ever
.visible .entry prints(.param .u64 out)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  mov.u64 %rd1, nothing;
  cvta.global.u64 %rd1, %rd1;
  mov.u64 %rd2, 0;
again:
  {
    .param .b64 format; .param .b64 arguments; .param .b32 result;
    st.param.b64 [format], %rd1;
    st.param.b64 [arguments], %rd2;
    call (result), vprintf, (format, arguments);
    ld.param.b32 %r1, [result];
  }
  bra again;
}

// while (*out == 0): nobody sets it
.visible .entry waits(.param .u64 out)
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
again:
  ld.volatile.u32 %r1, [%rd1+4000];
  setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  ret;
}

// lane 0 of each warp holds a lock that the others wait for
.visible .entry holds(.param .u64 out)
{
  .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
again:
  atom.global.cas.b32 %r1, [%rd1+4096], 0, 1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra again;
  bar.warp.sync 0xffffffff;
  atom.global.exch.b32 %r1, [%rd1+4096], 0;
  ret;
}

.visible .entry fine(.param .u64 out)
{
  .reg .b32 %r<2>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r1;
  ret;
}
)ptx";

class Device {
 public:
  static Device& get() {
    static Device device;
    return device;
  }

  CUresult run(const char* kernel, unsigned grid, unsigned block) {
    CUcontext context = nullptr;
    REQUIRE(cu_.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(cu_.cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    REQUIRE(cu_.cuModuleLoadData(&module, kModule) == CUDA_SUCCESS);
    REQUIRE(cu_.cuModuleGetFunction(&function, module, kernel) == CUDA_SUCCESS);
    CUdeviceptr out = 0;
    REQUIRE(cu_.cuMemAlloc_v2(&out, 8192) == CUDA_SUCCESS);
    REQUIRE(cu_.cuMemsetD8_v2(out, 0, 8192) == CUDA_SUCCESS);
    void* parameters[] = {&out};
    REQUIRE(cu_.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr) ==
            CUDA_SUCCESS);
    const CUresult result = cu_.cuCtxSynchronize();
    if (result == CUDA_SUCCESS) {
      words_.resize(block);
      REQUIRE(cu_.cuMemcpyDtoH_v2(words_.data(), out, block * 4) == CUDA_SUCCESS);
    } else {
      CHECK(cu_.cuMemFree_v2(out) == result);  // every call returns this until the context is reset
      CHECK(cu_.cuCtxSynchronize() == result);
    }
    REQUIRE(cu_.cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
    return result;
  }
  const std::vector<std::uint32_t>& words() const { return words_; }

 private:
  Device() : device_(driver::load_cpu_plugin()) {
    REQUIRE(device_.has_value());
    cu_ = device_->table;
    REQUIRE(cu_.cuInit(0) == CUDA_SUCCESS);
  }
  decltype(driver::load_cpu_plugin()) device_;
  driver::DriverTable cu_;
  std::vector<std::uint32_t> words_;
};

void check_fine() {
  REQUIRE(Device::get().run("fine", 1, 64) == CUDA_SUCCESS);
  for (std::uint32_t i = 0; i < 64; ++i) REQUIRE(Device::get().words()[i] == i);
}

TEST_CASE("a kernel that never ends is ended, and the next one runs in a reset context") {
  check_fine();
  for (const char* kernel : {"forever", "busy", "prints", "waits", "holds"})
    for (const auto& [grid, block] : {std::pair{1u, 32u}, {5u, 96u}}) {
      CAPTURE(kernel);
      CAPTURE(grid);
      CHECK(Device::get().run(kernel, grid, block) == CUDA_ERROR_LAUNCH_TIMEOUT);
      check_fine();
    }
}

}  // namespace
}  // namespace quern
