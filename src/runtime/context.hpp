// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/progress.hpp"
#include "base/thread_annotations.hpp"
#include "runtime/cancellation.hpp"
#include "runtime/context_fault.hpp"
#include "runtime/counters.hpp"
#include "runtime/dealloc_queue.hpp"
#include "runtime/driver.hpp"
#include "runtime/in_flight.hpp"

namespace quern::runtime {

class CopyKernels;
class HostTargets;
class StagingPool;

/// A QuernCpuGenerateSink: tells the progress handler of the context in use that has this CUcontext.
void tell_generation(void* context, const char* kernel, std::int32_t finished) noexcept;

/// A context with all objects that the layer keeps for it: the queue of pending releases, the work in flight,
/// the allocator, the counters. Shared by all objects in it. Thread-safe. Its destructor waits for the
/// transfers it queued and releases pending resources, unless the process is exiting.
///
/// A fault ends a context for all its users: each gets DriverError(device_fault) from then on. The next
/// create() resets a primary context, after all threads have left it (ContextFault).
class Context : public std::enable_shared_from_this<Context> {
 public:
  /// The device's primary context, retained (a faulted one is reset first). Like adopt() it returns the same
  /// object for the same driver context, as long as one is in use and not lost. Throws DriverError;
  /// Error(usage) if the reset would free host memory whose addresses arrays of the lost context still give
  /// out.
  static std::shared_ptr<Context> create(const Device& device);
  /// A context of its own, destroyed with this object. A fault in it ends no other session's work.
  static std::shared_ptr<Context> create_isolated(const Device& device);
  /// A context that the program made; it stays the program's and must outlive this object.
  static std::shared_ptr<Context> adopt(const Device& device, CUcontext handle);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const noexcept { return *device_->driver; }
  const driver::DriverTable& api() const noexcept { return device_->driver->api; }
  const DeviceState& device() const noexcept { return *device_; }
  const std::shared_ptr<const DeviceState>& device_state() const noexcept { return device_; }
  CUcontext handle() const noexcept { return handle_; }
  DeallocQueue& queue() noexcept { return queue_; }
  Counters& counters() noexcept { return counters_; }
  CopyKernels& copy_kernels() noexcept { return *copy_kernels_; }
  StagingPool& staging() noexcept { return *staging_; }
  /// The handler of progress for long work in the context.
  base::ProgressSlot& progress() noexcept { return *progress_; }
  HostTargets& host_targets() noexcept { return *host_targets_; }

  /// Throws DriverError unless `result` is CUDA_SUCCESS. A fault is remembered: the context is lost, and
  /// nothing that lived in it is released any more (its addresses may be another context's by then). The
  /// text is a string or a function that makes one, called only for a failure.
  template <class Text>
  void check(CUresult result, std::string_view call, const Text& attempted) const {
    if (result == CUDA_SUCCESS) [[likely]]
      return;
    if constexpr (std::invocable<const Text&>)
      fail(result, call, attempted());
    else
      fail(result, call, attempted);
  }
  [[noreturn]] void fail(CUresult result, std::string_view call, std::string_view attempted) const;
  bool lost() const noexcept { return fault_->happened(); }
  /// After a fault: returns when the driver has finished the queued work, so that memory which queued work
  /// used is no longer accessed. False in a callback, which cannot wait for itself.
  bool settle() noexcept;
  /// Throws DriverError once the context is lost. CurrentContext calls it, so other code that calls the
  /// driver need not.
  void require_alive() const { fault_->require_none(api()); }
  const std::shared_ptr<ContextFault>& fault() const noexcept { return fault_; }
  /// Frees page-locked or managed memory of this lost context, if the driver lets it outlive the context.
  void release_lost_host_memory(void* address) noexcept;

  /// Device memory from the allocator in force; `bytes` > 0.
  std::shared_ptr<Resource> allocate(std::size_t bytes, StreamView stream = {});
  /// Runs an allocation of the driver; if out of memory, releases pending resources and tries once more, then
  /// throws OutOfMemory. `call` and `what` are for the message.
  void allocate_with_retry(const std::function<CUresult()>& attempt, std::string_view call, std::size_t bytes,
                           std::string_view what);
  /// Nests. Until the outermost resume() nothing is released; then all that waits is, and staging blocks that
  /// are too many.
  void defer() noexcept { queue_.defer(); }
  void resume() noexcept;
  /// Makes the owner of a resource that the driver has just returned; if host memory does not suffice for the
  /// owner, the resource is released.
  std::shared_ptr<Resource> own(Release item);

  void set_allocator(std::shared_ptr<DeviceAllocator> allocator) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<DeviceAllocator> allocator() const QUERN_EXCLUDES(mutex_);
  /// Registers a pool over this context's memory: the memory that it keeps is released with the context at
  /// the latest.
  std::shared_ptr<DeviceAllocator> note_pool(std::shared_ptr<DeviceAllocator> pool) QUERN_EXCLUDES(mutex_);

  /// Calls `run` and releases `keep` after all work now queued on `stream`; see InFlight. If that cannot be
  /// queued, it waits for the stream here, so that no memory is released while work uses it.
  void after(CUstream stream, InFlight::Work work);
  /// Calls `function` after that work, on the driver's thread. Throws DriverError if it cannot be queued.
  void call_after(CUstream stream, std::function<void()> function);
  /// Releases the objects that finished work kept. Called wherever the layer waits, allocates or releases.
  void reap() noexcept { in_flight_.reap(fault_->settled()); }
  std::size_t in_flight_count() const noexcept { return in_flight_.count(); }

  /// Called by Resource.
  void made(const Resource& resource) noexcept;
  void dropped(const Resource& resource, const Release& item) noexcept;

  /// The owner of a stream of ours, null for any other handle.
  std::shared_ptr<const Resource> stream_owner(CUstream stream) const QUERN_EXCLUDES(mutex_);
  void register_stream(const std::shared_ptr<const Resource>& stream) QUERN_EXCLUDES(mutex_);

  /// Host memory that is page-locked as long as `resource` lives.
  void register_memory(const std::byte* begin, std::size_t size_bytes,
                       const std::shared_ptr<const Resource>& resource) QUERN_EXCLUDES(mutex_);
  /// The lock on all of that memory; null: it is not locked by a scope.
  std::shared_ptr<const Resource> registered(const std::byte* begin, std::size_t size_bytes) const
      QUERN_EXCLUDES(mutex_);

  /// Waits; in a lost context until it is settled, and throws then. Throws Error(cancelled) where work of
  /// the stream was cancelled meanwhile.
  void synchronize();
  void synchronize(CUstream stream);
  /// `stream`: on which it was recorded last; null: the default stream.
  void wait_for(CUevent event, CUstream stream);

  /// Ends the launches of a stream, running or queued; the CPU device alone can. Throws DriverError,
  /// Error(unsupported).
  void cancel(CUstream stream);
  /// The same for every stream of the context.
  void cancel();
  const std::shared_ptr<Cancellations>& cancellations() const noexcept { return cancellations_; }
  std::size_t free_memory_bytes() const;

 private:
  struct PrimaryHold;
  /// `stream` as for Cancellations::Check.
  template <class Wait>
  void wait_or_settle(CUstream stream, Wait&& wait);
  const QuernCpuPlugin& require_cancelling() const;
  Context(std::shared_ptr<const DeviceState> device, CUcontext handle);
  /// `hold`: on the primary context, if `handle` is that.
  static std::shared_ptr<Context> find_or_make(const Device& device, CUcontext handle, PrimaryHold* hold);
  static std::shared_ptr<Context> find_or_use(decltype(driver::DriverTable::cuCtxGetCurrent) driver,
                                              CUcontext handle, const std::shared_ptr<Context>& made,
                                              std::vector<std::shared_ptr<Context>>& ended);
  std::string release(const Release& item);
  std::string give_back(const Release& item);
  std::optional<std::string> give_back_alive(const Release& item);
  void give_back_lost(const Release& item) noexcept;
  bool releases_nothing() const noexcept;
  void leave_use() noexcept;
  void release_now(const Release& item) noexcept;
  void give_up_pools() noexcept;
  void make_room(DeviceAllocator* allocator);
  bool is_broken() const;
  bool note_fault(CUresult result) const noexcept;
  std::uint64_t allocate_from(DeviceAllocator& allocator, std::size_t bytes, StreamView stream);

  const std::shared_ptr<const DeviceState> device_;
  const CUcontext handle_;
  std::atomic<bool> primary_ = false;  ///< holds the device's primary context
  bool isolated_ = false;              ///< made by create_isolated()
  const std::shared_ptr<ContextFault> fault_ = std::make_shared<ContextFault>();
  const std::shared_ptr<Cancellations> cancellations_ = std::make_shared<Cancellations>();
  Counters counters_;
  const std::shared_ptr<base::ProgressSlot> progress_ = std::make_shared<base::ProgressSlot>();
  DeallocQueue queue_;
  std::shared_ptr<HostTargets> host_targets_;
  InFlight in_flight_;
  std::unique_ptr<StagingPool> staging_;
  std::unique_ptr<CopyKernels> copy_kernels_;
  mutable base::Mutex mutex_;
  std::shared_ptr<DeviceAllocator> allocator_ QUERN_GUARDED_BY(mutex_);  ///< null: the driver's
  std::vector<std::weak_ptr<DeviceAllocator>> pools_ QUERN_GUARDED_BY(mutex_);
  struct OwnStream {
    std::uint64_t handle = 0;
    std::weak_ptr<const Resource> resource;
  };
  std::vector<OwnStream> streams_ QUERN_GUARDED_BY(mutex_);
  struct Locked {
    const std::byte* begin = nullptr;
    std::size_t size_bytes = 0;
    std::weak_ptr<const Resource> resource;
  };
  std::vector<Locked> locked_ QUERN_GUARDED_BY(mutex_);
};

/// Makes a context current on this thread for a scope and prevents its reset meanwhile; costs one driver call
/// if it is already current. Throws DriverError for a lost context.
class CurrentContext {
 public:
  explicit CurrentContext(const Context& context)
      : CurrentContext(context.driver(), context.handle(), *context.fault()) {}
  CurrentContext(const Driver& driver, CUcontext handle, ContextFault& fault);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  /// The number of this thread's scopes that are inside that context.
  static std::uint32_t depth(const ContextFault& fault) noexcept;

 private:
  const Driver& driver_;
  ContextFault& fault_;
  const CurrentContext* const outer_;  ///< of this thread
  bool pushed_ = false;
};

/// The context that is current on this thread, on any device of the same driver; null if there is none.
std::shared_ptr<Context> adopt_current_context(const Device& device);

/// For work in one context that uses memory of another one as well: keeps that from being reset meanwhile.
/// Throws DriverError for one that is lost.
class ContextUse {
 public:
  explicit ContextUse(const Context& context) : fault_(*context.fault()) { fault_.enter(context.api()); }
  ~ContextUse() { fault_.leave(); }
  ContextUse(const ContextUse&) = delete;
  ContextUse& operator=(const ContextUse&) = delete;

 private:
  ContextFault& fault_;
};

template <class Handle>
Release release_of(ResourceKind kind, Handle handle, std::size_t size_bytes = 0) {
  Release item;
  item.kind = kind;
  if constexpr (std::is_pointer_v<Handle>)
    item.handle = reinterpret_cast<std::uintptr_t>(handle);
  else
    item.handle = handle;
  item.size_bytes = size_bytes;
  return item;
}

}  // namespace quern::runtime
