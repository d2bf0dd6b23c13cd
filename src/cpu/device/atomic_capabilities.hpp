// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

namespace quern::cpu::device {

/// The CUatomicOperationCapability bits of the scalar instructions that do `operation` on memory that all
/// processors share: the host's and that of every device. Throws Failure(CUDA_ERROR_INVALID_VALUE) unless
/// cuda.h names the operation.
unsigned scalar_atomic_capabilities(CUatomicOperation operation);

}  // namespace quern::cpu::device
