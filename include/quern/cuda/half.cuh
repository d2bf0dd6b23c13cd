// SPDX-License-Identifier: Apache-2.0
// component: compile
// Functions of float16 and bfloat16 that older toolkits lack.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace quern {

__device__ __forceinline__ __half htanh(__half x) { return __half(tanhf(float(x))); }
__device__ __forceinline__ __nv_bfloat16 htanh(__nv_bfloat16 x) { return __nv_bfloat16(tanhf(float(x))); }

}  // namespace quern
