// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <thread>

#include "suite.hpp"

using namespace quern::conformance;

TEST_CASE_FIXTURE(Fixture, "an event that was never recorded is complete") {
  const CUevent it = event();
  CHECK(cu().cuEventQuery(it) == CUDA_SUCCESS);
  CHECK(cu().cuEventSynchronize(it) == CUDA_SUCCESS);
  CHECK(cu().cuStreamWaitEvent(nullptr, it, 0) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "events measure time on a stream") {
  const CUevent start = event(), end = event();
  const CUdeviceptr pointer = allocate(4 << 20);
  float milliseconds = -1;
  CHECK(cu().cuEventElapsedTime_v2(&milliseconds, start, end) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(cu().cuEventRecord(start, nullptr) == CUDA_SUCCESS);
  REQUIRE(launch("fill", 4096, 256, nullptr, pointer, 1u << 20, 1u) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(end, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventSynchronize(end) == CUDA_SUCCESS);
  CHECK(cu().cuEventQuery(end) == CUDA_SUCCESS);
  CHECK(cu().cuEventElapsedTime_v2(&milliseconds, start, end) == CUDA_SUCCESS);
  CHECK(milliseconds > 0.0f);
  CHECK(milliseconds < 60000.0f);
}

TEST_CASE_FIXTURE(Fixture, "events without timing have no time") {
  const CUevent start = event(CU_EVENT_DISABLE_TIMING), end = event();
  REQUIRE(cu().cuEventRecord(start, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(end, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventSynchronize(end) == CUDA_SUCCESS);
  float milliseconds = -1;
  CHECK(cu().cuEventElapsedTime_v2(&milliseconds, start, end) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE_FIXTURE(Fixture, "a stream waits for an event of another") {
  const CUstream first = stream(), second = stream();
  const CUdeviceptr pointer = allocate(4 << 20), copy = allocate(4 << 20);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    const CUevent filled = event(CU_EVENT_DISABLE_TIMING), copied = event(CU_EVENT_DISABLE_TIMING);
    REQUIRE(launch("fill", 4096, 256, first, pointer, 1u << 20, round) == CUDA_SUCCESS);
    REQUIRE(cu().cuEventRecord(filled, first) == CUDA_SUCCESS);
    REQUIRE(cu().cuStreamWaitEvent(second, filled, 0) == CUDA_SUCCESS);
    REQUIRE(cu().cuMemcpyDtoDAsync_v2(copy, pointer, 4 << 20, second) == CUDA_SUCCESS);
    REQUIRE(cu().cuEventRecord(copied, second) == CUDA_SUCCESS);
    REQUIRE(cu().cuStreamWaitEvent(first, copied, 0) == CUDA_SUCCESS);
    CHECK(cu().cuEventDestroy_v2(filled) == CUDA_SUCCESS);
    REQUIRE(cu().cuEventSynchronize(copied) == CUDA_SUCCESS);
    const auto host = download<std::uint32_t>(copy, 1 << 20);
    CHECK(host.front() == round);
    CHECK(host.back() == round);
  }
}

TEST_CASE_FIXTURE(Fixture, "bad events and flags are refused") {
  CUevent it = nullptr;
  CHECK(cu().cuEventCreate(&it, 0x4000) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuEventCreate(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  it = event();
  REQUIRE(cu().cuEventDestroy_v2(it) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(cu().cuEventRecord(it, nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE_FIXTURE(Fixture, "there is no time between events of two contexts") {
  const CUevent first = event();
  REQUIRE(cu().cuEventRecord(first, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventSynchronize(first) == CUDA_SUCCESS);
  const Fixture other;
  const CUevent second = other.event();
  REQUIRE(cu().cuEventRecord(second, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventSynchronize(second) == CUDA_SUCCESS);
  float milliseconds = 0;
  CHECK(cu().cuEventElapsedTime_v2(&milliseconds, first, second) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE_FIXTURE(Fixture, "the first versions of functions on events and streams") {
  const CUevent start = event(), end = event();
  REQUIRE(CU(cuEventRecordWithFlags)(start, nullptr, CU_EVENT_RECORD_DEFAULT) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(end, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventSynchronize(end) == CUDA_SUCCESS);
  float milliseconds = -1;
  CHECK(CU(cuEventElapsedTime)(&milliseconds, start, end) == CUDA_SUCCESS);
  CHECK(milliseconds >= 0.0f);
  // The external flag is for streams that capture.
  CHECK(CU(cuEventRecordWithFlags)(start, nullptr, CU_EVENT_RECORD_EXTERNAL) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(CU(cuEventRecordWithFlags)(start, nullptr, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuEventDestroy)(start) == CUDA_SUCCESS);
  CHECK(CU(cuStreamDestroy)(stream()) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "the time between events is that of the kernel, not of making its machine code") {
  if (!is_cpu()) return;  // a GPU has its code when the module is loaded
  // A kernel of which no cache has the code.
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n// " + std::to_string(now) + R"(
.visible .entry once(.param .u64 out)
{
  .reg .b32 %r<3>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ntid.x;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";
  CUmodule timed = nullptr;
  REQUIRE(cu().cuModuleLoadData(&timed, text.c_str()) == CUDA_SUCCESS);
  CUfunction once = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&once, timed, "once") == CUDA_SUCCESS);
  CUdeviceptr out = allocate(4);
  void* parameters[] = {&out};
  const CUstream its_stream = stream();
  bool any_left_out = false;
  // Each block shape has its own code. Several tries: the machine may be busy with something else.
  for (unsigned warps = 1; warps <= 8 && !any_left_out; ++warps) {
    const CUevent start = event(), end = event();
    REQUIRE(cu().cuEventRecord(start, its_stream) == CUDA_SUCCESS);
    REQUIRE(cu().cuEventSynchronize(start) == CUDA_SUCCESS);
    const auto before = std::chrono::steady_clock::now();
    REQUIRE(cu().cuLaunchKernel(once, 1, 1, 1, 32 * warps, 1, 1, 0, its_stream, parameters, nullptr) ==
            CUDA_SUCCESS);
    const std::chrono::duration<float, std::milli> call = std::chrono::steady_clock::now() - before;
    REQUIRE(cu().cuEventRecord(end, its_stream) == CUDA_SUCCESS);
    REQUIRE(cu().cuEventSynchronize(end) == CUDA_SUCCESS);
    float milliseconds = -1;
    REQUIRE(cu().cuEventElapsedTime_v2(&milliseconds, start, end) == CUDA_SUCCESS);
    CHECK(milliseconds >= 0.0f);
    any_left_out = milliseconds < call.count() / 2;
    CHECK(download<std::uint32_t>(out, 1)[0] == 32 * warps);
  }
  CHECK(any_left_out);
}

TEST_CASE_FIXTURE(Fixture, "time in which the host does something else counts between events") {
  const CUevent start = event(), end = event();
  REQUIRE(launch("empty", 1, 32, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(start, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventSynchronize(start) == CUDA_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  REQUIRE(launch("empty", 1, 32, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(end, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventSynchronize(end) == CUDA_SUCCESS);
  float milliseconds = -1;
  REQUIRE(cu().cuEventElapsedTime_v2(&milliseconds, start, end) == CUDA_SUCCESS);
  CHECK(milliseconds >= 19.0f);
}
