// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/resources.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/log.hpp"
#include "runtime/device/exit.hpp"

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

Resource::Resource(Resources& resources, Release item) : resources_(resources), item_(std::move(item)) {
  resources_.made(*this);
}

Resource::~Resource() { resources_.dropped(*this, item_); }

Resources::Resources(DriverContext& context, QueuedWork& work)
    : context_(context),
      work_(work),
      queue_(
          limits_from_environment(context.device().total_memory_bytes),
          [this](const Release& item) { return release(item); },
          [this](const std::string& message) { warn(context_.device(), message); }) {}

bool Resources::releases_nothing() const noexcept {
  return process_is_exiting() || (exit_has_begun() && work_.count() > 0);
}

void Resources::made(const Resource& resource) noexcept {
  note_object();
  counters_.made(resource);
}

void Resources::dropped(const Resource& resource, const Release& item) noexcept {
  if (releases_nothing()) return;
  counters_.dropped(resource);
  if (item.kind == ResourceKind::registered)
    release_now(item);
  else
    queue_.schedule(item);
  work_.reap();
}

/// Memory that the program registered for a scope belongs to the program: it must not stay locked beyond.
void Resources::release_now(const Release& item) noexcept {
  try {
    const std::string failure = release(item);
    if (!failure.empty()) warn(context_.device(), failure);
  } catch (...) {  // the context cannot be made current: it was destroyed, and the lock with it
  }
}

std::string Resources::release(const Release& item) {
  counters_.released(item);
  return give_back(item);
}

std::shared_ptr<Resource> Resources::own(Release item) {
  try {
    return std::make_shared<Resource>(*this, std::move(item));  // moves only when it has memory
  } catch (...) {
    const std::string failure = give_back(item);
    if (!failure.empty()) warn(context_.device(), failure);
    throw;
  }
}

/// Of the resources of a lost context, gives back the host memory alone: the program may use its address as
/// long as the array lives.
void Resources::give_back_lost(const Release& item) noexcept {
  switch (item.kind) {
    case ResourceKind::managed:
    case ResourceKind::pinned:
    case ResourceKind::mapped:
      return context_.release_lost_host_memory(as_pointer<void*>(item.handle));
    case ResourceKind::registered:  // the lock ended with the context
      context_.settle();
      return;
    case ResourceKind::device:
    case ResourceKind::pooled:
    case ResourceKind::stream:
    case ResourceKind::event:
    case ResourceKind::module:
      return;
  }
}

std::string Resources::give_back(const Release& item) {
  if (process_is_exiting()) return {};
  if (!context_.lost()) try {
      if (std::optional<std::string> outcome = give_back_alive(item)) return *std::move(outcome);
    } catch (const DriverError&) {
      if (!context_.lost()) throw;
    }
  give_back_lost(item);  // the driver released the rest with the context
  return {};
}

/// Returns why the release failed; an empty text if it succeeded; nothing if the context is lost and the item
/// was not given back.
std::optional<std::string> Resources::give_back_alive(const Release& item) {
  const CurrentContext current(context_);
  const ReleaseRow& row = kReleases[static_cast<std::size_t>(item.kind)];
  if (item.kind == ResourceKind::pooled) {
    try {
      item.allocator->deallocate(as_pointer<void*>(item.handle), item.size_bytes, kDeviceAlignment,
                                 context_.view_of(as_pointer<CUstream>(item.stream_handle)));
      return std::string();
    } catch (const std::exception& error) {
      return fmt::format("cannot {}: {}", row.what, error.what());
    }
  }
  const CUresult result = release_item(context_.api(), item);
  if (result == CUDA_SUCCESS) return std::string();
  if (context_.note_fault(result)) return std::nullopt;
  return fmt::format("cannot {}: {} answered {}", row.what, row.call,
                     driver::result_name(context_.api(), result));
}

}  // namespace quern::runtime
