// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/allocation.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace quern::runtime {

void Allocation::give_up_pools() noexcept {
  const auto trim = [&](const std::shared_ptr<DeviceAllocator>& pool) {
    if (pool == nullptr || context_.lost()) return;
    try {
      pool->trim();
    } catch (...) {  // the context releases the rest
    }
  };
  trim(allocator());
  set_allocator(nullptr);
  std::vector<std::weak_ptr<DeviceAllocator>> pools;
  {
    const base::LockGuard lock(mutex_);
    pools.swap(pools_);
  }
  for (auto pool = pools.rbegin(); pool != pools.rend(); ++pool) trim(pool->lock());
}

/// Releases all memory that can be released after an allocation has failed; none while cleanup is deferred.
void Allocation::make_room(DeviceAllocator* allocator) {
  work_.reap();
  resources_.queue().flush();
  if (allocator != nullptr && !resources_.queue().is_deferred()) allocator->trim();
}

void Allocation::allocate_with_retry(const std::function<CUresult()>& attempt, std::string_view call,
                                     std::size_t bytes, std::string_view what) {
  CUresult result = attempt();
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    make_room(allocator().get());
    trim_spare_();
    result = attempt();
  }
  if (result == CUDA_SUCCESS) return;
  context_.note_fault(result);
  driver::check_allocation(context_.api(), result, call, fmt::format("allocate {} bytes of {}", bytes, what),
                           bytes, context_.fault()->fault());
}

std::uint64_t Allocation::allocate_from(DeviceAllocator& allocator, std::size_t bytes, StreamView stream) {
  const auto attempt = [&] {
    void* const memory =
        allocator.allocate(bytes, kDeviceAlignment, context_.view_of(static_cast<CUstream>(stream.handle())));
    if (memory == nullptr)
      throw OutOfMemory(
          CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "allocate",
          fmt::format("cannot allocate {} bytes of device memory: the session's allocator gave none; free "
                      "arrays or give the allocator more",
                      bytes),
          bytes);
    return reinterpret_cast<std::uintptr_t>(memory);
  };
  try {
    return attempt();
  } catch (const OutOfMemory&) {
    make_room(&allocator);
  }
  return attempt();
}

std::shared_ptr<Resource> Allocation::allocate(std::size_t bytes, StreamView stream) {
  work_.reap();
  const CurrentContext current(context_);
  Release item = release_of(ResourceKind::device, CUdeviceptr{0}, bytes);
  item.allocator = allocator();
  if (item.allocator == nullptr) {
    CUdeviceptr address = 0;
    allocate_with_retry([&] { return context_.api().cuMemAlloc_v2(&address, bytes); }, "cuMemAlloc_v2", bytes,
                        "device memory");
    item.handle = address;
    return resources_.own(std::move(item));
  }
  item.kind = ResourceKind::pooled;
  item.stream = streams_.owner_of(static_cast<CUstream>(stream.handle()));
  item.stream_handle = reinterpret_cast<std::uintptr_t>(stream.handle());
  item.handle = allocate_from(*item.allocator, bytes, stream);
  return resources_.own(std::move(item));
}

std::size_t Allocation::free_memory_bytes() const {
  if (const std::shared_ptr<DeviceAllocator> pool = allocator())
    if (const std::optional<MemoryInfo> info = pool->memory_info()) return info->free_bytes;
  const CurrentContext current(context_);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  context_.check(context_.api().cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo_v2",
                 "query the free memory");
  return free_bytes;
}

void Allocation::set_allocator(std::shared_ptr<DeviceAllocator> allocator) {
  const base::LockGuard lock(mutex_);
  allocator_.swap(allocator);
}

std::shared_ptr<DeviceAllocator> Allocation::allocator() const {
  const base::LockGuard lock(mutex_);
  return allocator_;
}

std::shared_ptr<DeviceAllocator> Allocation::note_pool(std::shared_ptr<DeviceAllocator> pool) {
  const base::LockGuard lock(mutex_);
  std::erase_if(pools_, [](const std::weak_ptr<DeviceAllocator>& one) { return one.expired(); });
  pools_.push_back(pool);
  return pool;
}

}  // namespace quern::runtime
