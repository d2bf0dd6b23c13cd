// SPDX-License-Identifier: Apache-2.0
// Pools of stream-ordered memory. Source: NVIDIA, "CUDA Driver API", section "Stream Ordered Memory
// Allocator".
#include <cstdint>

#include "suite.hpp"

using namespace quern::conformance;

namespace {

CUmemPoolProps on_device(std::size_t max_bytes = 0) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.maxSize = max_bytes;
  return properties;
}

CUmemoryPool make_pool(std::size_t max_bytes = 0) {
  const CUmemPoolProps properties = on_device(max_bytes);
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuMemPoolCreate)(&pool, &properties) == CUDA_SUCCESS);
  return pool;
}

cuuint64_t number(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = ~cuuint64_t{0};
  REQUIRE(cu().cuMemPoolGetAttribute(pool, attribute, &value) == CUDA_SUCCESS);
  return value;
}

}  // namespace

TEST_CASE("memory of a pool is counted, and freed in the order of the stream") {
  const Fixture fixture;
  const CUstream stream = fixture.stream();
  const CUmemoryPool pool = make_pool();
  CUdeviceptr pointer = 0;
  REQUIRE(CU(cuMemAllocFromPoolAsync)(&pointer, 1 << 20, pool, stream) == CUDA_SUCCESS);
  CHECK(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1 << 20);
  CHECK(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 32 << 20);
  CUmemoryPool its_pool = nullptr;
  CHECK(cu().cuPointerGetAttribute(&its_pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer) == CUDA_SUCCESS);
  CHECK(its_pool == pool);
  CHECK(cu().cuMemsetD32Async(pointer, 7, 1 << 18, stream) == CUDA_SUCCESS);
  std::uint32_t last = 0;
  CHECK(cu().cuMemcpyDtoHAsync_v2(&last, pointer + (1 << 20) - 4, 4, stream) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(last == 7);
  CHECK(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1 << 20);
  cuuint64_t zero = 0;
  CHECK(cu().cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero) == CUDA_SUCCESS);
  CHECK(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
  cuuint64_t one = 1;
  CHECK(cu().cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
}

TEST_CASE("a pool has a limit of its own") {
  const Fixture fixture;
  const CUstream stream = fixture.stream();
  const CUmemoryPool pool = make_pool(std::size_t{64} << 20);
  CUdeviceptr pointer = 0;
  CHECK(CU(cuMemAllocFromPoolAsync)(&pointer, std::size_t{65} << 20, pool, stream) ==
        CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(CU(cuMemAllocFromPoolAsync)(&pointer, std::size_t{32} << 20, pool, stream) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(CU(cuMemAllocFromPoolAsync)(&pointer, std::size_t{64} << 20, pool, stream) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
}

TEST_CASE("attributes of a pool come back as they were set") {
  const Fixture fixture;
  const CUmemoryPool pool = make_pool();
  int flag = 0;
  CHECK(cu().cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag) == CUDA_SUCCESS);
  CHECK(flag == 1);
  flag = 0;
  CHECK(cu().cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag) == CUDA_SUCCESS);
  flag = 9;
  CHECK(cu().cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag) == CUDA_SUCCESS);
  CHECK(flag == 0);
  CHECK(number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 0);
  cuuint64_t threshold = 12345;
  CHECK(cu().cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) == CUDA_SUCCESS);
  CHECK(number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 12345);
  CHECK(cu().cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
}

// "CUDA C++ Programming Guide", section "Stream Ordered Memory Allocator": cudaFreeAsync frees what
// cudaMalloc allocated, too.
TEST_CASE("memory that is of no pool is freed in the order of the stream, too") {
  const Fixture fixture;
  const CUstream stream = fixture.stream();
  std::size_t before = 0, after = 0, total = 0;
  REQUIRE(cu().cuMemGetInfo_v2(&before, &total) == CUDA_SUCCESS);
  const CUdeviceptr pointer = fixture.allocate(1 << 20);
  CUdeviceptr managed = 0;
  REQUIRE(cu().cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  CHECK(cu().cuMemsetD32Async(pointer, 7, 1 << 18, stream) == CUDA_SUCCESS);
  CHECK(cu().cuMemsetD32Async(managed, 8, 1024, stream) == CUDA_SUCCESS);
  std::uint32_t last[2] = {0, 0};
  CHECK(cu().cuMemcpyDtoHAsync_v2(&last[0], pointer + (1 << 20) - 4, 4, stream) == CUDA_SUCCESS);
  CHECK(cu().cuMemcpyDtoHAsync_v2(&last[1], managed + 4092, 4, stream) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(pointer, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFreeAsync(managed, stream) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cu().cuMemFree_v2(managed) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(last[0] == 7);
  CHECK(last[1] == 8);
  if (!is_cpu()) return;
  REQUIRE(cu().cuMemGetInfo_v2(&after, &total) == CUDA_SUCCESS);
  CHECK(after >= before);  // another context's last work may have given memory back meanwhile
  // Only whole allocations of the device, not host memory.
  const CUdeviceptr whole = fixture.allocate(4096);
  CHECK(cu().cuMemFreeAsync(whole + 64, stream) == CUDA_ERROR_INVALID_VALUE);
  void* host = nullptr;
  REQUIRE(cu().cuMemHostAlloc(&host, 64, 0) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(host), stream) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("cuMemAllocAsync takes from the device's current pool") {
  const Fixture fixture;
  const CUstream stream = fixture.stream();
  CUmemoryPool usual = nullptr;
  CUmemoryPool current = nullptr;
  REQUIRE(cu().cuDeviceGetDefaultMemPool(&usual, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuDeviceGetMemPool)(&current, 0) == CUDA_SUCCESS);
  CHECK(current == usual);
  const CUmemoryPool pool = make_pool();
  CHECK(CU(cuDeviceSetMemPool)(0, pool) == CUDA_SUCCESS);
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CHECK(CU(cuDeviceGetMemPool)(&current, 0) == CUDA_SUCCESS);
  CHECK(current == pool);
  CUdeviceptr pointer = 0;
  CHECK(cu().cuMemAllocAsync(&pointer, 4096, stream) == CUDA_SUCCESS);
  CHECK(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 4096);
  // Memory outlives its pool; the device goes back to its default pool.
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
  CHECK(CU(cuDeviceGetMemPool)(&current, 0) == CUDA_SUCCESS);
  CHECK(current == usual);
  CHECK(cu().cuMemsetD8Async(pointer, 1, 4096, stream) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(stream) == CUDA_SUCCESS);
  if (!is_cpu()) return;  // the functions of CUDA 13
  CHECK(CU(cuMemGetDefaultMemPool)(&current, &here, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
  CHECK(current == usual);
  CHECK(CU(cuMemSetMemPool)(&here, CU_MEM_ALLOCATION_TYPE_PINNED, usual) == CUDA_SUCCESS);
  CHECK(CU(cuMemGetMemPool)(&current, &here, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
  CHECK(current == usual);
}

TEST_CASE("a pool's own device always has access to it") {
  const Fixture fixture;
  const CUmemoryPool pool = make_pool();
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccess_flags flags{};
  CHECK(CU(cuMemPoolGetAccess)(&flags, pool, &here) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUmemAccessDesc wish{here, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  CHECK(CU(cuMemPoolSetAccess)(pool, &wish, 1) == CUDA_ERROR_INVALID_DEVICE);
  wish.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  CHECK(CU(cuMemPoolSetAccess)(pool, &wish, 1) == CUDA_ERROR_NOT_SUPPORTED);
  wish.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(CU(cuMemPoolSetAccess)(pool, &wish, 1) == CUDA_SUCCESS);
  wish.location.id = 99;
  CHECK(CU(cuMemPoolSetAccess)(pool, &wish, 1) == CUDA_ERROR_INVALID_DEVICE);
  wish.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  CHECK(CU(cuMemPoolSetAccess)(pool, &wish, 1) == CUDA_ERROR_NOT_SUPPORTED);
  here.id = 99;
  CHECK(CU(cuMemPoolGetAccess)(&flags, pool, &here) == CUDA_ERROR_INVALID_VALUE);
  CUmemPoolProps far = on_device();
  far.location.id = 99;
  CUmemoryPool none = nullptr;
  CHECK(CU(cuMemPoolCreate)(&none, &far) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
}

TEST_CASE("wrong uses of pools are errors") {
  const Fixture fixture;
  CUmemoryPool usual = nullptr;
  REQUIRE(cu().cuDeviceGetDefaultMemPool(&usual, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemPoolDestroy)(usual) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemPoolCreate)(nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuDeviceGetMemPool)(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  if (!is_cpu()) return;  // stale handles are recognised here alone
  const CUmemoryPool stale = make_pool();
  CHECK(CU(cuMemPoolDestroy)(stale) == CUDA_SUCCESS);
  CHECK(CU(cuMemPoolDestroy)(stale) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr pointer = 0;
  CHECK(CU(cuMemAllocFromPoolAsync)(&pointer, 16, stale, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuDeviceSetMemPool)(0, stale) == CUDA_ERROR_INVALID_VALUE);
  CUmemPoolProps elsewhere = on_device();
  elsewhere.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  CUmemoryPool pool = nullptr;
  elsewhere.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CHECK(CU(cuMemPoolCreate)(&pool, &elsewhere) == CUDA_ERROR_INVALID_VALUE);
  elsewhere.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};
  CHECK(CU(cuMemPoolCreate)(&pool, &elsewhere) == CUDA_ERROR_INVALID_VALUE);
  CUmemPoolProps shared = on_device();
  shared.handleTypes = CU_MEM_HANDLE_TYPE_WIN32;
  CHECK(CU(cuMemPoolCreate)(&pool, &shared) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("a pool of host memory") {
  const Fixture fixture;
  CUmemPoolProps properties = on_device();
  properties.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuMemPoolCreate)(&pool, &properties) == CUDA_SUCCESS);
  CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, 0}, device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccess_flags flags{};
  CHECK(CU(cuMemPoolGetAccess)(&flags, pool, &host) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(CU(cuMemPoolGetAccess)(&flags, pool, &device) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  const CUmemAccessDesc grant{device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK(CU(cuMemPoolSetAccess)(pool, &grant, 1) == CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  REQUIRE(CU(cuMemAllocFromPoolAsync)(&pointer, 4096, pool, nullptr) == CUDA_SUCCESS);
  REQUIRE(fixture.launch("fill", 8, 128, nullptr, pointer, 1024u, 6u) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(reinterpret_cast<const unsigned*>(pointer)[1023] == 6);
  unsigned type = 0;
  CHECK(cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_HOST);
  CHECK(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 4096);
  CHECK(cu().cuMemFreeAsync(pointer, nullptr) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(CU(cuMemSetMemPool)(&device, CU_MEM_ALLOCATION_TYPE_PINNED, pool) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemSetMemPool)(&host, CU_MEM_ALLOCATION_TYPE_PINNED, pool) == CUDA_SUCCESS);
  CUmemoryPool current = nullptr, usual = nullptr;
  CHECK(CU(cuMemGetMemPool)(&current, &host, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
  CHECK(current == pool);
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
  CHECK(CU(cuMemGetMemPool)(&current, &host, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
  CHECK(CU(cuMemGetDefaultMemPool)(&usual, &host, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
  CHECK(current == usual);
}

TEST_CASE("a pool of managed memory") {
  const Fixture fixture;
  CUmemLocation nowhere{CU_MEM_LOCATION_TYPE_NONE, 0}, device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool usual = nullptr, of_device = nullptr;
  const CUresult known = CU(cuMemGetMemPool)(&usual, &nowhere, CU_MEM_ALLOCATION_TYPE_MANAGED);
  if (!is_cpu() && known != CUDA_SUCCESS) return;  // only with concurrent managed access
  REQUIRE(known == CUDA_SUCCESS);
  CHECK(cu().cuDeviceGetDefaultMemPool(&of_device, 0) == CUDA_SUCCESS);
  CHECK(usual != of_device);
  CHECK(CU(cuMemGetMemPool)(&usual, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_ERROR_INVALID_VALUE);
  CUmemPoolProps properties = on_device();
  properties.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  properties.location = nowhere;
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuMemPoolCreate)(&pool, &properties) == CUDA_SUCCESS);
  CHECK(CU(cuMemSetMemPool)(&device, CU_MEM_ALLOCATION_TYPE_MANAGED, pool) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemSetMemPool)(&nowhere, CU_MEM_ALLOCATION_TYPE_MANAGED, pool) == CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  REQUIRE(CU(cuMemAllocFromPoolAsync)(&pointer, 4096, pool, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  auto* const words = reinterpret_cast<unsigned*>(pointer);
  words[1023] = 5;
  REQUIRE(fixture.launch("fill", 8, 128, nullptr, pointer, 1023u, 6u) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(words[0] == 6);
  CHECK(words[1022] == 6);
  CHECK(words[1023] == 5);
  unsigned managed = 0;
  CHECK(cu().cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer) == CUDA_SUCCESS);
  CHECK(managed == 1);
  CHECK(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 4096);
  CHECK(cu().cuMemFreeAsync(pointer, nullptr) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
  CUmemoryPool current = nullptr;
  CHECK(CU(cuMemGetMemPool)(&current, &nowhere, CU_MEM_ALLOCATION_TYPE_MANAGED) == CUDA_SUCCESS);
  CHECK(current == usual);
}

TEST_CASE("a stream tells its context, and that it does not capture") {
  const Fixture fixture;
  const CUstream stream = fixture.stream();
  CUcontext context = nullptr;
  CHECK(CU(cuStreamGetCtx)(stream, &context) == CUDA_SUCCESS);
  CHECK(context == fixture.context);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  CHECK(CU(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(CU(cuStreamIsCapturing)(stream, nullptr) == CUDA_ERROR_INVALID_VALUE);
}
