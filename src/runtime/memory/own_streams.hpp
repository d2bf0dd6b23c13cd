// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "driver/driver_table.hpp"
#include "runtime/memory/release.hpp"

namespace quern::runtime {

/// The streams that quern made in a context. Thread-safe.
class OwnStreams {
 public:
  void add(const std::shared_ptr<const Resource>& stream) QUERN_EXCLUDES(mutex_);
  /// Null for a stream that quern did not make, and for one that has no owner any more.
  std::shared_ptr<const Resource> owner_of(CUstream stream) const QUERN_EXCLUDES(mutex_);

 private:
  struct OwnStream {
    std::uint64_t handle = 0;
    std::weak_ptr<const Resource> resource;
  };
  mutable base::Mutex mutex_;
  std::vector<OwnStream> streams_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::runtime
