// SPDX-License-Identifier: Apache-2.0
#include "runtime/context_fault.hpp"

#include <fmt/format.h>

#include "driver/check.hpp"

namespace quern::runtime {

void ContextFault::note(const driver::DriverTable& api, CUresult result) noexcept {
  try {
    std::string text = driver::result_text(api, result);
    const base::LockGuard lock(mutex_);
    if (text_.empty()) text_ = std::move(text);
  } catch (...) {  // no memory for the text; the fault itself must be known
  }
  CUresult none = CUDA_SUCCESS;
  result_.compare_exchange_strong(none, result, std::memory_order_relaxed);
}

void ContextFault::refuse(const driver::DriverTable& api) const {
  const CUresult result = result_.load(std::memory_order_relaxed);
  std::string text;
  {
    const base::LockGuard lock(mutex_);
    text = text_;
  }
  const std::string name = driver::result_name(api, result);
  const std::string message = fmt::format(
      "cannot use what a lost context held: {}{} ended it, and its arrays, streams and kernels went with it; "
      "open a new session and make them anew",
      name, text.empty() ? "" : " (" + text + ")");
  throw DriverError(ErrorCode::device_fault, static_cast<int>(result), name, "", message, text);
}

}  // namespace quern::runtime
