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
// The driver's functions for profilers have a header of their own, which not every set of headers has.
#if __has_include(<cudaProfiler.h>)
#include <cudaProfiler.h>
#else
extern "C" {
typedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR = 0, CU_OUT_CSV = 1 } CUoutput_mode;
CUresult CUDAAPI cuProfilerInitialize(const char* config_file, const char* output_file, CUoutput_mode mode);
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);
}
#endif
