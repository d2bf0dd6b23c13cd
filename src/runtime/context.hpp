// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "base/unique_handle.hpp"
#include "runtime/dealloc_queue.hpp"
#include "runtime/driver.hpp"

namespace quern::runtime {

/// A device's primary context, retained, with the queue of what waits to be released in it. Shared by all
/// that lives in it. Thread-safe. When it goes, what waits is released, unless the process is exiting.
class Context : public std::enable_shared_from_this<Context> {
 public:
  static std::shared_ptr<Context> create(const Device& device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const noexcept { return *device_->driver; }
  const driver::DriverTable& api() const noexcept { return device_->driver->api; }
  const DeviceState& device() const noexcept { return *device_; }
  CUcontext handle() const noexcept { return handle_; }
  DeallocQueue& queue() noexcept { return queue_; }

  /// Throws DriverError unless `result` is CUDA_SUCCESS. A fault is remembered: the context is lost, and
  /// nothing that lived in it is released any more (its addresses may be another context's by then).
  void check(CUresult result, std::string_view call, std::string_view attempted) const {
    if (result != CUDA_SUCCESS) [[unlikely]]
      fail(result, call, attempted);
  }
  [[noreturn]] void fail(CUresult result, std::string_view call, std::string_view attempted) const;
  bool lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

  /// Device memory; `bytes` > 0. Out of memory releases what waits and tries once more, then throws
  /// OutOfMemory.
  CUdeviceptr allocate(std::size_t bytes);
  void synchronize() const;
  std::size_t free_memory_bytes() const;

 private:
  Context(std::shared_ptr<const DeviceState> device, CUcontext handle);
  std::string release(const Release& item) const;
  bool is_broken() const;

  const std::shared_ptr<const DeviceState> device_;
  const CUcontext handle_;
  mutable std::atomic<bool> lost_ = false;
  DeallocQueue queue_;
};

/// Makes a context current on this thread for a scope; costs one driver call where it already is.
class CurrentContext {
 public:
  explicit CurrentContext(const Context& context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Context& context_;
  bool pushed_ = false;
};

/// Something of the driver's, with the context that it lives in: what an owner's UniqueHandle holds.
struct Held {
  std::shared_ptr<Context> context;
  Release item;
  friend bool operator==(const Held& a, const Held& b) noexcept { return a.item == b.item; }
};

/// Letting go schedules the release.
struct ScheduledRelease {
  using type = Held;
  static type null() noexcept { return {}; }
  static void release(const type& held) noexcept { held.context->queue().schedule(held.item); }
};
using OwnedHandle = base::UniqueHandle<ScheduledRelease>;

template <class Handle>
OwnedHandle owned(std::shared_ptr<Context> context, ReleaseKind kind, Handle handle,
                  std::size_t size_bytes = 0) {
  std::uint64_t bits = 0;
  if constexpr (std::is_pointer_v<Handle>)
    bits = reinterpret_cast<std::uintptr_t>(handle);
  else
    bits = handle;
  return OwnedHandle(Held{std::move(context), Release{kind, bits, size_bytes}});
}

}  // namespace quern::runtime
