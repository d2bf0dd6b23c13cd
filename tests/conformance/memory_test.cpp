// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <thread>

#include "suite.hpp"

using namespace quern::conformance;

TEST_CASE_FIXTURE(Fixture, "allocations are aligned, apart and of any size but zero") {
  CUdeviceptr first = allocate(1), second = allocate(1000);
  CHECK(first % 256 == 0);
  CHECK(second % 256 == 0);
  CHECK((first + 1 <= second || second + 1000 <= first));
  CUdeviceptr none = 0;
  CHECK(cu().cuMemAlloc_v2(&none, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemAlloc_v2(nullptr, 16) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "memory runs out at the declared total, and what was freed can be had again") {
  std::size_t free_bytes = 0, total = 0;
  REQUIRE(cu().cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS);
  CHECK(free_bytes <= total);
  CUdeviceptr pointer = 0;
  CHECK(cu().cuMemAlloc_v2(&pointer, total + 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cu().cuMemAlloc_v2(&pointer, std::size_t{1} << 60) == CUDA_ERROR_OUT_OF_MEMORY);
  if (!is_cpu()) return;
  const std::size_t most = free_bytes / 4096 * 4096;
  REQUIRE(cu().cuMemAlloc_v2(&pointer, most) == CUDA_SUCCESS);
  CUdeviceptr more = 0;
  CHECK(cu().cuMemAlloc_v2(&more, 8192) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cu().cuMemFree_v2(pointer) == CUDA_SUCCESS);
  CHECK(cu().cuMemAlloc_v2(&pointer, most) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "only what was allocated can be freed, and once") {
  const CUdeviceptr pointer = allocate(4096);
  CHECK(cu().cuMemFree_v2(pointer + 256) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFree_v2(pointer) == CUDA_SUCCESS);
  CHECK(cu().cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFree_v2(0x1000) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFree_v2(0) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeHost(nullptr) == CUDA_SUCCESS);
  void* host = &host;
  CHECK(cu().cuMemHostAlloc(&host, 0, 0) == CUDA_SUCCESS);
  const CUdeviceptr other = allocate(4096);
  std::thread([&] { CHECK(cu().cuMemFree_v2(other) == CUDA_SUCCESS); }).join();  // without a current context
}

TEST_CASE_FIXTURE(Fixture, "the range an address lies in") {
  const CUdeviceptr pointer = allocate(10000);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CHECK(cu().cuMemGetAddressRange_v2(&base, &bytes, pointer + 9999) == CUDA_SUCCESS);
  CHECK(base == pointer);
  CHECK(bytes == 10000);
  CHECK(cu().cuMemGetAddressRange_v2(nullptr, nullptr, pointer) == CUDA_SUCCESS);
  CHECK(cu().cuMemGetAddressRange_v2(&base, &bytes, 0x10) == CUDA_ERROR_NOT_FOUND);
}

TEST_CASE_FIXTURE(Fixture, "pinned memory is the host's and the device's") {
  void* host = nullptr;
  REQUIRE(cu().cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE) ==
          CUDA_SUCCESS);
  std::memset(host, 0, 4096);
  CUdeviceptr device = 0;
  REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, host, 0) == CUDA_SUCCESS);
  REQUIRE(launch("fill", 8, 128, nullptr, device, 1024u, 77u) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(static_cast<unsigned*>(host)[0] == 77);
  CHECK(static_cast<unsigned*>(host)[1023] == 77);
  unsigned type = 0;
  CHECK(cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_HOST);
  CHECK(cu().cuMemFreeHost(host) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeHost(host) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemHostAlloc(&host, 16, 0x8000) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "attributes of a pointer") {
  const CUdeviceptr pointer = allocate(512);
  unsigned type = 0;
  CHECK(cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CUcontext owner = nullptr;
  CHECK(cu().cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer) == CUDA_SUCCESS);
  CHECK(owner == context);
  int ordinal = -1;
  CHECK(cu().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == CUDA_SUCCESS);
  CHECK(ordinal == 0);
  CUdeviceptr start = 0;
  CHECK(cu().cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer + 100) ==
        CUDA_SUCCESS);
  CHECK(start == pointer);
  int local = 0;
  CHECK(cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   reinterpret_cast<CUdeviceptr>(&local)) == CUDA_ERROR_INVALID_VALUE);
}
