// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "runtime/copy_kernel.hpp"
#include "runtime/exit.hpp"
#include "runtime/host_targets.hpp"
#include "runtime/staging.hpp"

namespace quern::runtime {
namespace {

struct ReleaseRow {
  const char* call;
  const char* what;
};
constexpr ReleaseRow kReleases[] = {
    {"cuMemFree_v2", "free device memory"},     {"deallocate", "give device memory back to its allocator"},
    {"cuMemFree_v2", "free managed memory"},    {"cuMemFreeHost", "free page-locked memory"},
    {"cuMemFreeHost", "free mapped memory"},    {"cuMemHostUnregister", "unlock host memory"},
    {"cuStreamDestroy_v2", "release a stream"}, {"cuEventDestroy_v2", "release an event"},
    {"cuModuleUnload", "unload a module"}};
static_assert(std::size(kReleases) == kResourceKindCount);

template <class T>
T as_pointer(std::uint64_t handle) noexcept {
  return reinterpret_cast<T>(static_cast<std::uintptr_t>(handle));
}

CUresult release_item(const driver::DriverTable& api, const Release& item) {
  switch (item.kind) {
    case ResourceKind::device:
    case ResourceKind::managed:
      return api.cuMemFree_v2(static_cast<CUdeviceptr>(item.handle));
    case ResourceKind::pinned:
    case ResourceKind::mapped:
      return api.cuMemFreeHost(as_pointer<void*>(item.handle));
    case ResourceKind::registered:
      api.cuCtxSynchronize();  // queued copies may still use it
      return api.cuMemHostUnregister(as_pointer<void*>(item.handle));
    case ResourceKind::stream:
      return api.cuStreamDestroy_v2(as_pointer<CUstream>(item.handle));
    case ResourceKind::event:
      return api.cuEventDestroy_v2(as_pointer<CUevent>(item.handle));
    case ResourceKind::module:
      return api.cuModuleUnload(as_pointer<CUmodule>(item.handle));
    case ResourceKind::pooled:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

void warn(const DeviceState& device, const std::string& message) {
  base::log({LogLevel::warning, message, {{"device", device.name}}});
}

}  // namespace

Resource::Resource(Context& context, Release item) : context_(context), item_(std::move(item)) {
  context_.made(*this);
}

Resource::~Resource() { context_.dropped(*this, item_); }

Context::Context(std::shared_ptr<const DeviceState> device, CUcontext handle)
    : device_(std::move(device)),
      handle_(handle),
      queue_(
          limits_from_environment(device_->total_memory_bytes),
          [this](const Release& item) { return release(item); },
          [this](const std::string& message) { warn(*device_, message); }),
      host_targets_(std::make_shared<HostTargets>(*this)),
      staging_(std::make_unique<StagingPool>(*this)),
      copy_kernels_(std::make_unique<CopyKernels>(*this)) {
  watch_for_leaks(*this);
}

Context::~Context() {
  forget_for_leaks(*this);
  if (releases_nothing()) return;
  try {  // queued work must end before its memory is released
    if (in_flight_.count() > 0) synchronize();
  } catch (...) {  // a fault, which has settled
  }
  in_flight_.reap(true);
  copy_kernels_.reset();
  host_targets_->trim();
  staging_->trim();
  // A release that fails ends a flush; here nothing may be left behind, so each failure costs its item and no
  // more.
  while (queue_.pending_count() > 0) queue_.flush();
  give_up_pools();
  if (lost()) settle();  // nothing that the program has now is written any more
  leave_use();
  if (primary_) api().cuDevicePrimaryCtxRelease_v2(device_->handle);
  if (isolated_) api().cuCtxDestroy_v2(handle_);
}

/// Releases the free memory of pools while their context still exists; the program may hold the pools longer.
/// The pool made last comes first: it may have its memory from an earlier one.
void Context::give_up_pools() noexcept {
  const auto trim = [&](const std::shared_ptr<DeviceAllocator>& pool) {
    if (pool == nullptr || lost()) return;
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

bool Context::note_fault(CUresult result) const noexcept {
  if (driver::error_code(result) != ErrorCode::device_fault) return false;
  fault_->note(api(), result, driver().plugin);
  return true;
}

void Context::fail(CUresult result, std::string_view call, std::string_view attempted) const {
  note_fault(result);
  driver::fail(api(), result, call, attempted, fault_->fault());
}

/// True at exit, once there is nobody left to release for, or where that would wait for a callback, which may
/// be what called exit().
bool Context::releases_nothing() const noexcept {
  return process_is_exiting() || (exit_has_begun() && in_flight_.count() > 0);
}

void Context::made(const Resource& resource) noexcept {
  note_object();
  counters_.made(resource);
}

void Context::dropped(const Resource& resource, const Release& item) noexcept {
  if (releases_nothing()) return;
  counters_.dropped(resource);
  if (item.kind == ResourceKind::registered)
    release_now(item);
  else
    queue_.schedule(item);
  reap();
}

/// Memory that the program registered for a scope is the program's: it must not stay locked beyond.
void Context::release_now(const Release& item) noexcept {
  try {
    const std::string failure = release(item);
    if (!failure.empty()) warn(*device_, failure);
  } catch (...) {  // the context cannot be made current: it is gone, and the lock with it
  }
}

std::string Context::release(const Release& item) {
  counters_.released(item);
  return give_back(item);
}

std::shared_ptr<Resource> Context::own(Release item) {
  try {
    return std::make_shared<Resource>(*this, std::move(item));  // moves only when it has memory
  } catch (...) {
    const std::string failure = give_back(item);
    if (!failure.empty()) warn(*device_, failure);
    throw;
  }
}

/// Gives back host memory alone of all that a lost context held: the program may use its address as long as
/// the array lives.
void Context::give_back_lost(const Release& item) noexcept {
  switch (item.kind) {
    case ResourceKind::managed:
    case ResourceKind::pinned:
    case ResourceKind::mapped:
      return release_lost_host_memory(as_pointer<void*>(item.handle));
    case ResourceKind::registered:  // the lock went with the context
      settle();
      return;
    case ResourceKind::device:
    case ResourceKind::pooled:
    case ResourceKind::stream:
    case ResourceKind::event:
    case ResourceKind::module:
      return;
  }
}

std::string Context::give_back(const Release& item) {
  if (process_is_exiting()) return {};
  if (!lost()) try {
      if (std::optional<std::string> outcome = give_back_alive(item)) return *std::move(outcome);
    } catch (const DriverError&) {
      if (!lost()) throw;
    }
  give_back_lost(item);  // the rest went with the context
  return {};
}

/// Why it failed; empty: it did not; nothing: the context is lost, and the item was not given back.
std::optional<std::string> Context::give_back_alive(const Release& item) {
  const CurrentContext current(*this);
  const ReleaseRow& row = kReleases[static_cast<std::size_t>(item.kind)];
  if (item.kind == ResourceKind::pooled) {
    try {
      item.allocator->deallocate(as_pointer<void*>(item.handle), item.size_bytes, kDeviceAlignment,
                                 StreamView(this, as_pointer<void*>(item.stream_handle)));
      return std::string();
    } catch (const std::exception& error) {
      return fmt::format("cannot {}: {}", row.what, error.what());
    }
  }
  const CUresult result = release_item(api(), item);
  if (result == CUDA_SUCCESS) return std::string();
  if (note_fault(result)) return std::nullopt;
  return fmt::format("cannot {}: {} answered {}", row.what, row.call, driver::result_name(api(), result));
}

void Context::resume() noexcept {
  queue_.resume();
  staging_->trim(StagingPool::kMostFreeBytes);
}

/// Releases all memory that can be released after an allocation has failed; none while cleanup is deferred.
void Context::make_room(DeviceAllocator* allocator) {
  reap();
  queue_.flush();
  if (allocator != nullptr && !queue_.is_deferred()) allocator->trim();
}

void Context::allocate_with_retry(const std::function<CUresult()>& attempt, std::string_view call,
                                  std::size_t bytes, std::string_view what) {
  CUresult result = attempt();
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    make_room(allocator().get());
    staging_->trim();
    result = attempt();
  }
  if (result == CUDA_SUCCESS) return;
  note_fault(result);
  driver::check_allocation(api(), result, call, fmt::format("allocate {} bytes of {}", bytes, what), bytes,
                           fault_->fault());
}

std::uint64_t Context::allocate_from(DeviceAllocator& allocator, std::size_t bytes, StreamView stream) {
  const auto attempt = [&] {
    void* const memory = allocator.allocate(bytes, kDeviceAlignment, StreamView(this, stream.handle()));
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

std::shared_ptr<Resource> Context::allocate(std::size_t bytes, StreamView stream) {
  reap();
  const CurrentContext current(*this);
  Release item = release_of(ResourceKind::device, CUdeviceptr{0}, bytes);
  item.allocator = allocator();
  if (item.allocator == nullptr) {
    CUdeviceptr address = 0;
    allocate_with_retry([&] { return api().cuMemAlloc_v2(&address, bytes); }, "cuMemAlloc_v2", bytes,
                        "device memory");
    item.handle = address;
    return own(std::move(item));
  }
  item.kind = ResourceKind::pooled;
  item.stream = stream_owner(static_cast<CUstream>(stream.handle()));
  item.stream_handle = reinterpret_cast<std::uintptr_t>(stream.handle());
  item.handle = allocate_from(*item.allocator, bytes, stream);
  return own(std::move(item));
}

void Context::set_allocator(std::shared_ptr<DeviceAllocator> allocator) {
  const base::LockGuard lock(mutex_);
  allocator_.swap(allocator);
}

std::shared_ptr<DeviceAllocator> Context::allocator() const {
  const base::LockGuard lock(mutex_);
  return allocator_;
}

std::shared_ptr<DeviceAllocator> Context::note_pool(std::shared_ptr<DeviceAllocator> pool) {
  const base::LockGuard lock(mutex_);
  std::erase_if(pools_, [](const std::weak_ptr<DeviceAllocator>& one) { return one.expired(); });
  pools_.push_back(pool);
  return pool;
}

void Context::after(CUstream stream, InFlight::Work work) {
  reap();  // a program that only launches leaves what has run behind
  watch_exit_of_statics();
  CUresult result = CUDA_SUCCESS;
  try {
    result = in_flight_.add(api(), stream, work);
    if (result == CUDA_SUCCESS) return;
  } catch (const std::bad_alloc&) {  // then it is done here, and there is nothing to report but a fault
  }
  // No callback will report that the stream has reached this point: wait now, before the kept objects are
  // released.
  const CUresult waited = api().cuStreamSynchronize(stream);
  if (waited == CUDA_SUCCESS && work.run) work.run();
  check(result, "cuLaunchHostFunc", "queue the end of a transfer");
  check(waited, "cuStreamSynchronize", "finish the work of a stream");
}

void Context::call_after(CUstream stream, std::function<void()> function) {
  watch_exit_of_statics();
  InFlight::Work work{std::move(function), {}};
  check(in_flight_.add(api(), stream, work), "cuLaunchHostFunc", "queue a callback on a stream");
}

std::shared_ptr<const Resource> Context::stream_owner(CUstream stream) const {
  std::weak_ptr<const Resource> found;
  {
    const base::LockGuard lock(mutex_);
    for (const OwnStream& candidate : streams_)
      if (candidate.handle == reinterpret_cast<std::uintptr_t>(stream) && !candidate.resource.expired())
        found = candidate.resource;
  }
  return found.lock();  // letting go of a last reference may lead to driver calls: not under the lock
}

void Context::register_stream(const std::shared_ptr<const Resource>& stream) {
  const base::LockGuard lock(mutex_);
  std::erase_if(streams_, [](const OwnStream& candidate) { return candidate.resource.expired(); });
  streams_.push_back({stream->item().handle, stream});
}

void Context::register_memory(const std::byte* begin, std::size_t size_bytes,
                              const std::shared_ptr<const Resource>& resource) {
  const base::LockGuard lock(mutex_);
  std::erase_if(locked_, [](const Locked& range) { return range.resource.expired(); });
  locked_.push_back({begin, size_bytes, resource});
}

std::shared_ptr<const Resource> Context::registered(const std::byte* begin, std::size_t size_bytes) const {
  std::weak_ptr<const Resource> found;
  {
    const base::LockGuard lock(mutex_);
    for (const Locked& range : locked_)
      if (begin >= range.begin && begin + size_bytes <= range.begin + range.size_bytes &&
          !range.resource.expired())
        found = range.resource;
  }
  return found.lock();
}

/// After this call the caller reuses memory of queued work, also if the wait ends in an error.
template <class Wait>
void Context::wait_or_settle(CUstream stream, Wait&& wait) {
  const Cancellations::Check check(*cancellations_, stream);
  try {
    const CurrentContext current(*this);
    wait();
  } catch (...) {
    if (lost()) settle();
    reap();
    throw;
  }
  reap();
  check.require_none();
}

void Context::synchronize() {
  wait_or_settle(nullptr, [this] {
    check(api().cuCtxSynchronize(), "cuCtxSynchronize", "finish the work of the device");
  });
}

void Context::synchronize(CUstream stream) {
  wait_or_settle(named_stream(stream), [&] {
    check(api().cuStreamSynchronize(stream), "cuStreamSynchronize", "finish the work of a stream");
  });
}

void Context::wait_for(CUevent event, CUstream stream) {
  wait_or_settle(named_stream(stream),
                 [&] { check(api().cuEventSynchronize(event), "cuEventSynchronize", "wait for an event"); });
}

const QuernCpuPlugin& Context::require_cancelling() const {
  if (driver().plugin != nullptr) return *driver().plugin;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("cannot cancel work on {}: CUDA has no call that ends a launch on a GPU\nhint: split "
                  "the work into launches that are short, and stop making them",
                  device().name));
}

// Neither of these releases what is pending: that waits for all work of the context, also for the work that
// the caller is about to cancel next.
void Context::cancel(CUstream stream) {
  const QuernCpuPlugin& plugin = require_cancelling();
  const CurrentContext current(*this);
  unsigned flags = 0;
  check(api().cuStreamGetFlags(stream, &flags), "cuStreamGetFlags", "query a stream's flags");
  const Cancellations::Scope scope(*cancellations_, named_stream(stream),
                                   (flags & CU_STREAM_NON_BLOCKING) == 0);
  check(static_cast<CUresult>(plugin.cancel_stream(stream)), "cancel", "cancel the launches of a stream");
}

void Context::cancel() {
  const QuernCpuPlugin& plugin = require_cancelling();
  const CurrentContext current(*this);
  const Cancellations::Scope scope(*cancellations_, nullptr, true);
  check(static_cast<CUresult>(plugin.cancel_context()), "cancel", "cancel the launches of a context");
}

bool Context::settle() noexcept {
  if (fault_->settled()) return true;
  if (InFlight::is_running_here()) return false;
  // A thread that is inside keeps the context from being reset. Any other may come too late; then the reset
  // settles the context.
  const bool inside = CurrentContext::depth(*fault_) > 0;
  while (!inside && !fault_->enter_lost())
    if (fault_->wait_until_settled()) return true;
  CUcontext popped = nullptr;
  if (api().cuCtxPushCurrent_v2(handle_) == CUDA_SUCCESS) {
    api().cuCtxSynchronize();  // answers with the fault
    api().cuCtxPopCurrent_v2(&popped);
  }
  fault_->set_settled();
  if (!inside) fault_->leave();
  return true;
}

void Context::release_lost_host_memory(void* address) noexcept {
  // Without the plug-in the driver takes the memory away with the context.
  if (driver().plugin != nullptr && settle()) driver().plugin->release_host_memory(address);
}

std::size_t Context::free_memory_bytes() const {
  if (const std::shared_ptr<DeviceAllocator> pool = allocator())
    if (const std::optional<MemoryInfo> info = pool->memory_info()) return info->free_bytes;
  const CurrentContext current(*this);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(api().cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo_v2", "query the free memory");
  return free_bytes;
}

namespace {

thread_local const CurrentContext* innermost = nullptr;

}  // namespace

CurrentContext::CurrentContext(const Driver& driver, CUcontext handle, ContextFault& fault)
    : driver_(driver), fault_(fault), outer_(innermost) {
  fault.enter(driver.api);
  CUcontext current = nullptr;
  if (driver.api.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != handle) {
    const CUresult pushed = driver.api.cuCtxPushCurrent_v2(handle);
    if (pushed != CUDA_SUCCESS) fault.leave();
    driver.check(pushed, "cuCtxPushCurrent_v2", "make the context current");
    pushed_ = true;
  }
  innermost = this;
}

CurrentContext::~CurrentContext() {
  innermost = outer_;
  CUcontext popped = nullptr;
  if (pushed_) driver_.api.cuCtxPopCurrent_v2(&popped);
  fault_.leave();
}

std::uint32_t CurrentContext::depth(const ContextFault& fault) noexcept {
  std::uint32_t count = 0;
  for (const CurrentContext* scope = innermost; scope != nullptr; scope = scope->outer_)
    if (&scope->fault_ == &fault) ++count;
  return count;
}

}  // namespace quern::runtime
