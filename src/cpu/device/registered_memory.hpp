// SPDX-License-Identifier: Apache-2.0
// Memory of the host that the program has registered, and its addresses for kernels.
#pragma once

#include <cuda.h>

#include <memory>

#include "cpu/device/driver.hpp"
#include "cpu/engine/mapping.hpp"

namespace quern::cpu::device {

/// Makes a mapping of host memory for kernels of the context. Throws Failure.
std::shared_ptr<engine::Mapping> map(Driver& driver, const ContextState& state, std::byte* host,
                                     std::size_t bytes);
void unmap(Driver& driver, const engine::Mapping& mapping);

/// The address at which kernels access the memory at `pointer`, in the allocation. All registered memory has
/// one, but what was not registered with DEVICEMAP only when it is asked for: every launch from then on takes
/// time for it. Throws Failure.
CUdeviceptr device_address(Driver& driver, const engine::Allocation& allocation, const void* pointer);

}  // namespace quern::cpu::device
