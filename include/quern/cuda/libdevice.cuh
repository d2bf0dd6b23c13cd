// SPDX-License-Identifier: Apache-2.0
// component: compile
// libdevice's functions of several results, as tuples.
#pragma once

#include <cuda_fp16.h>

#include <quern/cuda/tuple.cuh>

namespace quern {
namespace libdevice {

__device__ __forceinline__ tuple<double, int> frexp(double x) {
  int exponent = 0;
  const double mantissa = ::frexp(x, &exponent);
  return {mantissa, exponent};
}
__device__ __forceinline__ tuple<float, int> frexpf(float x) {
  int exponent = 0;
  const float mantissa = ::frexpf(x, &exponent);
  return {mantissa, exponent};
}
__device__ __forceinline__ tuple<double, double> modf(double x) {
  double whole = 0;
  const double fraction = ::modf(x, &whole);
  return {fraction, whole};
}
__device__ __forceinline__ tuple<float, float> modff(float x) {
  float whole = 0;
  const float fraction = ::modff(x, &whole);
  return {fraction, whole};
}
__device__ __forceinline__ tuple<double, int> remquo(double x, double y) {
  int quotient = 0;
  const double rest = ::remquo(x, y, &quotient);
  return {rest, quotient};
}
__device__ __forceinline__ tuple<float, int> remquof(float x, float y) {
  int quotient = 0;
  const float rest = ::remquof(x, y, &quotient);
  return {rest, quotient};
}
__device__ __forceinline__ tuple<double, double> sincos(double x) {
  double sine, cosine;
  ::sincos(x, &sine, &cosine);
  return {sine, cosine};
}
__device__ __forceinline__ tuple<float, float> sincosf(float x) {
  float sine, cosine;
  ::sincosf(x, &sine, &cosine);
  return {sine, cosine};
}
__device__ __forceinline__ tuple<double, double> sincospi(double x) {
  double sine, cosine;
  ::sincospi(x, &sine, &cosine);
  return {sine, cosine};
}
__device__ __forceinline__ tuple<float, float> sincospif(float x) {
  float sine, cosine;
  ::sincospif(x, &sine, &cosine);
  return {sine, cosine};
}
__device__ __forceinline__ tuple<float, float> fast_sincosf(float x) {
  float sine, cosine;
  __sincosf(x, &sine, &cosine);
  return {sine, cosine};
}
/// The bits of a float16 in an int16, and back.
__device__ __forceinline__ float half2float(short bits) { return __half2float(__short_as_half(bits)); }
__device__ __forceinline__ short float2half_rn(float x) { return __half_as_short(__float2half_rn(x)); }

}  // namespace libdevice
}  // namespace quern
