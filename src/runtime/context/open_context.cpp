// SPDX-License-Identifier: Apache-2.0
// Keeps the table of contexts in use and opens contexts: new, shared, isolated, or again after a fault.
#include <algorithm>
#include <vector>

#include "quern/error.hpp"
#include "runtime/context/context.hpp"

namespace quern::runtime {
namespace {

using DriverName = decltype(driver::DriverTable::cuCtxGetCurrent);  ///< identifies a driver

/// The contexts in use: a driver's context has one queue of pending releases and one allocator for all
/// sessions on it. A row stays until its context has released all its resources.
struct InUse {
  struct Row {
    CUcontext handle = nullptr;
    DriverName driver = nullptr;
    std::weak_ptr<Context> context;
    std::shared_ptr<ContextFault> fault;
    std::shared_ptr<base::ProgressSlot> progress;
    bool of_plugin = false;
  };
  base::Mutex mutex;
  std::vector<Row> rows QUERN_GUARDED_BY(mutex);
  /// Held while a primary context is opened, so that only one of several threads that find it faulty resets
  /// it. The driver is called under it: no thread inside a context locks it.
  base::Mutex opening;
};
InUse& in_use() {
  static auto* const instance = new InUse;  // outlives every static object
  return *instance;
}

std::vector<InUse::Row> rows_of(CUcontext handle, DriverName driver) {
  std::vector<InUse::Row> found;
  const base::LockGuard lock(in_use().mutex);
  for (const InUse::Row& row : in_use().rows)
    if (row.handle == handle && row.driver == driver) found.push_back(row);
  return found;
}

/// On a GPU the reset frees page-locked and managed memory, and a program that still reads it would be ended
/// by a signal.
void require_no_host_memory(const std::vector<InUse::Row>& rows, const DeviceState& device) {
  std::size_t count = 0;
  for (const InUse::Row& row : rows)
    if (const std::shared_ptr<Context> context = row.context.lock()) {
      const MemoryStats stats = context->resources().counters().stats();
      for (const ResourceKind kind : {ResourceKind::pinned, ResourceKind::mapped, ResourceKind::managed})
        count += stats[kind].live_count;
    }
  if (count > 0)
    throw Error(
        ErrorCode::usage,
        "cannot use device " + device.name + " again after a fault: " + std::to_string(count) +
            " page-locked, mapped or managed arrays of the lost context still exist, and using the device "
            "again would free their memory; destroy them first");
}

/// Ends a primary context that a fault has ended already, for good: afterwards its handle is a new one's.
void reset_primary(const Device& device, CUcontext handle, const ContextFault& fault) {
  const DeviceState& state = *device.state();
  const Driver& driver = *state.driver;
  const std::vector<InUse::Row> rows = rows_of(handle, driver.api.cuCtxGetCurrent);
  if (driver.plugin == nullptr) require_no_host_memory(rows, state);
  for (const InUse::Row& row : rows) row.fault->note(fault);
  for (const InUse::Row& row : rows) row.fault->retire(CurrentContext::depth(*row.fault));
  const CUresult result = driver.api.cuDevicePrimaryCtxReset_v2(state.handle);
  for (const InUse::Row& row : rows)
    if (result == CUDA_SUCCESS)
      row.fault->set_settled();
    else
      row.fault->keep();
  driver.check(result, "cuDevicePrimaryCtxReset_v2", "use device " + device.label() + " again after a fault");
}

}  // namespace

void tell_generation(const QuernCpuGeneration* generation) noexcept try {
  // No reference to a context: its release calls the driver, which calls this function.
  std::vector<std::shared_ptr<base::ProgressSlot>> found;
  {
    const base::LockGuard lock(in_use().mutex);
    for (const InUse::Row& row : in_use().rows)
      if (row.handle == static_cast<CUcontext>(generation->context) && row.of_plugin &&
          !row.fault->happened())
        found.push_back(row.progress);
  }
  for (const std::shared_ptr<base::ProgressSlot>& progress : found) {
    base::Work work(progress.get(), ProgressStage::generate, generation->kernel, generation->instructions);
    if (generation->finished != 0)
      work.finish(generation->instructions);
    else
      work.begin();
  }
} catch (const std::bad_alloc&) {  // the work continues without a report
}

/// One hold on the device's primary context, given back unless a Context takes it over.
struct Context::PrimaryHold {
  const DeviceState* device = nullptr;

  explicit PrimaryHold(const DeviceState& of) : device(&of) {}
  PrimaryHold(const PrimaryHold&) = delete;
  PrimaryHold& operator=(const PrimaryHold&) = delete;
  ~PrimaryHold() {
    if (device != nullptr) device->driver->api.cuDevicePrimaryCtxRelease_v2(device->handle);
  }
};

/// The context with that handle that is in use and not lost; otherwise `made`, which is in use from then on.
/// Lost contexts and those not needed are moved to `ended`, to be released after the lock: their release may
/// call the driver.
std::shared_ptr<Context> Context::find_or_use(DriverName driver, CUcontext handle,
                                              const std::shared_ptr<Context>& made,
                                              std::vector<std::shared_ptr<Context>>& ended) {
  const base::LockGuard lock(in_use().mutex);
  auto& rows = in_use().rows;
  ended.reserve(rows.size());
  for (const InUse::Row& row : rows) {
    if (row.handle != handle || row.driver != driver) continue;
    std::shared_ptr<Context> found = row.context.lock();
    if (found == nullptr) continue;
    if (!found->lost()) return found;
    ended.push_back(std::move(found));
  }
  if (made != nullptr)
    rows.push_back({handle, driver, made, made->fault(), made->progress_, made->driver().plugin != nullptr});
  return made;
}

std::shared_ptr<Context> Context::find_or_make(const Device& device, CUcontext handle, PrimaryHold* hold) {
  const DriverName driver = device.state()->driver->api.cuCtxGetCurrent;
  std::vector<std::shared_ptr<Context>> ended;
  std::shared_ptr<Context> context = find_or_use(driver, handle, nullptr, ended);
  if (context == nullptr) {
    std::unique_ptr<Context> made(new Context(device.state(), handle));
    context = find_or_use(driver, handle, std::shared_ptr<Context>(std::move(made)), ended);
  }
  if (hold != nullptr && !context->primary_.exchange(true)) hold->device = nullptr;
  return context;
}

void Context::leave_use() noexcept {
  const base::LockGuard lock(in_use().mutex);
  std::erase_if(in_use().rows, [&](const InUse::Row& row) { return row.fault == fault(); });
}

/// True if a fault of earlier work has ended the context: every call returns its error.
bool Context::is_broken() const {
  try {
    const CurrentContext current(*this);
    return note_fault(api().cuStreamQuery(nullptr));
  } catch (const DriverError&) {  // work of another thread has met a fault meanwhile
    return true;
  }
}

std::shared_ptr<Context> Context::create(const Device& device) {
  const DeviceState& state = *device.state();
  const auto retain = [&] {
    CUcontext handle = nullptr;
    state.driver->check(state.driver->api.cuDevicePrimaryCtxRetain(&handle, state.handle),
                        "cuDevicePrimaryCtxRetain", "use device " + device.label());
    PrimaryHold hold(state);
    return find_or_make(device, handle, &hold);
  };
  std::shared_ptr<Context> faulty;  // released after the lock
  const base::LockGuard lock(in_use().opening);
  std::shared_ptr<Context> context = retain();
  if (!context->is_broken()) return context;
  faulty = std::move(context);
  reset_primary(device, faulty->handle(), *faulty->fault());
  return retain();
}

std::shared_ptr<Context> Context::create_isolated(const Device& device) {
  const Driver& driver = *device.state()->driver;
  CUcontext handle = nullptr;
  driver.check(driver.api.cuCtxCreate_v4(&handle, nullptr, CU_CTX_SCHED_AUTO, device.state()->handle),
               "cuCtxCreate_v4", "make a context of its own on device " + device.label());
  CUcontext popped = nullptr;
  driver.api.cuCtxPopCurrent_v2(&popped);
  try {
    std::shared_ptr<Context> context = find_or_make(device, handle, nullptr);
    context->isolated_ = true;
    return context;
  } catch (...) {
    driver.api.cuCtxDestroy_v2(handle);
    throw;
  }
}

std::shared_ptr<Context> Context::adopt(const Device& device, CUcontext handle) {
  return find_or_make(device, handle, nullptr);
}

std::shared_ptr<Context> adopt_current_context(const Device& device) {
  const std::shared_ptr<const Driver>& driver = device.state()->driver;
  CUcontext handle = nullptr;
  driver->check(driver->api.cuCtxGetCurrent(&handle), "cuCtxGetCurrent", "find the current context");
  if (handle == nullptr) return nullptr;
  CUdevice its_device = 0;
  driver->check(driver->api.cuCtxGetDevice(&its_device), "cuCtxGetDevice",
                "find the device of the current context");
  for (int ordinal = 0; ordinal < device_count(*driver); ++ordinal) {
    const Device candidate = open_device(driver, ordinal);
    if (candidate.state()->handle == its_device) return Context::adopt(candidate, handle);
  }
  return Context::adopt(device, handle);
}

}  // namespace quern::runtime
