// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/mem_pools.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "cpu/device/failure.hpp"
#include "cpu/device/mem_pool.hpp"

namespace quern::cpu::device {
namespace {

/// A pool reserves what is in use, in units that a GPU's driver takes as well.
constexpr std::uint64_t kReservedUnitBytes = std::uint64_t{32} << 20;

bool is_reuse_flag(CUmemPool_attribute attribute) noexcept {
  return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

bool MemPoolObject::charge(std::uint64_t bytes) {
  const base::LockGuard lock(mutex_);
  if (max_bytes_ != 0 && bytes > max_bytes_ - std::min(used_bytes_, max_bytes_)) return false;
  used_bytes_ += bytes;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  most_reserved_bytes_ = std::max(most_reserved_bytes_, used_bytes_);
  return true;
}

void MemPoolObject::discharge(std::uint64_t bytes) {
  const base::LockGuard lock(mutex_);
  used_bytes_ -= bytes;
}

int& MemPoolObject::flag(CUmemPool_attribute attribute) {
  static_assert(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES == 1 &&
                CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES == 3);
  return reuse_[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
}

void MemPoolObject::read(CUmemPool_attribute attribute, void* value) {
  const base::LockGuard lock(mutex_);
  if (is_reuse_flag(attribute)) {
    *static_cast<int*>(value) = flag(attribute);
    return;
  }
  auto& number = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      number = release_threshold_;
      return;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      number = engine::round_up(used_bytes_, kReservedUnitBytes);
      return;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      number = used_bytes_;
      return;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      number = engine::round_up(most_reserved_bytes_, kReservedUnitBytes);
      return;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      number = most_used_bytes_;
      return;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void MemPoolObject::write(CUmemPool_attribute attribute, const void* value) {
  const base::LockGuard lock(mutex_);
  if (is_reuse_flag(attribute)) {
    flag(attribute) = *static_cast<const int*>(value) != 0 ? 1 : 0;
    return;
  }
  const auto number = *static_cast<const cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:  // kept for the client: nothing is kept back
      release_threshold_ = number;
      return;
    // "Resetting the high watermark to 0 sets it to the current usage."
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      require(number == 0);
      most_reserved_bytes_ = used_bytes_;
      return;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      require(number == 0);
      most_used_bytes_ = used_bytes_;
      return;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

CUmemAccess_flags MemPoolObject::access(PoolPlace from) {
  if (from == place_ || memory_ == PoolMemory::managed) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const base::LockGuard lock(mutex_);
  const auto found = access_.find(from);
  return found == access_.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
}

void MemPoolObject::set_access(PoolPlace from, CUmemAccess_flags flags) {
  require(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
          CUDA_ERROR_NOT_SUPPORTED);
  // The access of the pool's own place cannot be taken away, nor that to managed memory.
  if (from == place_ || memory_ == PoolMemory::managed)
    return require(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CUDA_ERROR_INVALID_DEVICE);
  require(from != kHostPlace, CUDA_ERROR_NOT_SUPPORTED);  // the host does not read a device's pool
  const base::LockGuard lock(mutex_);
  access_[from] = flags;
}

PoolCharge::PoolCharge(std::shared_ptr<MemPoolObject> pool, CUmemoryPool handle, std::uint64_t bytes)
    : pool_(std::move(pool)), handle_(handle), bytes_(bytes) {
  require(pool_->charge(bytes_), CUDA_ERROR_OUT_OF_MEMORY);
}

MemPools::MemPools(ObjectTables& objects, std::uint32_t device_count) {
  const auto add = [&](PoolMemory memory, PoolPlace place) {
    defaults_[{memory, place}] = objects.add(std::make_shared<MemPoolObject>(memory, place, 0, true));
  };
  add(PoolMemory::managed, kNoPlace);
  for (PoolPlace place = kHostPlace; place < static_cast<PoolPlace>(device_count); ++place) {
    add(PoolMemory::pinned, place);
    add(PoolMemory::managed, place);
  }
  const base::LockGuard lock(mutex_);
  current_ = defaults_;
}

CUmemoryPool MemPools::current_of(PoolMemory memory, PoolPlace place) {
  const base::LockGuard lock(mutex_);
  return current_.at({memory, place});
}

void MemPools::set_current(PoolMemory memory, PoolPlace place, CUmemoryPool pool) {
  const base::LockGuard lock(mutex_);
  current_[{memory, place}] = pool;
}

void MemPools::leave(CUmemoryPool pool) {
  const base::LockGuard lock(mutex_);
  for (auto& [which, current] : current_)
    if (current == pool) current = defaults_.at(which);
}

}  // namespace quern::cpu::device
