// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "quern/allocator.hpp"
#include "quern/memory_stats.hpp"

namespace quern::runtime {

class Context;
class Resource;

/// A driver object without references. `handle` is the CUdeviceptr, pointer or CU handle.
struct Release {
  ResourceKind kind = ResourceKind::device;
  std::uint64_t handle = 0;
  std::size_t size_bytes = 0;
  std::shared_ptr<DeviceAllocator> allocator;  ///< of pooled memory
  std::uint64_t stream_handle = 0;             ///< that pooled memory was allocated on
  std::shared_ptr<const Resource> stream;      ///< keeps that stream until then, where it is one of ours
  bool internal = false;                       ///< of quern's own, which programs are not told of
  friend bool operator==(const Release&, const Release&) = default;
};

/// The reference-counted owner of every resource that a context releases: the destructor of the last
/// reference schedules the release. It does not keep its context alive: each holder outside the context's own
/// lists holds the context as well, and for longer.
class Resource {
 public:
  Resource(Context& context, Release item);
  ~Resource();
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  const Release& item() const noexcept { return item_; }
  Context& context() const noexcept { return context_; }

 private:
  Context& context_;
  Release item_;
};

inline constexpr std::size_t kDeviceAlignment = 256;  ///< of all device memory, bytes

}  // namespace quern::runtime
