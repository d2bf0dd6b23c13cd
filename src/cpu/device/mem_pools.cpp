// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/mem_pools.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "cpu/device/failure.hpp"
#include "cpu/device/mem_pool.hpp"

namespace quern::cpu::device {
namespace {

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
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:  // a pool reserves what is in use
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      number = used_bytes_;
      return;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      number = most_reserved_bytes_;
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

CUmemAccess_flags MemPoolObject::access(std::uint32_t device) {
  if (device == device_) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const base::LockGuard lock(mutex_);
  const auto found = access_.find(device);
  return found == access_.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
}

void MemPoolObject::set_access(std::uint32_t device, CUmemAccess_flags flags) {
  require(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  // The access of the pool's own device cannot be taken away.
  if (device == device_) return require(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  const base::LockGuard lock(mutex_);
  access_[device] = flags;
}

PoolCharge::PoolCharge(std::shared_ptr<MemPoolObject> pool, CUmemoryPool handle, std::uint64_t bytes)
    : pool_(std::move(pool)), handle_(handle), bytes_(bytes) {
  require(pool_->charge(bytes_), CUDA_ERROR_OUT_OF_MEMORY);
}

MemPools::MemPools(ObjectTables& objects, std::uint32_t device_count) {
  for (std::uint32_t device = 0; device < device_count; ++device)
    defaults_.push_back(objects.add(std::make_shared<MemPoolObject>(device, 0, true)));
  const base::LockGuard lock(mutex_);
  current_ = defaults_;
}

CUmemoryPool MemPools::current_of(std::uint32_t device) {
  const base::LockGuard lock(mutex_);
  return current_[device];
}

void MemPools::set_current(std::uint32_t device, CUmemoryPool pool) {
  const base::LockGuard lock(mutex_);
  current_[device] = pool;
}

void MemPools::leave(CUmemoryPool pool) {
  const base::LockGuard lock(mutex_);
  for (std::size_t device = 0; device < current_.size(); ++device)
    if (current_[device] == pool) current_[device] = defaults_[device];
}

}  // namespace quern::cpu::device
