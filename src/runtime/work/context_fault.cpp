// SPDX-License-Identifier: Apache-2.0
#include "runtime/work/context_fault.hpp"

#include <fmt/format.h>

#include "driver/check.hpp"

namespace quern::runtime {

void ContextFault::note(const driver::DriverTable& api, CUresult result,
                        const QuernCpuPlugin* plugin) noexcept {
  try {
    std::string text = driver::result_text(api, result);
    std::shared_ptr<const DeviceFault> device_fault = driver::current_fault(plugin);
    const base::LockGuard lock(mutex_);
    if (text_.empty()) text_ = std::move(text);
    if (device_fault_ == nullptr) device_fault_ = std::move(device_fault);
  } catch (...) {  // no memory for the text; record the fault itself
  }
  CUresult none = CUDA_SUCCESS;
  result_.compare_exchange_strong(none, result);
}

void ContextFault::note(const ContextFault& other) noexcept {
  try {
    std::string text = other.text();
    std::shared_ptr<const DeviceFault> device_fault = other.fault();
    const base::LockGuard lock(mutex_);
    if (text_.empty()) text_ = std::move(text);
    if (device_fault_ == nullptr) device_fault_ = std::move(device_fault);
  } catch (...) {  // as above
  }
  CUresult none = CUDA_SUCCESS;
  result_.compare_exchange_strong(none, other.result_.load());
}

std::string ContextFault::text() const {
  const base::LockGuard lock(mutex_);
  return text_;
}

bool ContextFault::enter_lost() noexcept {
  users_.fetch_add(1);
  if (!retired_.load()) return true;
  leave();
  return false;
}

void ContextFault::tell() const noexcept {
  const base::LockGuard lock(mutex_);
  changed_.notify_all();
}

void ContextFault::retire(std::uint32_t own) noexcept {
  retired_.store(true);
  const base::LockGuard lock(mutex_);
  changed_.wait(mutex_, [&] { return users_.load() <= own; });
}

void ContextFault::set_settled() noexcept {
  settled_.store(true);
  tell();
}

void ContextFault::keep() noexcept {
  retired_.store(false);
  tell();
}

bool ContextFault::wait_until_settled() const noexcept {
  const base::LockGuard lock(mutex_);
  changed_.wait(mutex_, [this] { return settled() || !retired_.load(); });
  return settled();
}

std::shared_ptr<const DeviceFault> ContextFault::fault() const {
  const base::LockGuard lock(mutex_);
  return device_fault_;
}

void ContextFault::refuse(const driver::DriverTable& api) const {
  const CUresult result = result_.load();
  const std::string why = text();
  const std::string name = driver::result_name(api, result);
  const std::string message = fmt::format(
      "cannot use an object of a lost context: {}{} ended the context with its arrays, streams and kernels; "
      "open a new session and create them again",
      name, why.empty() ? "" : " (" + why + ")");
  throw DriverError(ErrorCode::device_fault, static_cast<int>(result), name, "", message, why, fault());
}

}  // namespace quern::runtime
