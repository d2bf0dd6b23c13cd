// SPDX-License-Identifier: Apache-2.0
// User objects: counted references, which the client and graphs own.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "base/thread_annotations.hpp"
#include "cpu/device/driver.hpp"

namespace quern::cpu::device {

/// Thread-safe.
class UserObject {
 public:
  UserObject(void* pointer, CUhostFn destroy, std::uint64_t references)
      : pointer_(pointer), destroy_(destroy), references_(references), of_client_(references) {}

  void set_handle(CUuserObject handle) noexcept { handle_ = handle; }
  CUuserObject handle() const noexcept { return handle_; }

  enum class Owner : std::uint8_t { client, graph };
  /// Throws Failure(CUDA_ERROR_INVALID_VALUE) if the object is destroyed, or has too many references.
  void retain(std::uint64_t count, Owner owner) QUERN_EXCLUDES(mutex_);
  /// References of the client become a graph's. Throws Failure(CUDA_ERROR_INVALID_VALUE) if it has fewer.
  void move_to_graph(std::uint64_t count) QUERN_EXCLUDES(mutex_);
  /// With the last reference the handle becomes stale and the client's destructor is called. Throws
  /// Failure(CUDA_ERROR_INVALID_VALUE) if the owner has fewer.
  void release(Driver& driver, std::uint64_t count, Owner owner) QUERN_EXCLUDES(mutex_);

 private:
  void* const pointer_;
  const CUhostFn destroy_;
  CUuserObject handle_ = nullptr;
  base::Mutex mutex_;
  std::uint64_t references_ QUERN_GUARDED_BY(mutex_);  ///< all
  std::uint64_t of_client_ QUERN_GUARDED_BY(mutex_);   ///< the client's among them
};

/// References that a graph owns; move-only.
class UserReference {
 public:
  UserReference(Driver& driver, std::shared_ptr<UserObject> object, std::uint64_t count)
      : driver_(&driver), object_(std::move(object)), count_(count) {}
  ~UserReference() {
    if (object_ != nullptr) object_->release(*driver_, count_, UserObject::Owner::graph);
  }
  UserReference(UserReference&&) noexcept = default;
  UserReference& operator=(UserReference&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(object_, other.object_);
    std::swap(count_, other.count_);
    return *this;
  }
  UserReference(const UserReference&) = delete;
  UserReference& operator=(const UserReference&) = delete;

  const std::shared_ptr<UserObject>& object() const noexcept { return object_; }
  std::uint64_t count() const noexcept { return count_; }
  /// Another owner's references to the same object.
  UserReference copy() const {
    object_->retain(count_, UserObject::Owner::graph);
    return {*driver_, object_, count_};
  }
  /// Splits off `count` references, of at most count().
  UserReference split(std::uint64_t count) {
    count_ -= count;
    return {*driver_, object_, count};
  }

 private:
  Driver* driver_;
  std::shared_ptr<UserObject> object_;
  std::uint64_t count_;
};

}  // namespace quern::cpu::device
