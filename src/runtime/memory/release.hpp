// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "quern/allocator.hpp"
#include "quern/memory_stats.hpp"

namespace quern::runtime {

class Resource;
class Resources;

/// A driver object without references. `handle` is the CUdeviceptr, pointer or CU handle.
struct Release {
  ResourceKind kind = ResourceKind::device;
  std::uint64_t handle = 0;
  std::size_t size_bytes = 0;
  std::shared_ptr<DeviceAllocator> allocator;  ///< of pooled memory
  std::uint64_t stream_handle = 0;             ///< of the stream on which pooled memory was allocated
  std::shared_ptr<const Resource> stream;      ///< keeps that stream until then, if quern made it
  bool internal = false;                       ///< belongs to quern itself: programs do not see it
  friend bool operator==(const Release&, const Release&) = default;
};

template <class Handle>
Release release_of(ResourceKind kind, Handle handle, std::size_t size_bytes = 0) {
  Release item;
  item.kind = kind;
  if constexpr (std::is_pointer_v<Handle>)
    item.handle = reinterpret_cast<std::uintptr_t>(handle);
  else
    item.handle = handle;
  item.size_bytes = size_bytes;
  return item;
}

/// The reference-counted owner of a resource that a context releases: the destructor of the last reference
/// schedules the release. It does not keep its context alive: each holder outside the context's own lists
/// holds the context as well, and for longer.
class Resource {
 public:
  Resource(Resources& resources, Release item);
  ~Resource();
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  const Release& item() const noexcept { return item_; }

 private:
  Resources& resources_;
  Release item_;
};

inline constexpr std::size_t kDeviceAlignment = 256;  ///< of all device memory, bytes

}  // namespace quern::runtime
