// SPDX-License-Identifier: Apache-2.0
// The pools of stream-ordered memory that the devices use.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/device/object_tables.hpp"

namespace quern::cpu::device {

/// The pools that each device uses. Thread-safe.
class MemPools {
 public:
  MemPools(ObjectTables& objects, std::uint32_t device_count);

  CUmemoryPool default_of(std::uint32_t device) const noexcept { return defaults_[device]; }
  CUmemoryPool current_of(std::uint32_t device) QUERN_EXCLUDES(mutex_);
  void set_current(std::uint32_t device, CUmemoryPool pool) QUERN_EXCLUDES(mutex_);
  /// Devices that use the pool use their default one from now on.
  void leave(CUmemoryPool pool) QUERN_EXCLUDES(mutex_);

 private:
  std::vector<CUmemoryPool> defaults_;
  base::Mutex mutex_;
  std::vector<CUmemoryPool> current_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::cpu::device
