// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory. Each device has its default pool; it keeps nothing back, since a freed allocation is
// cheap to make again here.
#include "cpu/device/cuda_api.hpp"

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/graph/node_params.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;
using engine::AllocationKind;

namespace {

// A pool's handle is its device's number, with a tag that distinguishes it from addresses and from other
// handles.
constexpr std::uintptr_t kPoolHandles = 0xf0;

CUmemoryPool pool_of(std::uint32_t device) {
  return reinterpret_cast<CUmemoryPool>((std::uintptr_t{device} << 8) | kPoolHandles);
}

std::uint32_t device_of(Driver& driver, CUmemoryPool pool) {
  const auto bits = reinterpret_cast<std::uintptr_t>(pool);
  require((bits & 0xff) == kPoolHandles && (bits >> 8) < driver.device_count(), CUDA_ERROR_INVALID_VALUE);
  return static_cast<std::uint32_t>(bits >> 8);
}

bool is_flag(CUmemPool_attribute attribute) {
  return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(pool != nullptr);
    *pool = pool_of(ordinal);
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(pointer != nullptr);
    const auto its_stream = driver.find_stream(stream, context);
    if (is_capturing(driver, *context, *its_stream)) {
      CUDA_MEM_ALLOC_NODE_PARAMS_v2 params{};
      params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(context->device)};
      params.bytesize = bytes;
      AllocNode node = alloc_contents(driver, params);
      record(driver, its_stream, std::move(node));
      *pointer = params.dptr;
      return;
    }
    if (bytes == 0) {
      *pointer = 0;
      return;
    }
    auto allocation = driver.allocate(*context, AllocationKind::pooled, bytes);
    if (allocation == nullptr) {  // streams free memory when they reach the call
      driver.contexts().synchronize(context->id);
      allocation = driver.allocate(*context, AllocationKind::pooled, bytes);
    }
    require(allocation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    *pointer = reinterpret_cast<CUdeviceptr>(allocation->base);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    const auto its_stream = driver.find_stream(stream, context);
    if (is_capturing(driver, *context, *its_stream))
      return record(driver, its_stream, free_contents(pointer));
    if (pointer == 0) return;
    auto allocation = driver.memory().remove(reinterpret_cast<const void*>(pointer), AllocationKind::pooled);
    require(allocation != nullptr);
    engine::TransferJob job;  // of no bytes: it only keeps the memory until the stream gets there
    job.destination = allocation->base;
    job.keep_destination = std::move(allocation);
    driver.scheduler().submit(its_stream, std::move(job));
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t) {
  return entry([&] { device_of(Driver::get(), pool); });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t device = device_of(driver, pool);
    require(value != nullptr);
    if (is_flag(attribute)) {
      *static_cast<int*>(value) = 1;
      return;
    }
    const std::uint64_t used = driver.memory().total_bytes(device) - driver.memory().free_bytes(device);
    require(attribute >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH);
    *static_cast<cuuint64_t*>(value) = attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? 0 : used;
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return entry([&] {
    device_of(Driver::get(), pool);
    // Hints about reuse and about retained memory: this device does neither.
    require(value != nullptr && (is_flag(attribute) || attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
  });
}
