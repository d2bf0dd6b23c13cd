// SPDX-License-Identifier: Apache-2.0
// The pools of stream-ordered memory that the devices and the host use.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/device/mem_pool.hpp"
#include "cpu/device/object_tables.hpp"

namespace quern::cpu::device {

/// The pools that each place uses. Thread-safe.
class MemPools {
 public:
  MemPools(ObjectTables& objects, std::uint32_t device_count);

  CUmemoryPool default_of(PoolPlace place) const noexcept { return defaults_[index_of(place)]; }
  CUmemoryPool current_of(PoolPlace place) QUERN_EXCLUDES(mutex_);
  void set_current(PoolPlace place, CUmemoryPool pool) QUERN_EXCLUDES(mutex_);
  /// Places that use the pool use their default one from now on.
  void leave(CUmemoryPool pool) QUERN_EXCLUDES(mutex_);

 private:
  static std::size_t index_of(PoolPlace place) noexcept {
    return static_cast<std::size_t>(place - kHostPlace);
  }

  std::vector<CUmemoryPool> defaults_;
  base::Mutex mutex_;
  std::vector<CUmemoryPool> current_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::cpu::device
