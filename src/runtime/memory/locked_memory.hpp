// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "runtime/memory/release.hpp"

namespace quern::runtime {

/// The host memory of the program that a context has page-locked for scopes. Thread-safe.
class LockedMemory {
 public:
  /// The memory is page-locked as long as `lock` lives.
  void add(const std::byte* begin, std::size_t size_bytes, const std::shared_ptr<const Resource>& lock)
      QUERN_EXCLUDES(mutex_);
  /// The lock on all of that memory; null if no scope has locked it.
  std::shared_ptr<const Resource> lock_on(const std::byte* begin, std::size_t size_bytes) const
      QUERN_EXCLUDES(mutex_);

 private:
  struct Range {
    const std::byte* begin = nullptr;
    std::size_t size_bytes = 0;
    std::weak_ptr<const Resource> lock;
  };
  mutable base::Mutex mutex_;
  std::vector<Range> ranges_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::runtime
