// SPDX-License-Identifier: Apache-2.0
// cuda.h with every version of each function declared under its own symbol, those of the per-thread default
// stream included: without this cuda.h declares the latest one. To be included before any other file that
// includes cuda.h. Source: cuda.h, "CUDA API versioning support".
#pragma once

#if defined(__cuda_cuda_h__) && !defined(__CUDA_API_VERSION_INTERNAL)
#error "include driver/all_versions.hpp before cuda.h"
#endif
// NOLINTBEGIN(bugprone-reserved-identifier): the names are cuda.h's
#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR
// NOLINTEND(bugprone-reserved-identifier)
#include <cuda.h>
