// SPDX-License-Identifier: Apache-2.0
// Advice on managed memory, prefetching and discarding. Source: NVIDIA, "CUDA Driver API", section "Unified
// Addressing".
#include "suite.hpp"

using namespace quern::conformance;

namespace {

constexpr std::size_t kBytes = 64 * 4096;
constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr CUmemLocation kHost{CU_MEM_LOCATION_TYPE_HOST, 0};

CUdeviceptr managed(std::size_t bytes = kBytes) {
  CUdeviceptr pointer = 0;
  REQUIRE(cu().cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  return pointer;
}

int attribute(CUmem_range_attribute which, CUdeviceptr pointer, std::size_t bytes) {
  int value = 77;
  CHECK(CU(cuMemRangeGetAttribute)(&value, sizeof value, which, pointer, bytes) == CUDA_SUCCESS);
  return value;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "advice is told for the pages that have it") {
  const CUdeviceptr pointer = managed();
  const std::size_t half = kBytes / 2;
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer, kBytes) == 0);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, pointer, kBytes) == CU_DEVICE_INVALID);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, kBytes) == CU_DEVICE_INVALID);
  CHECK(cu().cuMemAdvise_v2(pointer, half, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice) == CUDA_SUCCESS);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer, half) == 1);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer + half, half) == 0);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer, kBytes) == 0);
  CHECK(cu().cuMemAdvise_v2(pointer + half, 1, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice) == CUDA_SUCCESS);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer, half + 4096) == 1);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer, half + 4097) == 0);
  CHECK(cu().cuMemAdvise_v2(pointer, kBytes, CU_MEM_ADVISE_UNSET_READ_MOSTLY, kDevice) == CUDA_SUCCESS);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer, half) == 0);

  CHECK(cu().cuMemAdvise_v2(pointer, half, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice) == CUDA_SUCCESS);
  CHECK(cu().cuMemAdvise_v2(pointer + half, half, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kHost) ==
        CUDA_SUCCESS);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, pointer, half) == 0);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, pointer + half, half) == CU_DEVICE_CPU);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, pointer, kBytes) == CU_DEVICE_INVALID);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, pointer + half, half) ==
        CU_MEM_LOCATION_TYPE_HOST);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, pointer, half) == 0);
  CHECK(cu().cuMemAdvise_v2(pointer, kBytes, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, kDevice) ==
        CUDA_SUCCESS);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, pointer, kBytes) ==
        CU_MEM_LOCATION_TYPE_INVALID);

  CHECK(CU(cuMemAdvise)(pointer, kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemAdvise)(pointer, half, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU) == CUDA_SUCCESS);
  CUdevice accessors[3] = {9, 9, 9};
  CHECK(CU(cuMemRangeGetAttribute)(accessors, sizeof accessors, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, pointer,
                                   kBytes) == CUDA_SUCCESS);
  CHECK(accessors[0] == 0);
  CHECK(accessors[1] == CU_DEVICE_INVALID);
  CHECK(accessors[2] == CU_DEVICE_INVALID);
  CHECK(cu().cuMemFree_v2(pointer) == CUDA_SUCCESS);
  const CUdeviceptr next = managed();  // advice ends with the memory
  CHECK(CU(cuMemRangeGetAttribute)(accessors, 4, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, next, kBytes) ==
        CUDA_SUCCESS);
  CHECK(accessors[0] == CU_DEVICE_INVALID);
}

TEST_CASE_FIXTURE(Fixture, "the last prefetch is told, of one range and of a batch") {
  const CUdeviceptr pointer = managed();
  const CUstream on = stream();
  CHECK(CU(cuMemPrefetchAsync)(pointer, kBytes, CU_DEVICE_CPU, on) == CUDA_SUCCESS);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, kBytes) == CU_DEVICE_CPU);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, pointer, kBytes) ==
        CU_MEM_LOCATION_TYPE_HOST);
  CHECK(CU(cuMemPrefetchAsync)(pointer, kBytes, 99, on) == CUDA_ERROR_INVALID_DEVICE);
  CUdeviceptr pointers[] = {pointer, pointer + 4096, pointer + 8192};
  std::size_t sizes[] = {4096, 4096, 4096}, first[] = {0, 2};
  CUmemLocation locations[] = {kDevice, kHost};
  CHECK(CU(cuMemPrefetchBatchAsync)(pointers, sizes, 3, locations, first, 2, 0, on) == CUDA_SUCCESS);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, 8192) == 0);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer + 8192, 4096) == CU_DEVICE_CPU);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, kBytes) == CU_DEVICE_INVALID);
  CHECK(CU(cuMemDiscardBatchAsync)(pointers, sizes, 3, 0, on) == CUDA_SUCCESS);
  locations[0] = kHost;
  CHECK(CU(cuMemDiscardAndPrefetchBatchAsync)(pointers, sizes, 3, locations, first, 1, 0, on) ==
        CUDA_SUCCESS);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, 8192) == CU_DEVICE_CPU);
  CHECK(CU(cuMemDiscardBatchAsync)(pointers, sizes, 3, 1, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemDiscardBatchAsync)(pointers, sizes, 0, 0, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemDiscardBatchAsync)(pointers, sizes, 3, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  first[1] = 3;
  CHECK(CU(cuMemPrefetchBatchAsync)(pointers, sizes, 3, locations, first, 2, 0, on) ==
        CUDA_ERROR_INVALID_VALUE);
  pointers[1] = allocate(4096);
  CHECK(CU(cuMemDiscardBatchAsync)(pointers, sizes, 3, 0, on) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "several attributes of a range at once, and wrong questions") {
  const CUdeviceptr pointer = managed();
  int read_mostly = 9, preferred = 9;
  void* data[] = {&read_mostly, &preferred};
  std::size_t sizes[] = {4, 4};
  CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                   CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
  CHECK(CU(cuMemRangeGetAttributes)(data, sizes, which, 2, pointer, kBytes) == CUDA_SUCCESS);
  CHECK(read_mostly == 0);
  CHECK(preferred == CU_DEVICE_INVALID);
  CHECK(CU(cuMemRangeGetAttributes)(data, sizes, which, 0, pointer, kBytes) == CUDA_ERROR_INVALID_VALUE);
  sizes[1] = 8;
  CHECK(CU(cuMemRangeGetAttributes)(data, sizes, which, 2, pointer, kBytes) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemRangeGetAttribute)(data, 6, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, pointer, kBytes) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemRangeGetAttribute)(nullptr, 4, which[0], pointer, kBytes) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemRangeGetAttribute)(&read_mostly, 4, which[0], pointer, kBytes + 1) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemRangeGetAttribute)(&read_mostly, 4, which[0], allocate(64), 64) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemAdvise_v2(pointer, 64, CU_MEM_ADVISE_SET_ACCESSED_BY,
                            {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}) == CUDA_ERROR_INVALID_VALUE);
}
