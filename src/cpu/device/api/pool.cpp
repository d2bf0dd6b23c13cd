// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory and its pools.
#include "cpu/device/cuda_api.hpp"

#include <utility>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/graph/node_params.hpp"
#include "cpu/device/mem_pool.hpp"
#include "cpu/device/mem_pools.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;
using engine::AllocationKind;

namespace {

/// A pool by its handle. The functions of pools answer CUDA_ERROR_INVALID_VALUE to others.
std::shared_ptr<MemPoolObject> find_pool(Driver& driver, CUmemoryPool handle) {
  auto pool = driver.objects().try_find(handle);
  require(pool != nullptr);
  return pool;
}

PoolPlace place_of(const ContextState& context) { return static_cast<PoolPlace>(context.device); }

/// Records an allocation; its memory is the graph's, not the pool's.
CUdeviceptr capture_allocation(Driver& driver, const StreamObject& stream, std::size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS_v2 params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(stream.context->device)};
  params.bytesize = bytes;
  record(driver, stream, alloc_contents(driver, stream.context, params));
  return params.dptr;
}

void allocate(Driver& driver, const StreamObject& stream, CUdeviceptr* pointer, std::size_t bytes,
              CUmemoryPool handle) {
  const std::shared_ptr<MemPoolObject> pool = find_pool(driver, handle);
  require(pointer != nullptr && !pool->origin());
  const ContextState& context = *stream.context;
  const bool is_managed = pool->memory() == PoolMemory::managed;
  const bool on_host = !is_managed && pool->place() == kHostPlace;
  require(on_host || pool->access(place_of(context)) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  if (is_capturing(stream)) {
    require(!on_host && !is_managed, CUDA_ERROR_NOT_SUPPORTED);  // graphs have device memory alone here
    *pointer = capture_allocation(driver, stream, bytes);
    return;
  }
  refuse_unsafe_call();
  if (bytes == 0) {
    *pointer = 0;
    return;
  }
  auto charge = std::make_shared<PoolCharge>(pool, handle, bytes);
  const AllocationKind kind = is_managed ? AllocationKind::managed : AllocationKind::pooled;
  const unsigned flags = is_managed ? unsigned{CU_MEM_ATTACH_GLOBAL} : on_host ? engine::kPooledOnHost : 0U;
  auto allocation = driver.allocate(context, kind, bytes, flags);
  if (allocation == nullptr) {  // streams free memory when they reach the call
    driver.contexts().synchronize(context.id);
    allocation = driver.allocate(context, kind, bytes, flags);
  }
  require(allocation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  allocation->charge = std::move(charge);
  *pointer = reinterpret_cast<CUdeviceptr>(allocation->base);
}

/// The place of a location that pools can have. All processors count as one NUMA node.
PoolPlace place_of(Driver& driver, const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return static_cast<PoolPlace>(driver.device(location.id));
    case CU_MEM_LOCATION_TYPE_HOST:
      return kHostPlace;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      require(location.id == 0);
      return kHostPlace;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

/// Ends an allocation of a pool or of cuMemAlloc, but not its memory; null if it is none. Managed memory of
/// no pool is not freed in the order of a stream.
std::shared_ptr<engine::Allocation> take_out(Driver& driver, const void* pointer) {
  const auto found = driver.memory().find(pointer);
  require(found == nullptr || found->base != pointer || found->kind != AllocationKind::managed ||
              found->charge != nullptr,
          CUDA_ERROR_NOT_SUPPORTED);
  for (const AllocationKind kind : {AllocationKind::pooled, AllocationKind::device, AllocationKind::managed})
    if (auto allocation = driver.memory().remove(pointer, kind)) return allocation;
  return nullptr;
}

/// For functions that answer CUDA_ERROR_INVALID_VALUE where others answer CUDA_ERROR_INVALID_DEVICE.
void require_known_device(const Driver& driver, const CUmemLocation& location) {
  require(location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
          (location.id >= 0 && static_cast<std::uint32_t>(location.id) < driver.device_count()));
}

struct PoolId {
  PoolMemory memory;
  PoolPlace place;
};

PoolId id_of(Driver& driver, const CUmemLocation* location, CUmemAllocationType type) {
  require(location != nullptr &&
          (type == CU_MEM_ALLOCATION_TYPE_PINNED || type == CU_MEM_ALLOCATION_TYPE_MANAGED));
  if (type == CU_MEM_ALLOCATION_TYPE_PINNED) return {PoolMemory::pinned, place_of(driver, *location)};
  if (location->type == CU_MEM_LOCATION_TYPE_NONE) return {PoolMemory::managed, kNoPlace};
  return {PoolMemory::managed, place_of(driver, *location)};
}

void set_current(Driver& driver, PoolId id, CUmemoryPool pool) {
  const std::shared_ptr<MemPoolObject> object = find_pool(driver, pool);
  require(object->memory() == id.memory && object->place() == id.place && !object->origin());
  driver.mem_pools().set_current(id.memory, id.place, pool);
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto ordinal = static_cast<PoolPlace>(driver.device(device));
    require(pool != nullptr);
    *pool = driver.mem_pools().default_of(PoolMemory::pinned, ordinal);
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto ordinal = static_cast<PoolPlace>(driver.device(device));
    require(pool != nullptr);
    *pool = driver.mem_pools().current_of(PoolMemory::pinned, ordinal);
  });
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return entry([&] {
    Driver& driver = Driver::get();
    refuse_unsafe_call();
    set_current(driver, {PoolMemory::pinned, static_cast<PoolPlace>(driver.device(device))}, pool);
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(pool != nullptr);
    const PoolId id = id_of(driver, location, type);
    *pool = driver.mem_pools().default_of(id.memory, id.place);
  });
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(pool != nullptr);
    const PoolId id = id_of(driver, location, type);
    *pool = driver.mem_pools().current_of(id.memory, id.place);
  });
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return entry([&] {
    Driver& driver = Driver::get();
    set_current(driver, id_of(driver, location, type), pool);
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return entry([&] {
    Driver& driver = Driver::get();
    refuse_unsafe_call();
    require(pool != nullptr && properties != nullptr && properties->win32SecurityAttributes == nullptr);
    require_known_device(driver, properties->location);
    const PoolId id = id_of(driver, &properties->location, properties->allocType);
    const bool is_shared = properties->handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    require(!is_shared || (id.memory == PoolMemory::pinned && id.place != kHostPlace));
    require(is_shared || properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
    *pool = driver.add(
        std::make_shared<MemPoolObject>(id.memory, id.place, properties->maxSize, false, is_shared));
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
    refuse_unsafe_call();
    const auto object = find_pool(driver, pool);
    require(map != nullptr || count == 0);
    for (std::size_t i = 0; i < count; ++i)
      object->set_access(place_of(driver, map[i].location), map[i].flags);
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return entry([&] {
    Driver& driver = Driver::get();
    refuse_unsafe_call();
    const auto object = find_pool(driver, pool);
    require(flags != nullptr && location != nullptr);
    require_known_device(driver, *location);
    *flags = object->access(place_of(driver, *location));
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t) {
  return entry([&] {
    Driver& driver = Driver::get();
    refuse_unsafe_call();
    find_pool(driver, pool);
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return entry([&] {
    Driver& driver = Driver::get();
    refuse_unsafe_call();
    const auto object = find_pool(driver, pool);
    require(value != nullptr);
    object->read(attribute, value);
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return entry([&] {
    Driver& driver = Driver::get();
    refuse_unsafe_call();
    const auto object = find_pool(driver, pool);
    require(value != nullptr);
    object->write(attribute, value);
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    allocate(driver, its_stream, pointer, bytes,
             driver.mem_pools().current_of(PoolMemory::pinned, place_of(*its_stream.context)));
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    allocate(driver, driver.stream_of(stream), pointer, bytes, pool);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    if (is_capturing(its_stream)) return record(driver, its_stream, free_contents(pointer));
    if (pointer == 0) return;
    auto allocation = take_out(driver, reinterpret_cast<const void*>(pointer));
    require(allocation != nullptr);
    engine::TransferJob job;  // of no bytes: it only keeps the memory until the stream gets there
    job.destination = allocation->base;
    job.keep_destination = std::move(allocation);
    driver.scheduler().submit(its_stream.stream, std::move(job));
  });
}
