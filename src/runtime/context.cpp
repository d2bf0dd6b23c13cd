// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "runtime/exit.hpp"

namespace quern::runtime {
namespace {

struct ReleaseRow {
  const char* call;
  const char* what;
};
constexpr ReleaseRow kReleases[] = {{"cuMemFree_v2", "free device memory"},
                                    {"cuMemFreeHost", "free page-locked memory"},
                                    {"cuStreamDestroy_v2", "release a stream"},
                                    {"cuEventDestroy_v2", "release an event"},
                                    {"cuModuleUnload", "unload a module"}};

template <class T>
T as_pointer(std::uint64_t handle) noexcept {
  return reinterpret_cast<T>(static_cast<std::uintptr_t>(handle));
}

CUresult release_item(const driver::DriverTable& api, const Release& item) {
  switch (item.kind) {
    case ReleaseKind::device_memory:
      return api.cuMemFree_v2(static_cast<CUdeviceptr>(item.handle));
    case ReleaseKind::host_memory:
      return api.cuMemFreeHost(as_pointer<void*>(item.handle));
    case ReleaseKind::stream:
      return api.cuStreamDestroy_v2(as_pointer<CUstream>(item.handle));
    case ReleaseKind::event:
      return api.cuEventDestroy_v2(as_pointer<CUevent>(item.handle));
    case ReleaseKind::module:
      return api.cuModuleUnload(as_pointer<CUmodule>(item.handle));
  }
  return CUDA_ERROR_INVALID_VALUE;
}

void report_to_stderr(const std::string& message) {
  std::fprintf(stderr, "quern: warning: %s\n", message.c_str());
}

}  // namespace

std::shared_ptr<Context> Context::create(const Device& device) {
  const DeviceState& state = *device.state();
  const std::string attempted = "use device " + device.label();
  const auto retain = [&] {
    CUcontext handle = nullptr;
    state.driver->check(state.driver->api.cuDevicePrimaryCtxRetain(&handle, state.handle),
                        "cuDevicePrimaryCtxRetain", attempted);
    return std::shared_ptr<Context>(new Context(device.state(), handle));
  };
  std::shared_ptr<Context> context = retain();
  if (!context->is_broken()) return context;
  context.reset();
  state.driver->check(state.driver->api.cuDevicePrimaryCtxReset_v2(state.handle),
                      "cuDevicePrimaryCtxReset_v2", attempted + " again after a fault");
  return retain();
}

Context::Context(std::shared_ptr<const DeviceState> device, CUcontext handle)
    : device_(std::move(device)),
      handle_(handle),
      queue_(
          limits_from_environment(device_->total_memory_bytes),
          [this](const Release& item) { return release(item); }, report_to_stderr) {}

Context::~Context() {
  if (process_is_exiting()) return;
  // A release that fails ends a flush; here nothing may be left behind, so each failure costs its item and no
  // more.
  while (queue_.pending_count() > 0) queue_.flush();
  api().cuDevicePrimaryCtxRelease_v2(device_->handle);
}

void Context::fail(CUresult result, std::string_view call, std::string_view attempted) const {
  if (driver::error_code(result) == ErrorCode::device_fault) lost_.store(true, std::memory_order_relaxed);
  driver::fail(api(), result, call, attempted);
}

/// True where a fault of earlier work has ended the context: every call answers with it.
bool Context::is_broken() const {
  const CurrentContext current(*this);
  return driver::error_code(api().cuStreamQuery(nullptr)) == ErrorCode::device_fault;
}

std::string Context::release(const Release& item) const {
  if (process_is_exiting() || lost()) return {};
  const CurrentContext current(*this);
  const CUresult result = release_item(api(), item);
  if (result == CUDA_SUCCESS) return {};
  if (driver::error_code(result) == ErrorCode::device_fault) {  // it went with the context
    lost_.store(true, std::memory_order_relaxed);
    return {};
  }
  const ReleaseRow& row = kReleases[static_cast<std::size_t>(item.kind)];
  return fmt::format("cannot {}: {} answered {}", row.what, row.call, driver::result_name(api(), result));
}

CUdeviceptr Context::allocate(std::size_t bytes) {
  const CurrentContext current(*this);
  CUdeviceptr address = 0;
  CUresult result = api().cuMemAlloc_v2(&address, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    queue_.flush();
    result = api().cuMemAlloc_v2(&address, bytes);
  }
  if (result != CUDA_SUCCESS)
    driver::check_allocation(api(), result, "cuMemAlloc_v2",
                             fmt::format("allocate {} bytes of device memory", bytes), bytes);
  return address;
}

void Context::synchronize() const {
  const CurrentContext current(*this);
  check(api().cuCtxSynchronize(), "cuCtxSynchronize", "finish the work of the device");
}

std::size_t Context::free_memory_bytes() const {
  const CurrentContext current(*this);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(api().cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo_v2", "ask for the free memory");
  return free_bytes;
}

CurrentContext::CurrentContext(const Context& context) : context_(context) {
  CUcontext current = nullptr;
  const driver::DriverTable& api = context.api();
  if (api.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context.handle()) return;
  context.check(api.cuCtxPushCurrent_v2(context.handle()), "cuCtxPushCurrent_v2", "make the context current");
  pushed_ = true;
}

CurrentContext::~CurrentContext() {
  CUcontext popped = nullptr;
  if (pushed_) context_.api().cuCtxPopCurrent_v2(&popped);
}

}  // namespace quern::runtime
