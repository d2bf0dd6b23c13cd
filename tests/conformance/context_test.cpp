// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "suite.hpp"

using namespace quern::conformance;

TEST_CASE("without a current context, what needs one is refused") {
  std::thread([] {
    CUdeviceptr pointer = 0;
    CUcontext context = reinterpret_cast<CUcontext>(1);
    CHECK(cu().cuMemAlloc_v2(&pointer, 16) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cu().cuCtxGetCurrent(&context) == CUDA_SUCCESS);
    CHECK(context == nullptr);
    CHECK(cu().cuCtxPopCurrent_v2(&context) == CUDA_ERROR_INVALID_CONTEXT);
  }).join();
}

TEST_CASE("contexts stack on a thread") {
  CUcontext first = nullptr, second = nullptr, current = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&first, nullptr, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxCreate_v4(&second, nullptr, 0, 0) == CUDA_SUCCESS);
  CHECK(cu().cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == second);
  CHECK(cu().cuCtxPopCurrent_v2(&current) == CUDA_SUCCESS);
  CHECK(current == second);
  CHECK(cu().cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == first);
  CHECK(cu().cuCtxPushCurrent_v2(second) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSetCurrent(first) == CUDA_SUCCESS);
  CHECK(cu().cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == first);
  CUdevice device = 7;
  CHECK(cu().cuCtxGetDevice(&device) == CUDA_SUCCESS);
  CHECK(device == 0);
  CHECK(cu().cuCtxDestroy_v2(second) == CUDA_SUCCESS);
  CHECK(cu().cuCtxDestroy_v2(first) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
}

TEST_CASE("a destroyed context is no context any more") {
  CUcontext context = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxDestroy_v2(context) == CUDA_SUCCESS);
  if (is_cpu()) {
    CHECK(cu().cuCtxPushCurrent_v2(context) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cu().cuCtxDestroy_v2(context) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cu().cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(0x1234)) == CUDA_ERROR_INVALID_CONTEXT);
  }
}

TEST_CASE("destroying a context gives its memory back") {
  Fixture keeper;
  std::size_t before = 0, after = 0, total = 0;
  REQUIRE(cu().cuMemGetInfo_v2(&before, &total) == CUDA_SUCCESS);
  {
    Fixture other;
    other.allocate(8 << 20);
    REQUIRE(cu().cuMemGetInfo_v2(&after, &total) == CUDA_SUCCESS);
    CHECK(after + (8 << 20) <= before);
  }
  REQUIRE(cu().cuMemGetInfo_v2(&after, &total) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(after == before);
}

TEST_CASE("the primary context is one, however often it is retained") {
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 99;
  int active = 0;
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&first, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&second, 0) == CUDA_SUCCESS);
  CHECK(first == second);
  CHECK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 1);
  CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  CHECK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 0);
  CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE_FIXTURE(Fixture, "limits can be read and set") {
  std::size_t value = 0;
  CHECK(cu().cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20) == CUDA_SUCCESS);
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS);
  CHECK(value >= (16 << 20));
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS);
  CHECK(value >= 1024);
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_MAX) == CUDA_ERROR_INVALID_VALUE);
  int least = -9, greatest = 9;
  CHECK(cu().cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS);
  CHECK(greatest <= least);
  if (is_cpu()) CHECK(least == 0);
  if (is_cpu()) CHECK(greatest == -5);
  CHECK(cu().cuCtxGetStreamPriorityRange(nullptr, nullptr) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "a context can be used from another thread") {
  std::thread([this] {
    CHECK(cu().cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CHECK(launch("empty", 4, 32, nullptr) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  }).join();
}
