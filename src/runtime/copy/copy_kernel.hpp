// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/thread_annotations.hpp"
#include "runtime/copy/strided.hpp"
#include "runtime/memory/resources.hpp"
#include "runtime/work/driver_context.hpp"

namespace quern::runtime {

/// Copies between strided arrays in device memory, by kernels of our own in PTX (no compiler is needed at run
/// time); each is loaded when first used. Thread-safe.
class CopyKernels {
 public:
  CopyKernels(const DriverContext& context, Resources& resources)
      : context_(context), resources_(resources) {}
  CopyKernels(const CopyKernels&) = delete;
  CopyKernels& operator=(const CopyKernels&) = delete;

  /// Queues the copy on `stream`; the context is current, the arrays do not overlap. Throws DriverError.
  void copy(CUdeviceptr to, CUdeviceptr from, CopyPlan plan, CUstream stream) QUERN_EXCLUDES(mutex_);
  /// Unloads the kernels; a later copy() loads them again.
  void unload() noexcept QUERN_EXCLUDES(mutex_);

 private:
  struct Loaded {
    std::shared_ptr<Resource> module;
    CUfunction function = nullptr;
  };
  CUfunction function(std::size_t rank, std::size_t bytes) QUERN_EXCLUDES(mutex_);
  Loaded load(std::size_t rank, std::size_t bytes);
  void launch(CUdeviceptr to, CUdeviceptr from, const CopyPlan& plan, std::size_t first_axis,
              CUstream stream);

  const DriverContext& context_;
  Resources& resources_;
  base::Mutex mutex_;
  std::map<std::pair<std::size_t, std::size_t>, Loaded> loaded_ QUERN_GUARDED_BY(mutex_);
};

/// The PTX of the kernel for `rank` axes and pieces of `bytes` (1, 2, 4 or 8).
std::string copy_kernel_ptx(std::size_t rank, std::size_t bytes);

}  // namespace quern::runtime
