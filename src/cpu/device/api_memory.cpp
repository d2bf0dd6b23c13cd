// SPDX-License-Identifier: Apache-2.0
// Memory: allocated, freed, asked about.
#include "cpu/device/cuda_api.hpp"

#include "cpu/device/driver.hpp"

using namespace quern::cpu::device;
using quern::cpu::engine::Allocation;
using quern::cpu::engine::AllocationKind;

namespace {

const void* address_of(CUdeviceptr pointer) noexcept { return reinterpret_cast<const void*>(pointer); }

std::byte* allocate(AllocationKind kind, std::size_t bytes, unsigned flags) {
  Driver& driver = Driver::get();
  const auto state = driver.current();
  require(bytes > 0);
  const auto allocation = driver.memory().allocate({bytes, kind, state->device, state->id, flags});
  require(allocation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  return allocation->base;
}

/// Work that may use the memory ends first, as on a GPU, where freeing synchronises.
void release(AllocationKind kind, const void* base) {
  Driver& driver = Driver::get();
  const auto state = driver.current();
  const auto allocation = driver.memory().find(base);
  require(allocation != nullptr && allocation->base == base && allocation->kind == kind);
  driver.synchronize_owner(allocation->owner);
  require(driver.memory().remove(base, kind) != nullptr);
}

/// Attributes whose value is a T.
template <class T>
void store(void* data, T value) {
  *static_cast<T*>(data) = value;
}

void pointer_attribute(void* data, CUpointer_attribute attribute, const Allocation& allocation,
                       CUdeviceptr pointer) {
  const bool host = allocation.kind == AllocationKind::host;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return store(data, Driver::get().context_of(allocation.owner));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return store<unsigned>(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return store(data, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(host);
      return store(data, reinterpret_cast<void*>(pointer));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return store<unsigned long long>(data, allocation.id);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return store(data, static_cast<int>(allocation.device));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return store(data, reinterpret_cast<CUdeviceptr>(allocation.base));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return store<std::size_t>(data, allocation.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return store(data, true);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return store(data, false);
    default:
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto state = driver.current();
    require(free_bytes != nullptr && total_bytes != nullptr);
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

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return entry([&] { release(AllocationKind::device, address_of(pointer)); });
}

CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return entry([&] {
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    require(pointer != nullptr && (flags & ~kKnown) == 0);
    *pointer = allocate(AllocationKind::host, bytes, flags);
  });
}

CUresult cuMemFreeHost(void* pointer) {
  return entry([&] { release(AllocationKind::host, pointer); });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_pointer, void* pointer, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(device_pointer != nullptr && flags == 0);
    const auto allocation = driver.memory().find(pointer);
    require(allocation != nullptr && allocation->kind == AllocationKind::host);
    *device_pointer = reinterpret_cast<CUdeviceptr>(pointer);  // one address space
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto allocation = driver.memory().find(address_of(pointer));
    require(allocation != nullptr, CUDA_ERROR_NOT_FOUND);
    if (base != nullptr) *base = reinterpret_cast<CUdeviceptr>(allocation->base);
    if (bytes != nullptr) *bytes = allocation->bytes;
  });
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(data != nullptr);
    const auto allocation = driver.memory().find(address_of(pointer));
    require(allocation != nullptr);
    pointer_attribute(data, attribute, *allocation, pointer);
  });
}
