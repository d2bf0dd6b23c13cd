// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/own_streams.hpp"

namespace quern::runtime {

void OwnStreams::add(const std::shared_ptr<const Resource>& stream) {
  const base::LockGuard lock(mutex_);
  std::erase_if(streams_, [](const OwnStream& candidate) { return candidate.resource.expired(); });
  streams_.push_back({stream->item().handle, stream});
}

std::shared_ptr<const Resource> OwnStreams::owner_of(CUstream stream) const {
  std::weak_ptr<const Resource> found;
  {
    const base::LockGuard lock(mutex_);
    for (const OwnStream& candidate : streams_)
      if (candidate.handle == reinterpret_cast<std::uintptr_t>(stream) && !candidate.resource.expired())
        found = candidate.resource;
  }
  return found.lock();  // not under the lock: dropping the last reference may call the driver
}

}  // namespace quern::runtime
