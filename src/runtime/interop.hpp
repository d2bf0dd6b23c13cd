// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "quern/cuda_array_interface.hpp"
#include "quern/device_array.hpp"
#include "runtime/context.hpp"

namespace quern::runtime {

/// A view of a producer's memory that keeps `owner` alive; the producer's stream is waited for (`wait`)
/// first. Throws Error(usage) for what the interface forbids, and for memory of another device.
DeviceNDArray adopt_cuda_array(const std::shared_ptr<Context>& context, const CudaArrayInterface& array,
                               std::shared_ptr<const void> owner, bool wait);

}  // namespace quern::runtime
