// SPDX-License-Identifier: Apache-2.0
// component: compile
// Complex numbers of float and double, laid out as NumPy's. Division as CPython computes it.
#pragma once

#include <quern/cuda/array.cuh>

namespace quern {

template <class T>
struct alignas(2 * sizeof(T)) complex {
  T real, imag;

  complex() = default;
  QUERN_HOST_DEVICE constexpr complex(T re, T im = 0) : real(re), imag(im) {}
  template <class U>
  QUERN_HOST_DEVICE constexpr explicit complex(const complex<U>& other)
      : real(T(other.real)), imag(T(other.imag)) {}
};

template <class T>
QUERN_HOST_DEVICE constexpr complex<T> operator+(complex<T> a, complex<T> b) {
  return {a.real + b.real, a.imag + b.imag};
}
template <class T>
QUERN_HOST_DEVICE constexpr complex<T> operator-(complex<T> a, complex<T> b) {
  return {a.real - b.real, a.imag - b.imag};
}
template <class T>
QUERN_HOST_DEVICE constexpr complex<T> operator-(complex<T> a) {
  return {-a.real, -a.imag};
}
template <class T>
QUERN_HOST_DEVICE constexpr complex<T> operator*(complex<T> a, complex<T> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
template <class T>
QUERN_HOST_DEVICE complex<T> operator/(complex<T> a, complex<T> b) {
  const T re = b.real < 0 ? -b.real : b.real, im = b.imag < 0 ? -b.imag : b.imag;
  if (re >= im) {
    const T ratio = b.imag / b.real, scale = b.real + b.imag * ratio;
    return {(a.real + a.imag * ratio) / scale, (a.imag - a.real * ratio) / scale};
  }
  const T ratio = b.real / b.imag, scale = b.real * ratio + b.imag;
  return {(a.real * ratio + a.imag) / scale, (a.imag * ratio - a.real) / scale};
}
template <class T>
QUERN_HOST_DEVICE complex<T>& operator+=(complex<T>& a, complex<T> b) {
  return a = a + b;
}
template <class T>
QUERN_HOST_DEVICE complex<T>& operator-=(complex<T>& a, complex<T> b) {
  return a = a - b;
}
template <class T>
QUERN_HOST_DEVICE complex<T>& operator*=(complex<T>& a, complex<T> b) {
  return a = a * b;
}
template <class T>
QUERN_HOST_DEVICE constexpr bool operator==(complex<T> a, complex<T> b) {
  return a.real == b.real && a.imag == b.imag;
}
template <class T>
QUERN_HOST_DEVICE constexpr bool operator!=(complex<T> a, complex<T> b) {
  return !(a == b);
}
template <class T>
QUERN_HOST_DEVICE constexpr bool operator!=(complex<T> a, int b) {
  return a.real != T(b) || a.imag != T(0);
}

template <class T>
QUERN_HOST_DEVICE constexpr complex<T> conjugate(complex<T> a) {
  return {a.real, -a.imag};
}

#if defined(__CUDACC__)
template <class T>
__device__ __forceinline__ T abs(complex<T> a) {
  return hypot(a.real, a.imag);
}
/// a ** b
template <class T>
__device__ __forceinline__ complex<T> power(complex<T> a, complex<T> b) {
  if (b.imag == 0 && b.real == 2) return a * a;
  if (b.imag == 0 && b.real == 0) return complex<T>(1);
  if (a.real == 0 && a.imag == 0) return complex<T>(0);
  const T length = abs(a), angle = atan2(a.imag, a.real);
  T size = pow(length, b.real), turn = angle * b.real;
  if (b.imag != 0) {
    size *= exp(-angle * b.imag);
    turn += b.imag * log(length);
  }
  return {size * cos(turn), size * sin(turn)};
}
#endif

}  // namespace quern
