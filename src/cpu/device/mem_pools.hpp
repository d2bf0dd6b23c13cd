// SPDX-License-Identifier: Apache-2.0
// The pools of stream-ordered memory that the devices and the host use.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <utility>

#include "base/thread_annotations.hpp"
#include "cpu/device/mem_pool.hpp"
#include "cpu/device/object_tables.hpp"

namespace quern::cpu::device {

/// The pools that each place uses. Thread-safe.
class MemPools {
 public:
  MemPools(ObjectTables& objects, std::uint32_t device_count);

  CUmemoryPool default_of(PoolMemory memory, PoolPlace place) const { return defaults_.at({memory, place}); }
  CUmemoryPool current_of(PoolMemory memory, PoolPlace place) QUERN_EXCLUDES(mutex_);
  void set_current(PoolMemory memory, PoolPlace place, CUmemoryPool pool) QUERN_EXCLUDES(mutex_);
  /// Places that use the pool use their default one from now on.
  void leave(CUmemoryPool pool) QUERN_EXCLUDES(mutex_);

 private:
  using Pools = std::map<std::pair<PoolMemory, PoolPlace>, CUmemoryPool>;

  Pools defaults_;
  base::Mutex mutex_;
  Pools current_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::cpu::device
