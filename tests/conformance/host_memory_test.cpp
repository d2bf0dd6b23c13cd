// SPDX-License-Identifier: Apache-2.0
// Host memory that the program registers, memory that host and device share, and stream-ordered memory.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "pages.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

constexpr std::size_t kCount = 5000;

}  // namespace

TEST_CASE_FIXTURE(Fixture, "host memory is registered once, unregistered once, and overlaps are refused") {
  std::vector<unsigned> host(kCount);
  REQUIRE(cu().cuMemHostRegister_v2(host.data(), kCount * 4, 0) == CUDA_SUCCESS);
  CHECK(cu().cuMemHostRegister_v2(host.data(), kCount * 4, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK(cu().cuMemHostRegister_v2(host.data() + kCount / 2, 64, 0) ==
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  unsigned type = 0;
  CHECK(cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   reinterpret_cast<CUdeviceptr>(host.data() + 7)) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_HOST);
  CHECK(cu().cuMemHostUnregister(host.data()) == CUDA_SUCCESS);
  CHECK(cu().cuMemHostUnregister(host.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(cu().cuMemHostRegister_v2(nullptr, 64, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemHostRegister_v2(host.data(), 0, 0) == CUDA_ERROR_INVALID_VALUE);
}

namespace {

/// Registers and unregisters memory, with both flags that the device has.
CUresult register_host(void* host, std::size_t bytes) {
  CUresult first = CUDA_SUCCESS;
  for (const unsigned flags : {unsigned{CU_MEMHOSTREGISTER_DEVICEMAP}, 0u}) {
    const CUresult result = cu().cuMemHostRegister_v2(host, bytes, flags);
    if (flags != 0) first = result;
    CHECK(result == first);
    if (result == CUDA_SUCCESS) CHECK(cu().cuMemHostUnregister(host) == CUDA_SUCCESS);
  }
  return first;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "host memory that cannot be read and written is not registered") {
  if (!is_cpu()) return;
  const std::size_t page = Pages::size();
  const Pages pages(4);
  std::memset(pages.at(0), 7, 4 * page);
  CHECK(register_host(pages.at(0), 4 * page) == CUDA_SUCCESS);
  pages.protect(2, PROT_READ);
  CHECK(register_host(pages.at(0), 2 * page) == CUDA_SUCCESS);
  CHECK(register_host(pages.at(0), 2 * page + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(register_host(pages.at(2) + 5, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(register_host(pages.at(3), page) == CUDA_SUCCESS);
  pages.protect(2, PROT_NONE);
  CHECK(register_host(pages.at(1), 2 * page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(register_host(pages.at(2), page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(register_host(pages.at(3) - 1, 2) == CUDA_ERROR_INVALID_VALUE);
  pages.unmap(2);
  // A thread of the device that compiles in the background may map memory there.
  const auto is_refused = [&](void* host, std::size_t bytes) {
    unsigned char resident = 0;
    return register_host(host, bytes) == CUDA_ERROR_INVALID_VALUE ||
           ::mincore(pages.at(2), page, &resident) == 0;
  };
  CHECK(register_host(pages.at(1), page) == CUDA_SUCCESS);
  CHECK(is_refused(pages.at(1), page + 1));
  CHECK(is_refused(pages.at(1), 3 * page));
  CHECK(is_refused(pages.at(2), page));
  CHECK(register_host(pages.at(3), SIZE_MAX) == CUDA_ERROR_INVALID_VALUE);
  for (const std::size_t at : {0U, 1U, 3U}) CHECK(*pages.at(at) == 7);
}

TEST_CASE_FIXTURE(Fixture, "a mapped file is registered as far as the file goes") {
  if (!is_cpu()) return;
  const std::size_t page = Pages::size();
  const int file = ::memfd_create("registered", MFD_CLOEXEC);
  REQUIRE(::ftruncate(file, static_cast<off_t>(page + 9)) == 0);
  {
    const Pages pages(3, file);
    CHECK(register_host(pages.at(0), 2 * page) == CUDA_SUCCESS);  // the second page has the file's last bytes
    CHECK(register_host(pages.at(0), 3 * page) == CUDA_ERROR_INVALID_VALUE);
    CHECK(register_host(pages.at(2), 8) == CUDA_ERROR_INVALID_VALUE);
    CHECK(register_host(pages.at(1) + 4, page) == CUDA_ERROR_INVALID_VALUE);
  }
  ::close(file);
}

TEST_CASE_FIXTURE(Fixture, "copies to and from registered memory run in the stream's order") {
  std::vector<unsigned> host(kCount, 3);
  REQUIRE(cu().cuMemHostRegister_v2(host.data(), kCount * 4, 0) == CUDA_SUCCESS);
  const CUdeviceptr device = allocate(kCount * 4);
  const CUstream queue = stream();
  CHECK(cu().cuMemcpyHtoDAsync_v2(device, host.data(), kCount * 4, queue) == CUDA_SUCCESS);
  CHECK(launch("fill", 4, 128, queue, device, unsigned{100}, 9u) == CUDA_SUCCESS);
  CHECK(cu().cuMemcpyDtoHAsync_v2(host.data(), device, kCount * 4, queue) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(queue) == CUDA_SUCCESS);
  CHECK(host[99] == 9);
  CHECK(host[100] == 3);
  CHECK(cu().cuMemHostUnregister(host.data()) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "a kernel sees mapped host memory, and the host what the kernel wrote") {
  std::vector<unsigned> host(kCount, 3);
  REQUIRE(cu().cuMemHostRegister_v2(host.data(), kCount * 4, CU_MEMHOSTREGISTER_DEVICEMAP) == CUDA_SUCCESS);
  CUdeviceptr device = 0;
  REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, host.data() + 10, 0) == CUDA_SUCCESS);
  host[2000] = 17;  // before the launch: the kernel leaves it alone, and so must everything else
  REQUIRE(launch("fill", 8, 128, nullptr, device, 1000u, 77u) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(host[9] == 3);
  CHECK(host[10] == 77);
  CHECK(host[1009] == 77);
  CHECK(host[1010] == 3);
  CHECK(host[2000] == 17);
  host[10] = 5;  // a host write between launches is kept
  std::vector<unsigned> copy(2);
  CHECK(cu().cuMemcpyDtoH_v2(copy.data(), device, 8) == CUDA_SUCCESS);
  CHECK(copy == std::vector<unsigned>{5, 77});
  REQUIRE(launch("fill", 1, 32, nullptr, CUdeviceptr{device + 4}, 1u, 6u) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(host[10] == 5);
  CHECK(host[11] == 6);
  CHECK(cu().cuMemHostUnregister(host.data()) == CUDA_SUCCESS);
  CHECK(cu().cuMemHostGetDevicePointer_v2(&device, host.data(), 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "all page-locked memory is mapped, however it was registered or allocated") {
  constexpr unsigned kPortable = CU_MEMHOSTREGISTER_PORTABLE, kMapped = CU_MEMHOSTREGISTER_DEVICEMAP;
  for (const unsigned asked : {0u, kPortable, kMapped, kPortable | kMapped}) {
    CAPTURE(asked);
    std::vector<unsigned> host(kCount, 3);
    REQUIRE(cu().cuMemHostRegister_v2(host.data(), kCount * 4, asked) == CUDA_SUCCESS);
    unsigned flags = 0;
    CHECK(cu().cuMemHostGetFlags(&flags, host.data() + 1) == CUDA_SUCCESS);
    CHECK(flags == (asked | kMapped));
    CUdeviceptr device = 0, again = 0, by_attribute = 0;
    REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, host.data() + 10, 0) == CUDA_SUCCESS);
    REQUIRE(cu().cuMemHostGetDevicePointer_v2(&again, host.data() + 10, 0) == CUDA_SUCCESS);
    CHECK(again == device);
    CHECK(cu().cuPointerGetAttribute(&by_attribute, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                     reinterpret_cast<CUdeviceptr>(host.data() + 10)) == CUDA_SUCCESS);
    CHECK(by_attribute == device);
    host[11] = 4;
    REQUIRE(launch("fill", 1, 32, nullptr, device, 1u, 77u) == CUDA_SUCCESS);
    REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(std::vector<unsigned>(&host[9], &host[12]) == std::vector<unsigned>{3, 77, 4});
    CHECK(cu().cuMemHostUnregister(host.data() + 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cu().cuMemHostUnregister(host.data()) == CUDA_SUCCESS);
    CHECK(cu().cuMemHostGetFlags(&flags, host.data()) == CUDA_ERROR_INVALID_VALUE);
  }
  for (const unsigned asked :
       {0u, unsigned{CU_MEMHOSTALLOC_PORTABLE}, unsigned{CU_MEMHOSTALLOC_WRITECOMBINED}}) {
    void* host = nullptr;
    REQUIRE(cu().cuMemHostAlloc(&host, 64, asked) == CUDA_SUCCESS);
    unsigned flags = 0;
    CHECK(cu().cuMemHostGetFlags(&flags, host) == CUDA_SUCCESS);
    CHECK(flags == (asked | CU_MEMHOSTALLOC_DEVICEMAP));
    CHECK(cu().cuMemFreeHost(host) == CUDA_SUCCESS);
  }
}

TEST_CASE_FIXTURE(Fixture, "managed memory is the host's and the device's") {
  CUdeviceptr shared = 0;
  REQUIRE(cu().cuMemAllocManaged(&shared, kCount * 4, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  auto* const host = reinterpret_cast<unsigned*>(shared);
  host[0] = 1;
  REQUIRE(launch("fill", 8, 128, nullptr, CUdeviceptr{shared + 4}, 1000u, 77u) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(host[0] == 1);
  CHECK(host[1000] == 77);
  unsigned managed = 0;
  CHECK(cu().cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, shared) == CUDA_SUCCESS);
  CHECK((managed & 0xff) == 1);
  CHECK(cu().cuMemFree_v2(shared) == CUDA_SUCCESS);
  CHECK(cu().cuMemAllocManaged(&shared, 64, 99) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "the host sees atomic updates of its memory while the kernel runs") {
  for (const bool managed : {false, true}) {
    CUdeviceptr device = 0;
    void* host = nullptr;
    if (managed) {
      REQUIRE(cu().cuMemAllocManaged(&device, 64, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
      host = reinterpret_cast<void*>(device);
    } else {
      REQUIRE(cu().cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
      REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, host, 0) == CUDA_SUCCESS);
    }
    volatile unsigned* const counter = static_cast<unsigned*>(host);
    *counter = 0;
    const CUstream queue = stream();
    REQUIRE(launch("report", 1, 32, queue, device, std::uint64_t{500'000'000}) == CUDA_SUCCESS);
    while (*counter != 64 && cu().cuStreamQuery(queue) == CUDA_ERROR_NOT_READY) {
    }
    const auto seen = std::chrono::steady_clock::now();
    REQUIRE(cu().cuStreamSynchronize(queue) == CUDA_SUCCESS);
    CHECK(*counter == 64);
    CHECK(std::chrono::steady_clock::now() - seen > std::chrono::milliseconds(100));
    CHECK((managed ? cu().cuMemFree_v2(device) : cu().cuMemFreeHost(host)) == CUDA_SUCCESS);
  }
}

TEST_CASE_FIXTURE(Fixture, "managed memory is prefetched and advised on, and nothing else is") {
  if (!is_cpu()) return;  // GPUs refuse both where they do not move memory by themselves
  CUdeviceptr managed = 0;
  REQUIRE(cu().cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  std::memset(reinterpret_cast<void*>(managed), 7, 4096);
  const CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0}, host{CU_MEM_LOCATION_TYPE_HOST, 0};
  const CUstream on = stream();
  CHECK(cu().cuMemPrefetchAsync_v2(managed, 4096, device, 0, on) == CUDA_SUCCESS);
  CHECK(cu().cuMemPrefetchAsync_v2(managed + 96, 4000, host, 0, nullptr) == CUDA_SUCCESS);
  CHECK(cu().cuMemAdvise_v2(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host) == CUDA_SUCCESS);
  CHECK(cu().cuMemAdvise_v2(managed, 10, CU_MEM_ADVISE_SET_READ_MOSTLY, {CU_MEM_LOCATION_TYPE_INVALID, 7}) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(download<std::uint8_t>(managed, 4096).back() == 7);
  CHECK(cu().cuMemPrefetchAsync_v2(managed, 4097, device, 0, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemPrefetchAsync_v2(managed + 96, 4001, device, 0, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemPrefetchAsync_v2(managed, 0, device, 0, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemPrefetchAsync_v2(managed, 16, device, 1, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemPrefetchAsync_v2(managed, 16, {CU_MEM_LOCATION_TYPE_DEVICE, 77}, 0, on) ==
        CUDA_ERROR_INVALID_DEVICE);
  CHECK(cu().cuMemPrefetchAsync_v2(managed, 16, {CU_MEM_LOCATION_TYPE_INVALID, 0}, 0, on) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemAdvise_v2(managed, 16, static_cast<CUmem_advise>(7), host) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemAdvise_v2(managed, 16, CU_MEM_ADVISE_SET_ACCESSED_BY, {CU_MEM_LOCATION_TYPE_DEVICE, 77}) ==
        CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr plain = allocate(64);
  CHECK(cu().cuMemPrefetchAsync_v2(plain, 64, device, 0, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemAdvise_v2(plain, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, host) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemFree_v2(managed) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "stream-ordered memory lives until the stream reaches its release") {
  const CUstream queue = stream();
  CUdeviceptr memory = 0;
  REQUIRE(cu().cuMemAllocAsync(&memory, kCount * 4, queue) == CUDA_SUCCESS);
  std::vector<unsigned> host(kCount);
  CHECK(cu().cuMemsetD32Async(memory, 8, kCount, queue) == CUDA_SUCCESS);
  CHECK(launch("fill", 8, 128, queue, memory, 1000u, 77u) == CUDA_SUCCESS);
  CHECK(cu().cuMemcpyDtoHAsync_v2(host.data(), memory, kCount * 4, queue) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(memory, queue) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(queue) == CUDA_SUCCESS);
  CHECK(host[999] == 77);
  CHECK(host[1000] == 8);
  CHECK(cu().cuMemFreeAsync(memory, queue) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "a device's default pool answers about itself") {
  CUmemoryPool pool = nullptr;
  REQUIRE(cu().cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  cuuint64_t threshold = 0;
  CHECK(cu().cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) == CUDA_SUCCESS);
  CHECK(cu().cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) == CUDA_SUCCESS);
  CHECK(threshold == 0);
  CHECK(cu().cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(cu().cuMemPoolTrimTo(reinterpret_cast<CUmemoryPool>(8), 0) == CUDA_ERROR_INVALID_VALUE);
}
