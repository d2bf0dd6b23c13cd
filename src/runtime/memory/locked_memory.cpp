// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/locked_memory.hpp"

namespace quern::runtime {

void LockedMemory::add(const std::byte* begin, std::size_t size_bytes,
                       const std::shared_ptr<const Resource>& lock) {
  const base::LockGuard guard(mutex_);
  std::erase_if(ranges_, [](const Range& range) { return range.lock.expired(); });
  ranges_.push_back({begin, size_bytes, lock});
}

std::shared_ptr<const Resource> LockedMemory::lock_on(const std::byte* begin, std::size_t size_bytes) const {
  std::weak_ptr<const Resource> found;
  {
    const base::LockGuard guard(mutex_);
    for (const Range& range : ranges_)
      if (begin >= range.begin && begin + size_bytes <= range.begin + range.size_bytes &&
          !range.lock.expired())
        found = range.lock;
  }
  return found.lock();  // not under the mutex: dropping the last reference may call the driver
}

}  // namespace quern::runtime
