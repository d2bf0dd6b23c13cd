// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/progress.hpp"
#include "driver/cpu_plugin.h"
#include "runtime/copy/copy_kernel.hpp"
#include "runtime/copy/host_targets.hpp"
#include "runtime/copy/staging.hpp"
#include "runtime/device/driver.hpp"
#include "runtime/memory/allocation.hpp"
#include "runtime/memory/locked_memory.hpp"
#include "runtime/memory/own_streams.hpp"
#include "runtime/memory/resources.hpp"
#include "runtime/work/driver_context.hpp"
#include "runtime/work/queued_work.hpp"
#include "runtime/work/waiting.hpp"

namespace quern::runtime {

/// A QuernCpuGenerateSink: tells the progress handler of the context in use that has this CUcontext.
void tell_generation(const QuernCpuGeneration* generation) noexcept;

/// A context of the driver and the objects that the layer keeps for it, each with one task; shared by all
/// objects in the context. Thread-safe. Its destructor waits for the transfers it queued and releases pending
/// resources, unless the process is exiting.
///
/// A fault ends a context for all its users: each gets DriverError(device_fault) from then on. The next
/// create() resets a primary context, after all threads have left it (ContextFault).
class Context : public DriverContext, public std::enable_shared_from_this<Context> {
 public:
  /// The device's primary context, retained (a faulted one is reset first). Like adopt() it returns the same
  /// object for the same driver context, as long as one is in use and not lost. Throws DriverError;
  /// Error(usage) if the reset would free host memory of arrays of the lost context that still exist.
  static std::shared_ptr<Context> create(const Device& device);
  /// A context of its own, destroyed with this object. A fault in it ends no other session's work.
  static std::shared_ptr<Context> create_isolated(const Device& device);
  /// A context that the program made; it stays the program's and must outlive this object.
  static std::shared_ptr<Context> adopt(const Device& device, CUcontext handle);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  QueuedWork& work() noexcept { return work_; }
  Waiting& waiting() noexcept { return waiting_; }
  const Waiting& waiting() const noexcept { return waiting_; }
  Resources& resources() noexcept { return resources_; }
  const Resources& resources() const noexcept { return resources_; }
  OwnStreams& own_streams() noexcept { return own_streams_; }
  LockedMemory& locked_memory() noexcept { return locked_memory_; }
  const LockedMemory& locked_memory() const noexcept { return locked_memory_; }
  Allocation& allocation() noexcept { return allocation_; }
  HostTargets& host_targets() noexcept { return *host_targets_; }
  StagingPool& staging() noexcept { return staging_; }
  CopyKernels& copy_kernels() noexcept { return copy_kernels_; }
  /// The handler of progress for long work in the context.
  base::ProgressSlot& progress() noexcept { return *progress_; }

  /// Nests. Until the outermost resume() nothing is released; then all pending resources are, and the staging
  /// blocks beyond the limit.
  void defer() noexcept { resources_.queue().defer(); }
  void resume() noexcept;

 private:
  struct PrimaryHold;
  Context(std::shared_ptr<const DeviceState> device, CUcontext handle);
  /// `hold`: on the primary context, if `handle` is that.
  static std::shared_ptr<Context> find_or_make(const Device& device, CUcontext handle, PrimaryHold* hold);
  static std::shared_ptr<Context> find_or_use(decltype(driver::DriverTable::cuCtxGetCurrent) driver,
                                              CUcontext handle, const std::shared_ptr<Context>& made,
                                              std::vector<std::shared_ptr<Context>>& ended);
  void leave_use() noexcept;
  bool is_broken() const;

  std::atomic<bool> primary_ = false;  ///< holds the device's primary context
  bool isolated_ = false;              ///< made by create_isolated()
  const std::shared_ptr<base::ProgressSlot> progress_ = std::make_shared<base::ProgressSlot>();
  // In this order: each refers to earlier ones.
  QueuedWork work_;
  Waiting waiting_;
  Resources resources_;
  OwnStreams own_streams_;
  LockedMemory locked_memory_;
  Allocation allocation_;
  const std::shared_ptr<HostTargets> host_targets_;
  StagingPool staging_;
  CopyKernels copy_kernels_;
};

/// The context that is current on this thread, on any device of the same driver; null if there is none.
std::shared_ptr<Context> adopt_current_context(const Device& device);

}  // namespace quern::runtime
