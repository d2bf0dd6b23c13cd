// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quern/device_array.hpp"
#include "runtime/context.hpp"

namespace quern::runtime {

struct BufferState {
  std::shared_ptr<Context> context;
  CUdeviceptr address = 0;  ///< 0 where size_bytes is 0
  std::size_t size_bytes = 0;
  OwnedHandle owner;
};

/// Uninitialised device memory; no bytes are legal and take none.
DeviceBuffer make_buffer(std::shared_ptr<Context> context, std::size_t size_bytes);

/// Bytes of an array of `shape`. Throws Error(usage) for negative extents and for sizes that do not fit.
std::size_t array_bytes(std::span<const std::int64_t> shape, std::size_t element_bytes);

}  // namespace quern::runtime
