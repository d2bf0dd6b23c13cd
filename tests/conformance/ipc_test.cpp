// SPDX-License-Identifier: Apache-2.0
// Memory that several processes share.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "process.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

CUipcMemHandle handle_of(CUdeviceptr pointer) {
  CUipcMemHandle handle{};
  REQUIRE(CU(cuIpcGetMemHandle)(&handle, pointer) == CUDA_SUCCESS);
  return handle;
}
CUresult open_handle(CUdeviceptr& pointer, const CUipcMemHandle& handle) {
  return CU(cuIpcOpenMemHandle_v2)(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

constexpr unsigned kCount = 1024;

}  // namespace

TEST_CASE_FIXTURE(Fixture, "part: memory of the process above is doubled" * doctest::skip()) {
  CUdeviceptr pointer = 0, again = 0;
  const auto handle = from_hex<CUipcMemHandle>(environment(kHandle));
  REQUIRE(open_handle(pointer, handle) == CUDA_SUCCESS);
  CHECK(open_handle(again, handle) == CUDA_SUCCESS);
  CHECK(again == pointer);
  auto host = download<unsigned>(pointer, kCount);
  for (unsigned& word : host) word *= 2;
  CHECK(cu().cuMemcpyHtoD_v2(pointer, host.data(), kCount * 4) == CUDA_SUCCESS);
  CHECK(cu().cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuIpcCloseMemHandle)(pointer) == CUDA_SUCCESS);
  CHECK(launch("fill", 1, 1, nullptr, pointer, 1u, 77u) == CUDA_SUCCESS);  // one use is left
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(CU(cuIpcCloseMemHandle)(pointer) == CUDA_SUCCESS);
  CHECK(CU(cuIpcCloseMemHandle)(pointer) == CUDA_ERROR_INVALID_VALUE);
  unsigned word = 0;
  CHECK(cu().cuMemcpyDtoH_v2(&word, pointer, 4) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "another process reads and writes memory, which keeps its address and contents") {
  for (const std::size_t bytes : {std::size_t{kCount} * 4, std::size_t{4} << 20}) {
    CAPTURE(bytes);
    const CUdeviceptr pointer = allocate(bytes);
    REQUIRE(cu().cuMemsetD32_v2(pointer, 21, kCount) == CUDA_SUCCESS);
    const CUipcMemHandle handle = handle_of(pointer);
    CHECK(download<unsigned>(pointer, kCount) == std::vector<unsigned>(kCount, 21u));
    ::setenv(kHandle, to_hex(handle).c_str(), 1);
    Process child("part: memory of the process above is doubled");
    CHECK(child.succeeds());
    auto expected = std::vector<unsigned>(kCount, 42u);
    expected[0] = 77;
    CHECK(download<unsigned>(pointer, kCount) == expected);
    // The next process sees what this one computes now.
    REQUIRE(launch("fill", kCount / 128, 128, nullptr, pointer, kCount, 5u) == CUDA_SUCCESS);
    REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
    Process next("part: memory of the process above is doubled");
    CHECK(next.succeeds());
    CHECK(download<unsigned>(pointer + 4, 1)[0] == 10);
    CHECK(cu().cuMemFree_v2(pointer) == CUDA_SUCCESS);
    if (is_cpu()) {
      Process late("part: memory of the process above is gone");
      CHECK(late.succeeds());
    }
  }
}

namespace {

constexpr unsigned kLaunches = 50, kBlocks = 4096, kThreads = 256;

void count_often(Fixture& fixture, CUdeviceptr counter) {
  for (unsigned i = 0; i < kLaunches; ++i)
    REQUIRE(fixture.launch("count", kBlocks, kThreads, nullptr, counter) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "part: the process above counts too" * doctest::skip()) {
  CUdeviceptr counter = 0;
  REQUIRE(open_handle(counter, from_hex<CUipcMemHandle>(environment(kHandle))) == CUDA_SUCCESS);
  CHECK(launch("count", kBlocks, kThreads, nullptr, counter) == CUDA_SUCCESS);  // compiles
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  std::printf("ready\n");
  std::fflush(stdout);
  count_often(*this, counter);
}

TEST_CASE_FIXTURE(Fixture, "atomic operations of two processes on one counter are all counted") {
  const CUdeviceptr counter = allocate(256);
  REQUIRE(cu().cuMemsetD32_v2(counter, 0, 64) == CUDA_SUCCESS);
  REQUIRE(launch("count", kBlocks, kThreads, nullptr, counter) == CUDA_SUCCESS);  // before it is shared
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  ::setenv(kHandle, to_hex(handle_of(counter)).c_str(), 1);
  Process child("part: the process above counts too");
  CHECK(child.answer("ready").empty());
  count_often(*this, counter);
  CHECK(child.succeeds());
  CHECK(download<unsigned>(counter, 1)[0] == 2 * (kLaunches + 1) * kBlocks * kThreads);
}

TEST_CASE_FIXTURE(Fixture, "part: memory of the process above is gone" * doctest::skip()) {
  CUdeviceptr pointer = 0;
  CHECK(open_handle(pointer, from_hex<CUipcMemHandle>(environment(kHandle))) == CUDA_ERROR_MAP_FAILED);
}

TEST_CASE_FIXTURE(Fixture, "part: memory for the process above" * doctest::skip()) {
  const CUdeviceptr pointer = allocate(kCount * 4);
  REQUIRE(cu().cuMemsetD32_v2(pointer, 33, kCount) == CUDA_SUCCESS);
  answer_and_wait("handle " + to_hex(handle_of(pointer)));
}

TEST_CASE_FIXTURE(Fixture, "memory outlives the process that shared it") {
  Process child("part: memory for the process above");
  const auto handle = from_hex<CUipcMemHandle>(child.answer("handle "));
  CUdeviceptr pointer = 0;
  CHECK(CU(cuIpcOpenMemHandle_v2)(&pointer, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(open_handle(pointer, handle) == CUDA_SUCCESS);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CHECK(cu().cuMemGetAddressRange_v2(&base, &bytes, pointer + 8) == CUDA_SUCCESS);
  CHECK(base == pointer);
  if (!is_cpu()) return;
  CHECK(bytes == kCount * 4);
  child.kill();
  CHECK(download<unsigned>(pointer, kCount) == std::vector<unsigned>(kCount, 33u));
  CUcontext other = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&other, nullptr, 0, 0) == CUDA_SUCCESS);
  CUdeviceptr late = 0;
  CHECK(open_handle(late, handle) == CUDA_ERROR_MAP_FAILED);
  CHECK(cu().cuCtxDestroy_v2(other) == CUDA_SUCCESS);
  CHECK(CU(cuIpcCloseMemHandle)(pointer) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "memory that cannot be shared, and handles that name nothing") {
  CUipcMemHandle handle{};
  CUdeviceptr managed = 0, pooled = 0, pointer = 0;
  REQUIRE(cu().cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemAllocAsync(&pooled, 64, nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuIpcGetMemHandle)(&handle, managed) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuIpcGetMemHandle)(&handle, pooled) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuIpcGetMemHandle)(&handle, 0x1000) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuIpcGetMemHandle)(nullptr, allocate(64)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuIpcCloseMemHandle)(allocate(64)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFreeAsync(pooled, nullptr) == CUDA_SUCCESS);
  if (!is_cpu()) return;
  CHECK(open_handle(pointer, CUipcMemHandle{}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(open_handle(pointer, handle_of(allocate(64))) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE_FIXTURE(Fixture, "part: a pool of the process above" * doctest::skip()) {
  const auto data = from_hex<CUmemPoolPtrExportData>(environment(kHandle));
  void* const file = reinterpret_cast<void*>(static_cast<std::intptr_t>(std::stoi(environment(kDescriptor))));
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuMemPoolImportFromShareableHandle)(&pool, file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
          CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  auto copy = data;
  REQUIRE(CU(cuMemPoolImportPointer)(&pointer, pool, &copy) == CUDA_SUCCESS);
  auto host = download<unsigned>(pointer, kCount);
  for (unsigned& word : host) word += 1;
  CHECK(cu().cuMemcpyHtoD_v2(pointer, host.data(), kCount * 4) == CUDA_SUCCESS);
  CUdeviceptr own = 0;
  CHECK(CU(cuMemAllocFromPoolAsync)(&own, 64, pool, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuDeviceSetMemPool)(0, pool) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFreeAsync(pointer, nullptr) == CUDA_SUCCESS);
  copy.reserved[0] ^= 1;
  CHECK(CU(cuMemPoolImportPointer)(&pointer, pool, &copy) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "a pool and its memory are opened by another process") {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuMemPoolCreate)(&pool, &properties) == CUDA_SUCCESS);
  int file = -1;
  REQUIRE(CU(cuMemPoolExportToShareableHandle)(&file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
          CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  REQUIRE(CU(cuMemAllocFromPoolAsync)(&pointer, kCount * 4, pool, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemsetD32_v2(pointer, 8, kCount) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CUmemPoolPtrExportData data{};
  REQUIRE(CU(cuMemPoolExportPointer)(&data, pointer) == CUDA_SUCCESS);
  const int inherited = ::dup(file);  // without close-on-exec
  ::setenv(kHandle, to_hex(data).c_str(), 1);
  ::setenv(kDescriptor, std::to_string(inherited).c_str(), 1);
  Process child("part: a pool of the process above");
  ::close(inherited);
  CHECK(child.succeeds());
  CHECK(download<unsigned>(pointer, kCount) == std::vector<unsigned>(kCount, 9u));
  ::close(file);
  CHECK(cu().cuMemFreeAsync(pointer, nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);

  CUdeviceptr other = 0;
  REQUIRE(cu().cuMemAllocAsync(&other, 64, nullptr) == CUDA_SUCCESS);  // of a pool that is not shared
  CHECK(CU(cuMemPoolExportPointer)(&data, other) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemPoolExportPointer)(&data, allocate(64)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFreeAsync(other, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemPoolExportToShareableHandle)(&file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemPoolImportPointer)(&other, pool, &data) == CUDA_ERROR_INVALID_VALUE);
}
