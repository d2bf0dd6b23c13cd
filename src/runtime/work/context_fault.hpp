// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/thread_annotations.hpp"
#include "driver/cpu_plugin.h"
#include "driver/driver_table.hpp"
#include "quern/driver_error.hpp"

namespace quern::runtime {

/// Keeps the fault that ended a context, if any, and counts the driver calls in progress in it. All objects
/// of a context enter before they call the driver and leave afterwards: a new context may have the handle and
/// the addresses of the lost one, so that the driver would not report an error, but access the new context's
/// objects. A primary context is therefore reset only after retire(), when no thread is inside and none can
/// enter. Shared by a context and its pools, which may outlive it. Thread-safe.
class ContextFault {
 public:
  ContextFault() = default;
  ContextFault(const ContextFault&) = delete;
  ContextFault& operator=(const ContextFault&) = delete;

  bool happened() const noexcept { return result_.load() != CUDA_SUCCESS; }
  /// Only the first fault is recorded. The context is current on this thread: `plugin` (null for libcuda)
  /// provides the report.
  void note(const driver::DriverTable& api, CUresult result, const QuernCpuPlugin* plugin) noexcept
      QUERN_EXCLUDES(mutex_);
  /// The same fault as another Context of the same driver context met.
  void note(const ContextFault& other) noexcept QUERN_EXCLUDES(mutex_);
  /// The launch and the thread that faulted; null: not known.
  std::shared_ptr<const DeviceFault> fault() const QUERN_EXCLUDES(mutex_);
  /// Throws DriverError with the fault's result once it has happened.
  void require_none(const driver::DriverTable& api) const {
    if (happened()) [[unlikely]]
      refuse(api);
  }

  /// From here to leave() the driver's context is not reset. Throws as require_none().
  void enter(const driver::DriverTable& api) {
    users_.fetch_add(1);
    if (happened()) [[unlikely]] {
      leave();
      refuse(api);
    }
  }
  /// The same for the few calls in a lost context. Returns false, without entering, if it is retired.
  bool enter_lost() noexcept;
  void leave() noexcept {
    users_.fetch_sub(1);
    if (retired_.load()) [[unlikely]]
      tell();
  }

  /// After the fault no thread can enter. Returns when at most `own` entries are left, those of this thread.
  void retire(std::uint32_t own) noexcept QUERN_EXCLUDES(mutex_);
  /// The context could not be reset: it stays lost.
  void keep() noexcept QUERN_EXCLUDES(mutex_);
  /// The driver has finished all queued work: it accesses no memory any more, and no callback runs or will
  /// run.
  void set_settled() noexcept QUERN_EXCLUDES(mutex_);
  bool settled() const noexcept { return settled_.load(); }
  /// Waits in a retired context. Returns false if it was kept instead.
  bool wait_until_settled() const noexcept QUERN_EXCLUDES(mutex_);

 private:
  [[noreturn]] void refuse(const driver::DriverTable& api) const QUERN_EXCLUDES(mutex_);
  void tell() const noexcept QUERN_EXCLUDES(mutex_);
  std::string text() const QUERN_EXCLUDES(mutex_);

  std::atomic<CUresult> result_ = CUDA_SUCCESS;
  std::atomic<std::uint32_t> users_ = 0;
  std::atomic<bool> retired_ = false;
  std::atomic<bool> settled_ = false;
  mutable base::Mutex mutex_;
  mutable base::ConditionVariable changed_;    ///< a thread left a retired context, or it is settled
  std::string text_ QUERN_GUARDED_BY(mutex_);  ///< the driver's sentence about the fault
  std::shared_ptr<const DeviceFault> device_fault_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::runtime
