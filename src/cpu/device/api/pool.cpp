// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory and its pools.
#include "cpu/device/cuda_api.hpp"

#include <utility>

#include "cpu/device/driver.hpp"
#include "cpu/device/mem_pool.hpp"
#include "cpu/device/mem_pools.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;
using engine::AllocationKind;

namespace {

/// A pool by its handle. The functions of pools answer CUDA_ERROR_INVALID_VALUE to others.
std::shared_ptr<MemPoolObject> find_pool(Driver& driver, CUmemoryPool handle) {
  try {
    return driver.find(handle);
  } catch (const Failure&) {
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void allocate(Driver& driver, const std::shared_ptr<ContextState>& context, CUdeviceptr* pointer,
              std::size_t bytes, CUmemoryPool handle, CUstream stream) {
  const std::shared_ptr<MemPoolObject> pool = find_pool(driver, handle);
  require(pointer != nullptr);
  driver.find_stream(stream, context);  // a bad stream is an error
  require(pool->access(context->device) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  if (bytes == 0) {
    *pointer = 0;
    return;
  }
  auto charge = std::make_shared<PoolCharge>(pool, handle, bytes);
  auto allocation = driver.allocate(*context, AllocationKind::pooled, bytes);
  if (allocation == nullptr) {  // streams free memory when they reach the call
    driver.contexts().synchronize(context->id);
    allocation = driver.allocate(*context, AllocationKind::pooled, bytes);
  }
  require(allocation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  allocation->charge = std::move(charge);
  *pointer = reinterpret_cast<CUdeviceptr>(allocation->base);
}

/// The device of a location that pools can have.
std::uint32_t device_of(Driver& driver, const CUmemLocation& location) {
  require(location.type != CU_MEM_LOCATION_TYPE_INVALID);
  // Pools of host memory are not there yet.
  require(location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_NOT_SUPPORTED);
  return driver.device(location.id);
}

std::uint32_t device_of(Driver& driver, const CUmemLocation* location, CUmemAllocationType type) {
  require(location != nullptr && type != CU_MEM_ALLOCATION_TYPE_INVALID);
  require(type == CU_MEM_ALLOCATION_TYPE_PINNED, CUDA_ERROR_NOT_SUPPORTED);
  return device_of(driver, *location);
}

void set_current(Driver& driver, std::uint32_t device, CUmemoryPool pool) {
  require(find_pool(driver, pool)->device() == device);
  driver.mem_pools().set_current(device, pool);
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(pool != nullptr);
    *pool = driver.mem_pools().default_of(ordinal);
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(pool != nullptr);
    *pool = driver.mem_pools().current_of(ordinal);
  });
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return entry([&] {
    Driver& driver = Driver::get();
    set_current(driver, driver.device(device), pool);
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(pool != nullptr);
    *pool = driver.mem_pools().default_of(device_of(driver, location, type));
  });
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(pool != nullptr);
    *pool = driver.mem_pools().current_of(device_of(driver, location, type));
  });
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return entry([&] {
    Driver& driver = Driver::get();
    set_current(driver, device_of(driver, location, type), pool);
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(pool != nullptr && properties != nullptr && properties->win32SecurityAttributes == nullptr);
    const std::uint32_t device = device_of(driver, &properties->location, properties->allocType);
    // Pools that other processes can open are not there yet.
    require(properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
    *pool = driver.add(std::make_shared<MemPoolObject>(device, properties->maxSize, false));
  });
}

/// Memory that is still allocated from it lives on, and so does the object.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(!find_pool(driver, pool)->is_default());
    driver.mem_pools().leave(pool);
    driver.remove(pool);
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, std::size_t count) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = find_pool(driver, pool);
    require(map != nullptr || count == 0);
    for (std::size_t i = 0; i < count; ++i)
      object->set_access(device_of(driver, map[i].location), map[i].flags);
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = find_pool(driver, pool);
    require(flags != nullptr && location != nullptr);
    *flags = object->access(device_of(driver, *location));
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t) {
  return entry([&] { find_pool(Driver::get(), pool); });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return entry([&] {
    const auto object = find_pool(Driver::get(), pool);
    require(value != nullptr);
    object->read(attribute, value);
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return entry([&] {
    const auto object = find_pool(Driver::get(), pool);
    require(value != nullptr);
    object->write(attribute, value);
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    allocate(driver, context, pointer, bytes, driver.mem_pools().current_of(context->device), stream);
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    allocate(driver, context, pointer, bytes, pool, stream);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    const auto its_stream = driver.find_stream(stream, context);
    if (pointer == 0) return;
    auto allocation = driver.memory().remove(reinterpret_cast<const void*>(pointer), AllocationKind::pooled);
    require(allocation != nullptr);
    engine::TransferJob job;  // of no bytes: it only keeps the memory until the stream gets there
    job.destination = allocation->base;
    job.keep_destination = std::move(allocation);
    driver.scheduler().submit(its_stream, std::move(job));
  });
}
