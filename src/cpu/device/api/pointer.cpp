// SPDX-License-Identifier: Apache-2.0
// What pointers point to.
#include "cpu/device/cuda_api.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/mem_pool.hpp"
#include "cpu/device/registered_memory.hpp"

using namespace quern::cpu::device;
using quern::cpu::engine::Allocation;
using quern::cpu::engine::AllocationKind;
using quern::cpu::engine::Mapping;

namespace {

const void* address_of(CUdeviceptr pointer) noexcept { return reinterpret_cast<const void*>(pointer); }

bool is_host(const Allocation& allocation) {
  return allocation.kind == AllocationKind::host || allocation.kind == AllocationKind::registered ||
         allocation.kind == AllocationKind::shadow || is_pooled_on_host(allocation);
}

/// The host address of the memory at `pointer`.
void* host_address(const Allocation& allocation, CUdeviceptr pointer) {
  if (allocation.kind != AllocationKind::shadow) return reinterpret_cast<void*>(pointer);
  const std::shared_ptr<Mapping> mapping = allocation.shadow_of.lock();
  require(mapping != nullptr);  // unregistered meanwhile
  return mapping->host() + (pointer - reinterpret_cast<CUdeviceptr>(allocation.base));
}

const PoolCharge* charge_of(const Allocation& allocation) {
  return static_cast<const PoolCharge*>(allocation.charge.get());
}

unsigned handle_types(const Allocation& allocation) {
  if (allocation.kind == AllocationKind::mapped) return allocation.flags;
  const PoolCharge* const charge = charge_of(allocation);
  return charge != nullptr && charge->pool().is_shared() ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                                         : CU_MEM_HANDLE_TYPE_NONE;
}

/// Of the device of the current context.
CUmemAccess_flags access_flags(const Allocation& allocation, CUdeviceptr pointer) {
  Driver& driver = Driver::get();
  const auto device = static_cast<int>(driver.current_even_failed()->device);
  if (allocation.kind == AllocationKind::mapped) return driver.virtual_memory().access(pointer, device);
  const PoolCharge* const charge = charge_of(allocation);
  return charge == nullptr ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : charge->access(device);
}

/// Attributes whose value is a T.
template <class T>
void store(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
}
/// Truth values have the size of an unsigned, as the driver of a GPU writes them.
void store(void* data, bool value) { store(data, unsigned{value}); }

void read(void* data, CUpointer_attribute attribute, const Allocation& allocation, CUdeviceptr pointer) {
  const bool host = is_host(allocation);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return store(data, Driver::get().contexts().handle_of(allocation.owner));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return store<unsigned>(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return store(data, device_address(Driver::get(), allocation, address_of(pointer)));
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(host || allocation.kind == AllocationKind::managed);
      return store(data, host_address(allocation, pointer));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return store<unsigned long long>(data, allocation.id);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return store(data, static_cast<int>(allocation.device));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return store(data, reinterpret_cast<CUdeviceptr>(allocation.base));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return store<std::size_t>(data, allocation.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return store(data, true);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return store(data, allocation.kind == AllocationKind::managed);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return store<CUmemoryPool>(
          data, charge_of(allocation) != nullptr ? charge_of(allocation)->handle() : nullptr);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return store(data, allocation.synchronous.load());
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return store(data, allocation.kind == AllocationKind::device);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return store<unsigned long long>(data, handle_types(allocation));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return store<int>(data, access_flags(allocation, pointer));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return store(data, false);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      fail(CUDA_ERROR_NOT_SUPPORTED, "there is no other device on the bus that could use them");
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

/// For an address that is reserved, but nothing is mapped there.
void read(void* data, CUpointer_attribute attribute, const quern::cpu::engine::Range& reserved) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return store(data, false);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return store(data, reinterpret_cast<CUdeviceptr>(reserved.base));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return store<std::size_t>(data, reserved.bytes);
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

/// Throws Failure if the address is unknown.
void read(Driver& driver, void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  require(data != nullptr);
  if (const auto allocation = driver.memory().find(address_of(pointer)); allocation != nullptr)
    return read(data, attribute, *allocation, pointer);
  const std::optional<quern::cpu::engine::Range> reserved = driver.virtual_memory().reservation_of(pointer);
  require(reserved.has_value());
  read(data, attribute, *reserved);
}

/// The value for pointers that have none: that of a GPU's driver, which leaves the two ranges alone.
void store_default(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return store(data, pointer);
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return store<std::uint64_t>(data, 0);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return store<std::uint32_t>(data, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return store<int>(data, CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return store(data, false);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      break;
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

void read_or_default(Driver& driver, void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  require(data != nullptr);
  store_default(data, attribute, pointer);  // refuses attributes that do not exist
  try {
    read(driver, data, attribute, pointer);
  } catch (const Failure&) {  // the default stays
  }
}

}  // namespace

/// A fault of the context does not matter: nothing is read on the device.
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current_even_failed();
    read(driver, data, attribute, pointer);
  });
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(count > 0 && attributes != nullptr && data != nullptr);
    for (unsigned i = 0; i < count; ++i) read_or_default(driver, data[i], attributes[i], pointer);
  });
}

/// From then on the host waits for synchronous work on that memory.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    refuse_unsafe_call();
    require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    const auto allocation = driver.memory().find(address_of(pointer));
    require(allocation != nullptr);
    unsigned on = 0;
    std::memcpy(&on, value, sizeof on);
    allocation->synchronous.store(on != 0);
    if (on != 0) driver.contexts().synchronize(allocation->owner);
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

/// Linux's buffers that devices share (dma-buf) do not exist here: CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is
/// 0.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr pointer, std::size_t bytes,
                                       CUmemRangeHandleType type, unsigned long long flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(handle != nullptr && bytes > 0 && type == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
    require((flags & ~static_cast<unsigned long long>(CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE)) == 0);
    require(driver.memory().find_range(address_of(pointer), bytes) != nullptr);
    fail(CUDA_ERROR_NOT_SUPPORTED);
  });
}
