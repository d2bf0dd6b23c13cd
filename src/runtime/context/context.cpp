// SPDX-License-Identifier: Apache-2.0
#include "runtime/context/context.hpp"

#include <utility>

#include "runtime/context/leak_report.hpp"

namespace quern::runtime {

Context::Context(std::shared_ptr<const DeviceState> device, CUcontext handle)
    : DriverContext(std::move(device), handle, *this),
      work_(*this),
      waiting_(*this, work_),
      resources_(*this, work_),
      allocation_(*this, work_, resources_, own_streams_, [this] { staging_.trim(); }),
      host_targets_(std::make_shared<HostTargets>(*this, waiting_)),
      staging_(*this, work_, resources_, allocation_),
      copy_kernels_(*this, resources_) {
  watch_for_leaks(*this);
}

Context::~Context() {
  forget_for_leaks(*this);
  if (resources_.releases_nothing()) return;
  try {  // queued work must end before its memory is released
    if (work_.count() > 0) waiting_.synchronize();
  } catch (...) {  // a fault, which has settled
  }
  work_.reap_all();
  copy_kernels_.unload();
  host_targets_->trim();
  staging_.trim();
  // A release that fails ends a flush; here nothing may be left behind, so each failure costs its item and no
  // more.
  while (resources_.queue().pending_count() > 0) resources_.queue().flush();
  allocation_.give_up_pools();
  if (lost()) settle();  // the driver no longer writes to memory that the program has now
  leave_use();
  if (primary_) api().cuDevicePrimaryCtxRelease_v2(device().handle);
  if (isolated_) api().cuCtxDestroy_v2(handle());
}

void Context::resume() noexcept {
  resources_.queue().resume();
  staging_.trim(StagingPool::kMostFreeBytes);
}

}  // namespace quern::runtime
