// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <cstdint>

namespace quern::cpu::device {

/// The CUatomicOperationCapability bits of the instructions that do `operation` on memory that all processors
/// share: the host's and that of every device. `compute_capability`: 89 for 8.9. Throws
/// Failure(CUDA_ERROR_INVALID_VALUE) unless cuda.h names the operation.
unsigned atomic_capabilities(CUatomicOperation operation, std::uint32_t compute_capability);

}  // namespace quern::cpu::device
