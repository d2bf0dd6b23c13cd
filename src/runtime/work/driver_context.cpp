// SPDX-License-Identifier: Apache-2.0
#include "runtime/work/driver_context.hpp"

#include "runtime/work/in_flight.hpp"

namespace quern::runtime {
namespace {

thread_local const CurrentContext* innermost = nullptr;

}  // namespace

bool DriverContext::note_fault(CUresult result) const noexcept {
  if (driver::error_code(result) != ErrorCode::device_fault) return false;
  fault_->note(api(), result, driver().plugin);
  return true;
}

void DriverContext::fail(CUresult result, std::string_view call, std::string_view attempted) const {
  note_fault(result);
  driver::fail(api(), result, call, attempted, fault_->fault());
}

bool DriverContext::settle() const noexcept {
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

void DriverContext::release_lost_host_memory(void* address) const noexcept {
  // Without the plug-in the driver takes the memory away with the context.
  if (driver().plugin != nullptr && settle()) driver().plugin->release_host_memory(address);
}

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
