// SPDX-License-Identifier: Apache-2.0
// Copies of boxes as cuda.h describes them.
#pragma once

#include <cuda.h>

#include "cpu/device/work.hpp"

namespace quern::cpu::device {

/// Throws Failure for a box that is malformed, or of a CUDA array.
CopyWork copy_of(const CUDA_MEMCPY2D& box);
CopyWork copy_of(const CUDA_MEMCPY3D& box);
CopyWork copy_of(const CUDA_MEMCPY3D_PEER& box);
/// The box that a copy is.
CUDA_MEMCPY3D box_of(const CopyWork& work) noexcept;

}  // namespace quern::cpu::device
