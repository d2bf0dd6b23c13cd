// SPDX-License-Identifier: Apache-2.0
// Virtual memory management. Source: NVIDIA, "CUDA Driver API", section "Virtual Memory Management".
#include <sys/resource.h>
#include <unistd.h>

#include "suite.hpp"

using namespace quern::conformance;

namespace {

CUmemAllocationProp on_device(CUmemAllocationHandleType types = CU_MEM_HANDLE_TYPE_NONE) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.requestedHandleTypes = types;
  return properties;
}

std::size_t granularity() {
  const CUmemAllocationProp properties = on_device();
  std::size_t bytes = 0;
  REQUIRE(CU(cuMemGetAllocationGranularity)(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
          CUDA_SUCCESS);
  REQUIRE(bytes > 0);
  return bytes;
}

CUmemGenericAllocationHandle create(std::size_t bytes,
                                    CUmemAllocationHandleType types = CU_MEM_HANDLE_TYPE_NONE) {
  const CUmemAllocationProp properties = on_device(types);
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE(CU(cuMemCreate)(&handle, bytes, &properties, 0) == CUDA_SUCCESS);
  return handle;
}

CUdeviceptr reserve(std::size_t bytes) {
  CUdeviceptr address = 0;
  REQUIRE(CU(cuMemAddressReserve)(&address, bytes, 0, 0, 0) == CUDA_SUCCESS);
  return address;
}

CUresult set_access(CUdeviceptr address, std::size_t bytes, CUmemAccess_flags flags) {
  const CUmemAccessDesc description{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
  return CU(cuMemSetAccess)(address, bytes, &description, 1);
}
CUresult open(CUdeviceptr address, std::size_t bytes) {
  return set_access(address, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  REQUIRE(cu().cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
  return free;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a limit of file sizes refuses memory that has a file, and no signal is raised") {
  if (!is_cpu()) return;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const CUdeviceptr plain = allocate(4096);
  const CUmemAllocationProp properties = on_device();
  const std::size_t bytes = granularity();
  CUmemGenericAllocationHandle handle = 0;
  CUipcMemHandle shared{};
  rlimit limit = before;
  limit.rlim_cur = 512;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);  // SIGXFSZ would end the process
  const CUresult created = CU(cuMemCreate)(&handle, bytes, &properties, 0);
  const CUresult shown = CU(cuIpcGetMemHandle)(&shared, plain);
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK(created == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(shown != CUDA_SUCCESS);
  CHECK(CU(cuIpcGetMemHandle)(&shared, plain) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(create(bytes)) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "mapped memory is computed in and copied, also across two mappings") {
  const std::size_t piece = granularity();
  const CUdeviceptr address = reserve(4 * piece);
  CHECK(address % piece == 0);
  const auto first = create(piece), second = create(piece);
  CHECK(CU(cuMemMap)(address, piece, 0, first, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemMap)(address + piece, piece, 0, second, 0) == CUDA_SUCCESS);
  CHECK(open(address, 2 * piece) == CUDA_SUCCESS);
  const auto count = static_cast<unsigned>(2 * piece / 4);
  CHECK(launch("fill", count / 256, 256, nullptr, address, count, 9u) == CUDA_SUCCESS);
  CHECK(download<unsigned>(address, count) == std::vector<unsigned>(count, 9u));
  CHECK(cu().cuMemsetD32_v2(address + piece - 8, 4, 4) == CUDA_SUCCESS);
  CHECK(download<unsigned>(address + piece - 12, 6) == std::vector<unsigned>{9, 4, 4, 4, 4, 9});
  CHECK(cu().cuMemsetD8_v2(address + 2 * piece - 1, 0, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemUnmap)(address, 2 * piece) == CUDA_SUCCESS);
  CHECK(CU(cuMemAddressFree)(address, 4 * piece) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(first) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(second) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture,
                  "memory that is mapped twice is the same memory, and keeps its contents unmapped") {
  const std::size_t piece = granularity();
  const CUdeviceptr address = reserve(2 * piece);
  const auto handle = create(piece);
  REQUIRE(CU(cuMemMap)(address, piece, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemMap)(address + piece, piece, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(open(address, 2 * piece) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemsetD32_v2(address, 17, 8) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(download<unsigned>(address + piece, 8) == std::vector<unsigned>(8, 17u));
  REQUIRE(CU(cuMemUnmap)(address, 2 * piece) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemMap)(address + piece, piece, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(open(address + piece, piece) == CUDA_SUCCESS);
  CHECK(download<unsigned>(address + piece, 8) == std::vector<unsigned>(8, 17u));
  REQUIRE(CU(cuMemUnmap)(address + piece, piece) == CUDA_SUCCESS);
  CHECK(CU(cuMemAddressFree)(address, 2 * piece) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "memory counts from its creation until no handle and no mapping is left") {
  const std::size_t piece = granularity(), before = free_bytes();
  const CUdeviceptr address = reserve(64 * piece);
  const std::size_t reserved = free_bytes();
  if (is_cpu()) CHECK(reserved == before);
  const auto handle = create(2 * piece);
  if (is_cpu()) CHECK(free_bytes() == before - 2 * piece);
  REQUIRE(CU(cuMemMap)(address, 2 * piece, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CHECK(CU(cuMemMap)(address + 2 * piece, 2 * piece, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  if (is_cpu()) CHECK(free_bytes() == before - 2 * piece);
  CUmemGenericAllocationHandle again = 0;
  CHECK(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(address + piece)) == CUDA_SUCCESS);
  CHECK(again == handle);
  CHECK(CU(cuMemUnmap)(address, 2 * piece) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(free_bytes() == before - 2 * piece);
  CHECK(CU(cuMemRelease)(again) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(free_bytes() == before);
  CHECK(CU(cuMemAddressFree)(address, 64 * piece) == CUDA_SUCCESS);
  if (!is_cpu()) return;
  CHECK(CU(cuMemRelease)(again) == CUDA_ERROR_INVALID_VALUE);
  const CUmemAllocationProp properties = on_device();
  std::size_t total = 0, free = 0;
  REQUIRE(cu().cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
  CHECK(CU(cuMemCreate)(&again, total / piece * piece + piece, &properties, 0) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE_FIXTURE(Fixture, "access is granted, taken and told") {
  const std::size_t piece = granularity();
  const CUdeviceptr address = reserve(piece);
  const auto handle = create(piece);
  REQUIRE(CU(cuMemMap)(address, piece, 0, handle, 0) == CUDA_SUCCESS);
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  unsigned long long flags = 77;
  CHECK(CU(cuMemGetAccess)(&flags, &here, address) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  unsigned word = 5;
  if (is_cpu()) CHECK(cu().cuMemcpyHtoD_v2(address, &word, 4) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(open(address, piece) == CUDA_SUCCESS);
  CHECK(CU(cuMemGetAccess)(&flags, &here, address + piece - 1) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(cu().cuMemcpyHtoD_v2(address, &word, 4) == CUDA_SUCCESS);
  if (is_cpu()) {
    CHECK(set_access(address, piece, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_SUCCESS);
    CHECK(cu().cuMemcpyHtoD_v2(address, &word, 4) == CUDA_ERROR_INVALID_VALUE);
    CHECK(download<unsigned>(address, 1)[0] == 5);
    CHECK(set_access(address, piece, CU_MEM_ACCESS_FLAGS_PROT_NONE) == CUDA_SUCCESS);
    CHECK(cu().cuMemcpyDtoH_v2(&word, address, 4) == CUDA_ERROR_INVALID_VALUE);
    CHECK(CU(cuMemUnmap)(address, piece / 2) == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(CU(cuMemAddressFree)(address, piece) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemUnmap)(address, piece) == CUDA_SUCCESS);
  CHECK(CU(cuMemGetAccess)(&flags, &here, address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(open(address, piece) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressFree)(address, piece) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
}

TEST_CASE("a kernel that uses memory without access faults") {
  for (const bool mapped : {false, true}) {
    CAPTURE(mapped);
    const Fixture fixture;
    const std::size_t piece = granularity();
    const CUdeviceptr address = reserve(piece);
    const auto handle = create(piece);
    if (mapped) REQUIRE(CU(cuMemMap)(address, piece, 0, handle, 0) == CUDA_SUCCESS);
    CHECK(fixture.launch("fill", 1, 32, nullptr, address, 32u, 1u) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    if (mapped) CHECK(CU(cuMemUnmap)(address, piece) == CUDA_SUCCESS);
    CHECK(CU(cuMemAddressFree)(address, piece) == CUDA_SUCCESS);
    CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  }
}

TEST_CASE_FIXTURE(Fixture, "arguments of virtual memory that are refused") {
  const std::size_t piece = granularity();
  CUdeviceptr address = 0;
  CHECK(CU(cuMemAddressReserve)(&address, 0, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressReserve)(&address, piece + 1, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressReserve)(&address, 4096, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressReserve)(&address, piece, 0, 0x12345, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressReserve)(&address, piece, 3, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressReserve)(&address, piece, 0, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressReserve)(nullptr, piece, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressReserve)(&address, std::size_t{1} << 62, 0, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  address = reserve(2 * piece);
  CHECK(CU(cuMemAddressFree)(address, piece) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressFree)(address + piece, piece) == CUDA_ERROR_INVALID_VALUE);

  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties = on_device();
  CHECK(CU(cuMemCreate)(&handle, piece / 2, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemCreate)(&handle, 0, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemCreate)(&handle, piece, &properties, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemCreate)(&handle, piece, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  properties.location.id = 99;
  CHECK(CU(cuMemCreate)(&handle, piece, &properties, 0) == CUDA_ERROR_INVALID_DEVICE);
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};
  CHECK(CU(cuMemCreate)(&handle, piece, &properties, 0) == CUDA_ERROR_INVALID_VALUE);

  handle = create(piece);
  CHECK(CU(cuMemMap)(address, piece, piece, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(CU(cuMemMap)(address, piece, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(address, piece, 0, handle, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(address, 2 * piece, 0, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(CU(cuMemMap)(address + 4096, piece, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(allocate(piece), piece, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemMap)(address, piece, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemMap)(address, piece, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemSetAccess)(address, piece, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  const CUmemAccessDesc far{{CU_MEM_LOCATION_TYPE_DEVICE, 99}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK(CU(cuMemSetAccess)(address, piece, &far, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFree_v2(address) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemUnmap)(address, 2 * piece) == CUDA_SUCCESS);  // its second half has nothing
  CHECK(CU(cuMemUnmap)(address, piece) == CUDA_SUCCESS);
  CHECK(CU(cuMemUnmap)(allocate(piece), piece) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemRetainAllocationHandle)(&handle, reinterpret_cast<void*>(address)) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CHECK(CU(cuMemAddressFree)(address, 2 * piece) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "memory is shared by a file descriptor, and outlives its first handle") {
  const std::size_t piece = granularity();
  const auto handle = create(piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemAllocationProp told{};
  CHECK(CU(cuMemGetAllocationPropertiesFromHandle)(&told, handle) == CUDA_SUCCESS);
  CHECK(told.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CHECK(told.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  int file = -1;
  REQUIRE(CU(cuMemExportToShareableHandle)(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
          CUDA_SUCCESS);
  const CUdeviceptr address = reserve(piece);
  REQUIRE(CU(cuMemMap)(address, piece, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(open(address, piece) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemsetD32_v2(address, 99, 4) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemUnmap)(address, piece) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle imported = 0;
  void* const shared = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
  REQUIRE(CU(cuMemImportFromShareableHandle)(&imported, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
          CUDA_SUCCESS);
  CHECK(::close(file) == 0);
  REQUIRE(CU(cuMemMap)(address, piece, 0, imported, 0) == CUDA_SUCCESS);
  REQUIRE(open(address, piece) == CUDA_SUCCESS);
  CHECK(download<unsigned>(address, 4) == std::vector<unsigned>(4, 99u));
  CHECK(CU(cuMemUnmap)(address, piece) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(imported) == CUDA_SUCCESS);
  CHECK(CU(cuMemAddressFree)(address, piece) == CUDA_SUCCESS);
  const auto closed = create(piece);
  CHECK(CU(cuMemExportToShareableHandle)(&file, closed, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemRelease)(closed) == CUDA_SUCCESS);
  CHECK(CU(cuMemImportFromShareableHandle)(&imported, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
        CUDA_ERROR_UNKNOWN);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);  // a descriptor of something else
  CHECK(CU(cuMemImportFromShareableHandle)(&imported,
                                           reinterpret_cast<void*>(static_cast<std::intptr_t>(ends[0])),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_ERROR_UNKNOWN);
  ::close(ends[0]);
  ::close(ends[1]);
}
