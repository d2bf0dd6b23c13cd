// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void half_precision(const __half* a, const __half2* b, __half* out, float* f) {
  const int i = threadIdx.x;
  __half x = __hfma(a[i], a[i + 1], __float2half_rn(f[i]));
  x = __hmax(hsqrt(x), hexp(x));
  const __half2 y = __hadd2(b[i], __half2half2(x));
  out[i] = __hlt(x, __low2half(y)) ? x : __high2half(y);
  f[i] = __half2float(out[i]) + __half2int_rz(x) + __hisnan(x);
}

extern "C" __global__ void brain(const __nv_bfloat16* a, __nv_bfloat162* b, float* f) {
  const int i = threadIdx.x;
  const __nv_bfloat16 x = __hfma(a[i], a[i], __float2bfloat16(f[i]));
  b[i] = __hmul2(b[i], __bfloat162bfloat162(x));
  f[i] = __bfloat162float(x) + __bfloat162float(__hmin(x, a[i + 1]));
}

extern "C" __global__ void eight_bits(const float2* in, __nv_fp8x2_e4m3* a, __nv_fp8x2_e5m2* b, float2* out) {
  const int i = threadIdx.x;
  a[i] = __nv_fp8x2_e4m3(in[i]);
  b[i] = __nv_fp8x2_e5m2(in[i]);
  out[i] = static_cast<float2>(a[i]);
}
