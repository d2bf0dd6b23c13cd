// SPDX-License-Identifier: Apache-2.0
// component: compile
// Python's cmath: functions of complex numbers, composed of CUDA's real ones. Branch cuts are Python's.
#pragma once

#include <quern/cuda/complex.cuh>
#include <quern/cuda/tuple.cuh>

namespace quern {
namespace cmath {

template <class T>
__device__ __forceinline__ bool isnan(complex<T> z) {
  return z.real != z.real || z.imag != z.imag;
}
template <class T>
__device__ __forceinline__ bool isinf(complex<T> z) {
  return ::isinf(z.real) || ::isinf(z.imag);
}
template <class T>
__device__ __forceinline__ bool isfinite(complex<T> z) {
  return ::isfinite(z.real) && ::isfinite(z.imag);
}
template <class T>
__device__ __forceinline__ T phase(complex<T> z) {
  return atan2(z.imag, z.real);
}
template <class T>
__device__ __forceinline__ tuple<T, T> polar(complex<T> z) {
  return {hypot(z.real, z.imag), phase(z)};
}
template <class T>
__device__ __forceinline__ complex<T> rect(T size, T angle) {
  return angle == T(0) ? complex<T>(size, angle * size)
                       : complex<T>(size * ::cos(angle), size * ::sin(angle));
}
/// i * z
template <class T>
__device__ __forceinline__ complex<T> turned(complex<T> z) {
  return {-z.imag, z.real};
}
/// -i * z
template <class T>
__device__ __forceinline__ complex<T> turned_back(complex<T> z) {
  return {z.imag, -z.real};
}

template <class T>
__device__ __forceinline__ complex<T> exp(complex<T> z) {
  const T size = ::exp(z.real);
  return z.imag == T(0) ? complex<T>(size, z.imag) : complex<T>(size * ::cos(z.imag), size * ::sin(z.imag));
}
template <class T>
__device__ __forceinline__ complex<T> log(complex<T> z) {
  return {::log(hypot(z.real, z.imag)), phase(z)};
}
template <class T>
__device__ __forceinline__ complex<T> log(complex<T> z, complex<T> base) {
  return log(z) / log(base);
}
template <class T>
__device__ __forceinline__ complex<T> log10(complex<T> z) {
  const complex<T> natural = log(z);
  return {natural.real * T(0.4342944819032518), natural.imag * T(0.4342944819032518)};
}
template <class T>
__device__ __forceinline__ complex<T> sqrt(complex<T> z) {
  if (z.real == T(0) && z.imag == T(0)) return {T(0), z.imag};
  if (::isinf(z.imag)) return {::fabs(z.imag), z.imag};
  // Halved first, so that the sum does not overflow.
  const T size = T(2) * ::sqrt((::fabs(z.real) / T(8)) + hypot(z.real / T(8), z.imag / T(8)));
  const T other = ::fabs(z.imag) / (T(2) * size);
  return z.real >= T(0) ? complex<T>(size, copysign(other, z.imag))
                        : complex<T>(other, copysign(size, z.imag));
}

template <class T>
__device__ __forceinline__ complex<T> sinh(complex<T> z) {
  return {::cos(z.imag) * ::sinh(z.real), ::sin(z.imag) * ::cosh(z.real)};
}
template <class T>
__device__ __forceinline__ complex<T> cosh(complex<T> z) {
  return {::cos(z.imag) * ::cosh(z.real), ::sin(z.imag) * ::sinh(z.real)};
}
/// Kahan's formula: no overflow for large |real|.
template <class T>
__device__ __forceinline__ complex<T> tanh(complex<T> z) {
  if (::fabs(z.real) > T(sizeof(T) == 4 ? 15 : 25))
    return {copysign(T(1), z.real), T(4) * ::sin(z.imag) * ::cos(z.imag) * ::exp(T(-2) * ::fabs(z.real))};
  const T slope = ::tan(z.imag), rise = ::sinh(z.real), run = T(1) + slope * slope;
  const T scale = T(1) + run * rise * rise;
  return {run * ::sqrt(T(1) + rise * rise) * rise / scale, slope / scale};
}
template <class T>
__device__ __forceinline__ complex<T> sin(complex<T> z) {
  return turned_back(sinh(turned(z)));
}
template <class T>
__device__ __forceinline__ complex<T> cos(complex<T> z) {
  return cosh(turned(z));
}
template <class T>
__device__ __forceinline__ complex<T> tan(complex<T> z) {
  return turned_back(tanh(turned(z)));
}

/// Kahan's formulas of square roots: right at the cuts.
template <class T>
__device__ __forceinline__ complex<T> asinh(complex<T> z) {
  const complex<T> a = sqrt(complex<T>(T(1) + z.imag, -z.real)), b = sqrt(complex<T>(T(1) - z.imag, z.real));
  return {::asinh(a.real * b.imag - b.real * a.imag), atan2(z.imag, a.real * b.real - a.imag * b.imag)};
}
template <class T>
__device__ __forceinline__ complex<T> acos(complex<T> z) {
  const complex<T> a = sqrt(complex<T>(T(1) - z.real, -z.imag)), b = sqrt(complex<T>(T(1) + z.real, z.imag));
  return {T(2) * atan2(a.real, b.real), ::asinh(b.real * a.imag - b.imag * a.real)};
}
template <class T>
__device__ __forceinline__ complex<T> acosh(complex<T> z) {
  const complex<T> a = sqrt(complex<T>(z.real - T(1), z.imag)), b = sqrt(complex<T>(z.real + T(1), z.imag));
  return {::asinh(a.real * b.real + a.imag * b.imag), T(2) * atan2(a.imag, b.real)};
}
template <class T>
__device__ __forceinline__ complex<T> atanh(complex<T> z) {
  if (z.real < T(0) || (z.real == T(0) && signbit(z.real))) return -atanh(complex<T>(-z.real, -z.imag));
  const T side = ::fabs(z.imag), rest = T(1) - z.real;
  if (z.real == T(1) && side == T(0)) return {T(__int_as_float(0x7f800000)), z.imag};
  const T real = log1p(T(4) * z.real / (rest * rest + side * side)) / T(4);
  const T imag = -atan2(T(-2) * z.imag, rest * (T(1) + z.real) - side * side) / T(2);
  return {real, imag};
}
template <class T>
__device__ __forceinline__ complex<T> asin(complex<T> z) {
  return turned_back(asinh(turned(z)));
}
template <class T>
__device__ __forceinline__ complex<T> atan(complex<T> z) {
  return turned_back(atanh(turned(z)));
}

}  // namespace cmath
}  // namespace quern
