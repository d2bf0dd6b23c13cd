// SPDX-License-Identifier: Apache-2.0
// Memory: allocation, release, queries.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/registered_memory.hpp"
#include "cpu/engine/host_pages.hpp"

using namespace quern::cpu::device;
using quern::cpu::engine::Allocation;
using quern::cpu::engine::AllocationKind;
using quern::cpu::engine::HostAccess;
using quern::cpu::engine::Mapping;

namespace {

const void* address_of(CUdeviceptr pointer) noexcept { return reinterpret_cast<const void*>(pointer); }

std::byte* allocate(AllocationKind kind, std::size_t bytes, unsigned flags) {
  Driver& driver = Driver::get();
  const auto state = driver.current();
  refuse_unsafe_call();
  require(bytes > 0);
  const auto allocation = driver.allocate(*state, kind, bytes, flags);
  require(allocation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  return allocation->base;
}

/// Memory of other contexts is freed as well, and without a current context.
void require_current_works(Driver& driver) {
  const std::vector<CUcontext>& stack = context_stack();
  if (!stack.empty() && stack.back() != nullptr) driver.current();
}

/// Waits for work that may use the memory, as on a GPU, where freeing synchronises. Null is no error.
void release(std::initializer_list<AllocationKind> kinds, const void* base) {
  Driver& driver = Driver::get();
  require_current_works(driver);
  refuse_unsafe_call();
  if (base == nullptr) return;
  const auto allocation = driver.memory().find(base);
  require(allocation != nullptr && allocation->base == base &&
          std::find(kinds.begin(), kinds.end(), allocation->kind) != kinds.end());
  driver.contexts().synchronize(allocation->owner);
  require(driver.memory().remove(*allocation));
}

bool is_host(const Allocation& allocation) {
  return allocation.kind == AllocationKind::host || allocation.kind == AllocationKind::registered ||
         allocation.kind == AllocationKind::shadow || is_pooled_on_host(allocation);
}

/// Copies write to registered memory, and kernels if it is mapped.
void require_writable(const std::byte* begin, std::size_t bytes) {
  const std::optional<HostAccess> access = quern::cpu::engine::host_access(begin, bytes);
  if (!access)
    fail(CUDA_ERROR_OPERATING_SYSTEM, "/proc/self/maps, which shows mapped memory, cannot be read");
  if (*access == HostAccess::none)
    fail(CUDA_ERROR_INVALID_VALUE,
         "no memory is mapped at some or all of these addresses, or it may not be accessed");
  if (*access == HostAccess::read)
    fail(CUDA_ERROR_INVALID_VALUE,
         "some or all of this memory is read-only, which the device does not register");
}

}  // namespace

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto state = driver.current();
    require(free_bytes != nullptr && total_bytes != nullptr);
    driver.scheduler().wait_for_disposal();
    *free_bytes = driver.memory().free_bytes(state->device);
    *total_bytes = driver.memory().total_bytes(state->device);
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  return entry([&] {
    require(pointer != nullptr);
    *pointer = reinterpret_cast<CUdeviceptr>(allocate(AllocationKind::device, bytes, 0));
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch, std::size_t width_bytes,
                            std::size_t height, unsigned element_bytes) {
  return entry([&] {
    constexpr std::size_t kPitchAlignment = 512;
    Driver::get().current();
    require(pointer != nullptr && pitch != nullptr && width_bytes > 0 && height > 0);
    require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
    require(width_bytes <= std::numeric_limits<std::size_t>::max() - kPitchAlignment);
    const std::size_t row_bytes = quern::cpu::engine::round_up(width_bytes, kPitchAlignment);
    std::size_t bytes = 0;
    require(!__builtin_mul_overflow(row_bytes, height, &bytes));
    *pointer = reinterpret_cast<CUdeviceptr>(allocate(AllocationKind::device, bytes, 0));
    *pitch = row_bytes;
  });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return entry([&] {
    release({AllocationKind::device, AllocationKind::managed, AllocationKind::pooled}, address_of(pointer));
  });
}

CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return entry([&] {
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    require(pointer != nullptr && (flags & ~kKnown) == 0);
    if (bytes == 0) {
      Driver::get().current();
      *pointer = nullptr;
      return;
    }
    *pointer = allocate(AllocationKind::host, bytes, flags);
  });
}

CUresult cuMemAllocHost_v2(void** pointer, std::size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }

CUresult cuMemFreeHost(void* pointer) {
  return entry([&] { release({AllocationKind::host}, pointer); });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_pointer, void* pointer, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(device_pointer != nullptr && flags == 0);
    const auto allocation = driver.memory().find(pointer);
    require(allocation != nullptr && is_host(*allocation));
    *device_pointer = device_address(driver, *allocation, pointer);
  });
}

CUresult cuMemHostGetFlags(unsigned* flags, void* pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(flags != nullptr);
    const auto allocation = driver.memory().find(pointer);
    require(allocation != nullptr &&
            (allocation->kind == AllocationKind::host || allocation->kind == AllocationKind::registered));
    // With unified addressing all page-locked memory is mapped. The flags of registration are the same bits.
    static_assert(CU_MEMHOSTREGISTER_PORTABLE == CU_MEMHOSTALLOC_PORTABLE);
    *flags = allocation->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  });
}

CUresult cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned flags) {
  return entry([&] {
    // Memory of other devices (CU_MEMHOSTREGISTER_IOMEMORY) is not known here.
    constexpr unsigned kKnown =
        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    Driver& driver = Driver::get();
    const auto state = driver.current();
    refuse_unsafe_call();
    require(pointer != nullptr && bytes > 0);
    require((flags & ~kKnown) == 0);
    require(!driver.window().reaches(pointer), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    auto* const base = static_cast<std::byte*>(pointer);
    require_writable(base, bytes);
    const bool mapped = (flags & CU_MEMHOSTREGISTER_DEVICEMAP) != 0;
    std::shared_ptr<Mapping> mapping = mapped ? map(driver, *state, base, bytes) : nullptr;
    const auto adopted = driver.memory().adopt(base,
                                               {bytes, AllocationKind::registered, state->device, state->id,
                                                flags & ~unsigned{CU_MEMHOSTREGISTER_READ_ONLY}},
                                               mapping);
    if (adopted != nullptr && !state->ended.load()) return;
    if (adopted != nullptr) driver.memory().remove(*adopted);
    if (mapping != nullptr) unmap(driver, *mapping);
    require_not_ended(*state);
    fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  });
}

CUresult cuMemHostUnregister(void* pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    refuse_unsafe_call();
    const auto allocation = driver.memory().find(pointer);
    require(allocation != nullptr && allocation->kind == AllocationKind::registered,
            CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    require(allocation->base == pointer);
    driver.contexts().synchronize(allocation->owner);
    driver.memory().remove(*allocation);
    if (const auto mapping = driver.memory().mapping_of(*allocation)) unmap(driver, *mapping);
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned flags) {
  return entry([&] {
    require(pointer != nullptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
    *pointer = reinterpret_cast<CUdeviceptr>(allocate(AllocationKind::managed, bytes, flags));
  });
}
