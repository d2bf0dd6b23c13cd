// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/pools.hpp"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <thread>
#include <vector>

#include "quern/error.hpp"
#include "runtime/device/exit.hpp"
#include "runtime/memory/release.hpp"

namespace quern {

DeviceAllocator::~DeviceAllocator() = default;  // here, so that its virtual table is in the library once

}  // namespace quern

namespace quern::runtime {
namespace {

/// The parts of a context that an allocator needs. It does not keep the context alive: a context holds its
/// allocator.
struct ContextParts {
  std::shared_ptr<const DeviceState> device;
  CUcontext handle = nullptr;
  std::shared_ptr<ContextFault> fault;

  explicit ContextParts(const DriverContext& context)
      : device(context.device_state()), handle(context.handle()), fault(context.fault()) {}
  CurrentContext enter() const { return CurrentContext(*device->driver, handle, *fault); }
  const driver::DriverTable& api() const { return device->driver->api; }
  void check(CUresult result, std::string_view call, std::size_t bytes) const {
    if (result != CUDA_SUCCESS)
      driver::check_allocation(api(), result, call, fmt::format("allocate {} bytes of device memory", bytes),
                               bytes, driver::current_fault(device->driver->plugin));
  }
};

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }
CUdeviceptr address(void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
CUstream handle(StreamView stream) { return static_cast<CUstream>(stream.handle()); }

class DriverAllocator final : public DeviceAllocator {
 public:
  explicit DriverAllocator(const DriverContext& context) : parts_(context) {}

  void* allocate(std::size_t bytes, std::size_t, StreamView) override {
    const CurrentContext current = parts_.enter();
    CUdeviceptr made = 0;
    parts_.check(parts_.api().cuMemAlloc_v2(&made, bytes), "cuMemAlloc_v2", bytes);
    return pointer(made);
  }
  void deallocate(void* memory, std::size_t, std::size_t, StreamView) override {
    const CurrentContext current = parts_.enter();
    parts_.device->driver->check(parts_.api().cuMemFree_v2(address(memory)), "cuMemFree_v2",
                                 "free device memory");
  }
  bool is_stream_ordered() const noexcept override { return false; }

 private:
  const ContextParts parts_;
};

class StreamOrderedPool final : public DeviceAllocator {
 public:
  StreamOrderedPool(const DriverContext& context, std::size_t keep_bytes) : parts_(context) {
    const CurrentContext current(context);
    const auto fails = [](CUresult result) { return result != CUDA_SUCCESS; };
    int supported = 0;
    if (fails(parts_.api().cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                                parts_.device->handle)) ||
        supported == 0)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{} has no stream-ordered memory; use caching_pool() instead", parts_.device->name));
    context.check(parts_.api().cuDeviceGetDefaultMemPool(&pool_, parts_.device->handle),
                  "cuDeviceGetDefaultMemPool", "find the device's memory pool");
    cuuint64_t threshold = keep_bytes;
    context.check(parts_.api().cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
                  "cuMemPoolSetAttribute", "set how much the memory pool keeps");
  }

  void* allocate(std::size_t bytes, std::size_t, StreamView stream) override {
    const CurrentContext current = parts_.enter();
    CUdeviceptr made = 0;
    parts_.check(parts_.api().cuMemAllocAsync(&made, bytes, handle(stream)), "cuMemAllocAsync", bytes);
    return pointer(made);
  }
  void deallocate(void* memory, std::size_t, std::size_t, StreamView stream) override {
    const CurrentContext current = parts_.enter();
    // A per-thread default stream may be another thread's: free behind all of these.
    CUstream const behind = handle(stream) == CU_STREAM_PER_THREAD ? CU_STREAM_LEGACY : handle(stream);
    parts_.device->driver->check(parts_.api().cuMemFreeAsync(address(memory), behind), "cuMemFreeAsync",
                                 "free device memory on a stream");
  }
  void trim() override {
    const CurrentContext current = parts_.enter();
    parts_.api().cuCtxSynchronize();  // completes frees on streams; the next call reports a fault
    parts_.device->driver->check(parts_.api().cuMemPoolTrimTo(pool_, 0), "cuMemPoolTrimTo",
                                 "trim the memory pool");
  }
  void* native_pool() const noexcept override { return pool_; }

 private:
  const ContextParts parts_;
  CUmemoryPool pool_ = nullptr;
};

/// 256, 384, 512, 768, 1024, ...
std::size_t size_class(std::size_t bytes) {
  const std::size_t power = std::bit_ceil(std::max<std::size_t>(bytes, kDeviceAlignment));
  const std::size_t between = power / 4 * 3;
  return bytes <= between && between >= kDeviceAlignment ? between : power;
}

/// A stream; its handle may denote a different stream in every thread.
struct AllocationStream {
  void* stream = nullptr;
  std::thread::id thread;  ///< of a thread's own default stream

  explicit AllocationStream(StreamView of) : stream(of.handle()) {
    if (stream == CU_STREAM_PER_THREAD) thread = std::this_thread::get_id();
  }
  friend bool operator==(const AllocationStream&, const AllocationStream&) = default;
};

class CachingPool final : public DeviceAllocator {
 public:
  CachingPool(const DriverContext& context, std::shared_ptr<DeviceAllocator> upstream,
              std::size_t most_cached_bytes)
      : parts_(context), upstream_(std::move(upstream)), most_cached_bytes_(most_cached_bytes) {}
  ~CachingPool() override {
    // A failed call loses its block at most: the second attempt frees the blocks that the first did not
    // reach.
    for (int attempt = 0; attempt < 2 && !process_is_exiting(); ++attempt) try {
        trim();
      } catch (const std::exception&) {  // the context may be destroyed, and the memory with it
      }
  }

  void* allocate(std::size_t bytes, std::size_t alignment, StreamView stream) override {
    parts_.fault->require_none(parts_.api());  // the kept memory ended with the context
    const std::size_t size = size_class(bytes);
    const AllocationStream home(stream);
    const Block block = take(size, home);
    if (block.memory == nullptr) return upstream_->allocate(size, alignment, stream);
    if (block.home != home) try {
        wait_for_all();
      } catch (...) {
        give_back(block, size, alignment, stream);
        throw;
      }
    return block.memory;
  }
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment, StreamView stream) override {
    give_back({memory, AllocationStream(stream)}, size_class(bytes), alignment, stream);
  }
  void trim() override {
    const CurrentContext current = parts_.enter();
    std::multimap<std::size_t, Block> blocks;
    {
      const base::LockGuard lock(mutex_);
      blocks.swap(free_);
      cached_bytes_ = 0;
    }
    if (blocks.empty()) return;
    parts_.api().cuCtxSynchronize();
    std::exception_ptr failure;  // the failure of one block must not keep the others
    for (const auto& [size, block] : blocks) try {
        upstream_->deallocate(block.memory, size, kDeviceAlignment, StreamView());
      } catch (const std::exception&) {
        failure = std::current_exception();
      }
    if (failure) std::rethrow_exception(failure);
  }

 private:
  struct Block {
    void* memory = nullptr;
    AllocationStream home;  ///< its earlier work may still use the memory
  };
  void give_back(const Block& block, std::size_t size, std::size_t alignment, StreamView stream) {
    if (!keep(block, size)) upstream_->deallocate(block.memory, size, alignment, stream);
  }
  /// Prefers a block of the same stream.
  Block take(std::size_t size, const AllocationStream& home) {
    const base::LockGuard lock(mutex_);
    auto [first, last] = free_.equal_range(size);
    if (first == last) return {nullptr, home};
    auto chosen = first;
    for (auto at = first; at != last; ++at)
      if (at->second.home == home) chosen = at;
    const Block block = chosen->second;
    free_.erase(chosen);
    cached_bytes_ -= size;
    return block;
  }
  bool keep(const Block& block, std::size_t size) {
    const base::LockGuard lock(mutex_);
    if (cached_bytes_ + size > most_cached_bytes_) return false;
    try {
      free_.emplace(size, block);
    } catch (const std::bad_alloc&) {
      return false;
    }
    cached_bytes_ += size;
    return true;
  }
  /// The other stream may have been destroyed, so all streams are waited for.
  void wait_for_all() {
    const CurrentContext current = parts_.enter();
    parts_.device->driver->check(parts_.api().cuCtxSynchronize(), "cuCtxSynchronize",
                                 "wait for the work of the stream that memory comes from");
  }

  const ContextParts parts_;
  const std::shared_ptr<DeviceAllocator> upstream_;
  const std::size_t most_cached_bytes_;
  base::Mutex mutex_;
  std::multimap<std::size_t, Block> free_ QUERN_GUARDED_BY(mutex_);
  std::size_t cached_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<DeviceAllocator> make_driver_allocator(const DriverContext& context) {
  return std::make_shared<DriverAllocator>(context);
}
std::shared_ptr<DeviceAllocator> make_stream_ordered_pool(const DriverContext& context,
                                                          std::size_t keep_bytes) {
  return std::make_shared<StreamOrderedPool>(context, keep_bytes);
}
std::shared_ptr<DeviceAllocator> make_caching_pool(const DriverContext& context,
                                                   std::shared_ptr<DeviceAllocator> upstream,
                                                   std::size_t most_cached_bytes) {
  if (upstream == nullptr) upstream = make_driver_allocator(context);
  return std::make_shared<CachingPool>(context, std::move(upstream), most_cached_bytes);
}

}  // namespace quern::runtime
