// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "base/thread_annotations.hpp"
#include "driver/driver_table.hpp"

namespace quern::runtime {

/// Whether a fault has ended a context, and which. All that lives in one asks before it calls the driver:
/// a new context may have the handle and the addresses of the one that is gone, so that the driver would not
/// refuse, but reach into what others made there. Shared by a context and its pools, which may outlive it.
/// Thread-safe.
class ContextFault {
 public:
  ContextFault() = default;
  ContextFault(const ContextFault&) = delete;
  ContextFault& operator=(const ContextFault&) = delete;

  bool happened() const noexcept { return result_.load(std::memory_order_relaxed) != CUDA_SUCCESS; }
  /// The first one counts.
  void note(const driver::DriverTable& api, CUresult result) noexcept QUERN_EXCLUDES(mutex_);
  /// Throws DriverError with the fault's result once it has happened.
  void require_none(const driver::DriverTable& api) const {
    if (happened()) [[unlikely]]
      refuse(api);
  }

 private:
  [[noreturn]] void refuse(const driver::DriverTable& api) const QUERN_EXCLUDES(mutex_);

  std::atomic<CUresult> result_ = CUDA_SUCCESS;
  mutable base::Mutex mutex_;
  std::string text_ QUERN_GUARDED_BY(mutex_);  ///< the driver's, which tells of the latest fault only
};

}  // namespace quern::runtime
