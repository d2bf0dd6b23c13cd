// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void floats(const float* x, float* y, const double* p, double* q, int* i) {
  const int t = threadIdx.x;
  const float v = x[t];
  y[t] = sinf(v) + __sinf(v) + expf(v) + __expf(v) + logf(v) + powf(v, 1.5f) + tanhf(v) + rsqrtf(v) + sqrtf(v) + v / x[t + 1];
  y[t + 1] = __fdividef(v, 3.0f) + __frcp_rn(v) + __fsqrt_rz(v) + __fadd_ru(v, 1.0f) + fmaf(v, v, 2.0f) + fminf(v, 4.0f) + fabsf(v);
  y[t + 2] = floorf(v) + ceilf(v) + rintf(v) + truncf(v) + copysignf(v, -1.0f) + __saturatef(v) + fmodf(v, 2.0f) + roundf(v);
  q[t] = sin(p[t]) + exp(p[t]) + log(p[t]) + p[t] / p[t + 1] + sqrt(p[t]) + rsqrt(p[t]) + pow(p[t], 0.3) + floor(p[t]);
  i[t] = __float2int_rn(v) + __double2int_rz(p[t]) + static_cast<int>(v) + isnan(v) + isinf(p[t]) + signbit(v) + __float_as_int(v);
  i[t + 1] = static_cast<int>(__double2ll_rd(p[t]) + __double_as_longlong(p[t]) + __double2hiint(p[t]));
  q[t + 1] = static_cast<double>(i[t]) + static_cast<double>(v) + __ull2double_ru(static_cast<unsigned long long>(i[t]));
}
