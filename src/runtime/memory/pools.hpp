// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "quern/allocator.hpp"
#include "runtime/work/driver_context.hpp"

namespace quern::runtime {

/// The driver's own allocator, as an upstream of other allocators.
std::shared_ptr<DeviceAllocator> make_driver_allocator(const DriverContext& context);

/// cuMemAllocAsync from the device's default pool, which keeps up to `keep_bytes` of freed memory. Throws
/// Error(unsupported) if the device has no pools.
std::shared_ptr<DeviceAllocator> make_stream_ordered_pool(const DriverContext& context,
                                                          std::size_t keep_bytes);

/// Keeps freed blocks and reuses them, rounded up to sizes that are powers of two or half-way between them. A
/// block is reused on another stream only after the old one's work has run.
std::shared_ptr<DeviceAllocator> make_caching_pool(const DriverContext& context,
                                                   std::shared_ptr<DeviceAllocator> upstream,
                                                   std::size_t most_cached_bytes);

}  // namespace quern::runtime
