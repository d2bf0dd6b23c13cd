// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "quern/export.hpp"
#include "quern/stream.hpp"

namespace quern {

/// Free and total bytes that an allocator reports.
struct MemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// The source of device memory (Session::set_allocator): the driver, a pool, or an allocator of the program.
/// The interface is that of RMM's memory resources, and it covers the device memory part of Numba's external
/// memory managers. Called with the context current, from any thread; never under a lock of quern's.
class QUERN_API DeviceAllocator {
 public:
  virtual ~DeviceAllocator();

  /// `bytes` > 0 of device memory, usable by work on `stream` from here on. Throws OutOfMemory (then the
  /// queue is flushed, trim() called, and this tried once more).
  virtual void* allocate(std::size_t bytes, std::size_t alignment, StreamView stream) = 0;
  /// Frees a block of allocate(), with the same arguments. Work that was queued on `stream` before may still
  /// use it; work on other streams has ended. For the per-thread default stream all work has ended, since
  /// this may be called from another thread, where the handle means another stream.
  virtual void deallocate(void* address, std::size_t bytes, std::size_t alignment, StreamView stream) = 0;
  /// Returns unused memory to the source that it came from.
  virtual void trim() {}
  virtual std::optional<MemoryInfo> memory_info() { return std::nullopt; }
  /// False if deallocate() itself waits for all work on the device, as the driver's allocator does. True:
  /// arrays that other streams use are kept until that work has run.
  virtual bool is_stream_ordered() const noexcept { return true; }
  /// The CUmemoryPool of the memory, as void*; null if it comes from another source.
  virtual void* native_pool() const noexcept { return nullptr; }
};

/// Any type with these two functions, for example RMM's memory resources.
template <class R>
concept MemoryResource = requires(R& resource, void* address, std::size_t bytes, StreamView stream) {
  { resource.allocate(bytes, bytes, stream) } -> std::convertible_to<void*>;
  resource.deallocate(address, bytes, bytes, stream);
};

/// An allocator over a resource that it owns (pass a pointer-like wrapper to share one).
template <MemoryResource R>
std::shared_ptr<DeviceAllocator> make_allocator(R resource) {
  class Adapter final : public DeviceAllocator {
   public:
    explicit Adapter(R adapted) : resource_(std::move(adapted)) {}
    void* allocate(std::size_t bytes, std::size_t alignment, StreamView stream) override {
      return resource_.allocate(bytes, alignment, stream);
    }
    void deallocate(void* address, std::size_t bytes, std::size_t alignment, StreamView stream) override {
      resource_.deallocate(address, bytes, alignment, stream);
    }

   private:
    R resource_;
  };
  return std::make_shared<Adapter>(std::move(resource));
}

}  // namespace quern
