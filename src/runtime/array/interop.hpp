// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "quern/cuda_array_interface.hpp"
#include "quern/device_array.hpp"
#include "runtime/context/context.hpp"

namespace quern::runtime {

/// Waits for the producer's stream, numbered as in the CUDA Array Interface: `on` a stream, whose later work
/// is queued behind it, or on this thread, if none is given. Throws Error(usage) for 0, which the interface
/// forbids.
void wait_for_producer(const std::shared_ptr<Context>& context, std::uintptr_t stream,
                       std::optional<StreamView> on);

/// A view of a producer's memory that keeps `owner` alive; waits for the producer's stream (`wait`) first.
/// Throws Error(usage) for arrays that the interface forbids, and for memory of another device.
DeviceNDArray adopt_cuda_array(const std::shared_ptr<Context>& context, const CudaArrayInterface& array,
                               std::shared_ptr<const void> owner, bool wait);

}  // namespace quern::runtime
