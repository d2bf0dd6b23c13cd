// SPDX-License-Identifier: Apache-2.0
// Attributes of pointers, and allocations with a pitch. Source: NVIDIA, "CUDA Driver API", sections "Unified
// Addressing" and "Memory Management".
#include <cstdint>

#include "suite.hpp"

using namespace quern::conformance;

namespace {

template <class T>
T attribute(CUpointer_attribute which, CUdeviceptr pointer) {
  T value{};
  CAPTURE(which);
  CHECK(cu().cuPointerGetAttribute(&value, which, pointer) == CUDA_SUCCESS);
  return value;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "every attribute of a pointer") {
  const CUdeviceptr pointer = allocate(1000), other = allocate(1000);
  CHECK(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, pointer) == context);
  CHECK(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer + 5) == pointer + 5);
  CHECK(attribute<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer) !=
        attribute<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, other));
  CHECK_FALSE(attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, pointer));
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pointer));
  CHECK(attribute<std::uint64_t>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, pointer) == 0);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, pointer) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer) == nullptr);
  CHECK(attribute<std::uint64_t>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, pointer) !=
        attribute<std::uint64_t>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, other));
  attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, pointer);
  attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, pointer);
  if (is_cpu()) {
    CHECK(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, pointer + 5) == pointer);
    CHECK(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, pointer) == 1000);
  }
  std::uint64_t value = 0;
  CHECK(cu().cuPointerGetAttribute(&value, static_cast<CUpointer_attribute>(0), pointer) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer) ==
        CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr managed = 0;
  REQUIRE(cu().cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  CHECK_FALSE(attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, managed));
  CHECK(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, managed + 8) == managed + 8);
}

TEST_CASE_FIXTURE(Fixture, "several attributes at once; unknown pointers have default values") {
  const CUdeviceptr pointer = allocate(1000);
  int ordinal = 9;
  unsigned type = 9;
  std::size_t bytes = 9;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* data[] = {&ordinal, &type, &bytes};
  CHECK(CU(cuPointerGetAttributes)(3, which, data, pointer + 1) == CUDA_SUCCESS);
  CHECK(ordinal == 0);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(bytes == 1000);
  int local = 0;
  CHECK(CU(cuPointerGetAttributes)(3, which, data, reinterpret_cast<CUdeviceptr>(&local)) == CUDA_SUCCESS);
  CHECK(ordinal == CU_DEVICE_INVALID);
  CHECK(type == 0);
  CHECK(bytes == 1000);  // left alone, as on a GPU
  CHECK(CU(cuPointerGetAttributes)(0, which, data, pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuPointerGetAttributes)(3, nullptr, data, pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuPointerGetAttributes)(3, which, nullptr, pointer) == CUDA_ERROR_INVALID_VALUE);
  which[1] = static_cast<CUpointer_attribute>(31);
  CHECK(CU(cuPointerGetAttributes)(3, which, data, pointer) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "synchronous work waits on memory that asks for it") {
  const CUdeviceptr pointer = allocate(4 << 20);
  const unsigned on = 1, off = 0;
  CHECK(CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer) == CUDA_SUCCESS);
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer + 1));
  for (unsigned round = 0; round < 10; ++round) {
    REQUIRE(launch("fill", 4096, 256, nullptr, pointer, 1u << 20, round) == CUDA_SUCCESS);
    REQUIRE(cu().cuMemsetD32_v2(pointer, 7, 1) == CUDA_SUCCESS);
    CHECK(cu().cuStreamQuery(nullptr) == CUDA_SUCCESS);
  }
  CHECK(CU(cuPointerSetAttribute)(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer) == CUDA_SUCCESS);
  CHECK_FALSE(attribute<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer));
  CHECK(CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuPointerSetAttribute)(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0x1000) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "rows with a pitch lie apart by a multiple of the alignment") {
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  CHECK(CU(cuMemAllocPitch_v2)(&pointer, &pitch, 1001, 7, 4) == CUDA_SUCCESS);
  CHECK(pitch >= 1001);
  CHECK(pitch % 32 == 0);
  CHECK(CU(cuMemsetD2D8_v2)(pointer, pitch, 3, 1001, 7) == CUDA_SUCCESS);
  CHECK(cu().cuMemFree_v2(pointer) == CUDA_SUCCESS);
  CHECK(CU(cuMemAllocPitch_v2)(&pointer, &pitch, 1001, 7, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAllocPitch_v2)(&pointer, &pitch, 0, 7, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAllocPitch_v2)(&pointer, &pitch, 8, 0, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAllocPitch_v2)(&pointer, nullptr, 8, 8, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAllocPitch_v2)(&pointer, &pitch, 512, std::size_t{1} << 60, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAllocPitch_v2)(&pointer, &pitch, 512, std::size_t{1} << 40, 4) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE_FIXTURE(Fixture, "page-locked memory of the old call, and registrations that are refused") {
  void* host = nullptr;
  CHECK(CU(cuMemAllocHost_v2)(&host, 64) == CUDA_SUCCESS);
  static_cast<unsigned char*>(host)[63] = 1;
  CHECK(cu().cuMemFreeHost(host) == CUDA_SUCCESS);
  CHECK(CU(cuMemAllocHost_v2)(nullptr, 64) == CUDA_ERROR_INVALID_VALUE);
  std::vector<unsigned char> ordinary(8192);
  CHECK(cu().cuMemHostRegister_v2(ordinary.data(), 64, 0x100) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemHostRegister_v2(ordinary.data(), 64, CU_MEMHOSTREGISTER_IOMEMORY) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemHostRegister_v2(ordinary.data(), 64, CU_MEMHOSTREGISTER_READ_ONLY) == CUDA_SUCCESS);
  CHECK(cu().cuMemHostUnregister(ordinary.data()) == CUDA_SUCCESS);
  if (!is_cpu()) return;
  int file = -1;
  CHECK(CU(cuMemGetHandleForAddressRange)(&file, allocate(4096), 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                          0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(CU(cuMemGetHandleForAddressRange)(&file, 0x1000, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) ==
        CUDA_ERROR_INVALID_VALUE);
}
