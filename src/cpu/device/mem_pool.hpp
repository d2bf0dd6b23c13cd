// SPDX-License-Identifier: Apache-2.0
// A pool of stream-ordered memory. It keeps no memory back, since a freed allocation is cheap to make again
// here; it counts its memory and limits it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/thread_annotations.hpp"
#include "cpu/device/handles.hpp"
#include "cpu/device/ipc.hpp"

namespace quern::cpu::device {

/// Where a pool has its memory, and who may be granted access: a device by its ordinal, or the host.
using PoolPlace = int;
inline constexpr PoolPlace kHostPlace = -1;
/// The place of managed memory that prefers none.
inline constexpr PoolPlace kNoPlace = -2;

/// Memory of one place, or managed memory that prefers one.
enum class PoolMemory : std::uint8_t { pinned, managed };

/// Thread-safe.
class MemPoolObject {
 public:
  /// `max_bytes`: 0: no limit of its own.
  MemPoolObject(PoolMemory memory, PoolPlace place, std::uint64_t max_bytes, bool is_default,
                bool is_shared = false)
      : memory_(memory),
        place_(place),
        max_bytes_(max_bytes),
        is_default_(is_default),
        is_shared_(is_shared) {}
  /// Another process's pool.
  MemPoolObject(PoolPlace place, const SharedFile& origin)
      : memory_(PoolMemory::pinned),
        place_(place),
        max_bytes_(0),
        is_default_(false),
        is_shared_(true),
        origin_(origin) {}

  PoolMemory memory() const noexcept { return memory_; }
  PoolPlace place() const noexcept { return place_; }
  bool is_default() const noexcept { return is_default_; }
  /// True if other processes can open it.
  bool is_shared() const noexcept { return is_shared_; }
  /// Of a pool of another process: its name there. Nothing is allocated from such a pool here.
  const std::optional<SharedFile>& origin() const noexcept { return origin_; }

  /// Counts an allocation; false: it would exceed the pool's limit.
  bool charge(std::uint64_t bytes) QUERN_EXCLUDES(mutex_);
  void discharge(std::uint64_t bytes) QUERN_EXCLUDES(mutex_);

  /// Reads or writes an attribute, an int or a cuuint64_t. Throw Failure(CUDA_ERROR_INVALID_VALUE) for an
  /// attribute that does not exist or cannot be set, and for a value that is not allowed.
  void read(CUmemPool_attribute attribute, void* value) QUERN_EXCLUDES(mutex_);
  void write(CUmemPool_attribute attribute, const void* value) QUERN_EXCLUDES(mutex_);

  CUmemAccess_flags access(PoolPlace from) QUERN_EXCLUDES(mutex_);
  /// Throws Failure for flags that the pool cannot have.
  void set_access(PoolPlace from, CUmemAccess_flags flags) QUERN_EXCLUDES(mutex_);

 private:
  int& flag(CUmemPool_attribute attribute) QUERN_REQUIRES(mutex_);

  const PoolMemory memory_;
  const PoolPlace place_;
  const std::uint64_t max_bytes_;
  const bool is_default_;
  const bool is_shared_;
  const std::optional<SharedFile> origin_;
  base::Mutex mutex_;
  int reuse_[3] QUERN_GUARDED_BY(mutex_) = {1, 1, 1};
  std::uint64_t release_threshold_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint64_t used_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint64_t most_used_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint64_t most_reserved_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
  std::map<PoolPlace, CUmemAccess_flags> access_ QUERN_GUARDED_BY(mutex_);  ///< from other places
};

template <>
struct HandleTraits<MemPoolObject> {
  using Handle = CUmemoryPool;
  static constexpr HandleKind kKind = HandleKind::mem_pool;
};

/// The bytes of an allocation, which its pool counts until the memory goes.
class PoolCharge {
 public:
  /// Throws Failure(CUDA_ERROR_OUT_OF_MEMORY) if the pool may not become that large.
  PoolCharge(std::shared_ptr<MemPoolObject> pool, CUmemoryPool handle, std::uint64_t bytes);
  ~PoolCharge() { pool_->discharge(bytes_); }
  PoolCharge(const PoolCharge&) = delete;
  PoolCharge& operator=(const PoolCharge&) = delete;

  CUmemoryPool handle() const noexcept { return handle_; }
  const MemPoolObject& pool() const noexcept { return *pool_; }
  CUmemAccess_flags access(PoolPlace from) const { return pool_->access(from); }

 private:
  const std::shared_ptr<MemPoolObject> pool_;
  const CUmemoryPool handle_;
  const std::uint64_t bytes_;
};

}  // namespace quern::cpu::device
