// SPDX-License-Identifier: Apache-2.0
// component: compile
// Functions of math and NumPy that CUDA C++ lacks.
#pragma once

namespace quern {

/// The smaller and the larger of two; NaN if one is.
template <class T>
__device__ __forceinline__ T minimum(T a, T b) {
  return a != a || a < b ? a : b;
}
template <class T>
__device__ __forceinline__ T maximum(T a, T b) {
  return a != a || a > b ? a : b;
}
template <class T>
__device__ __forceinline__ T reciprocal(T x) {
  return T(1) / x;
}
/// sin(pi * x) / (pi * x)
template <class T>
__device__ __forceinline__ T sinc(T x) {
  return x == T(0) ? T(1) : sinpi(x) / (T(3.141592653589793) * x);
}
/// 0, at_zero or 1 for x below, at or above 0.
template <class T>
__device__ __forceinline__ T heaviside(T x, T at_zero) {
  return x != x ? x : x < T(0) ? T(0) : x > T(0) ? T(1) : at_zero;
}
/// log(exp(a) + exp(b)), without overflow on the way.
template <class T>
__device__ __forceinline__ T logaddexp(T a, T b) {
  if (a == b) return a + T(0.6931471805599453);
  const T far = a - b;
  return far > T(0) ? a + log1p(exp(-far)) : far <= T(0) ? b + log1p(exp(far)) : far;
}
template <class T>
__device__ __forceinline__ T logaddexp2(T a, T b) {
  if (a == b) return a + T(1);
  const T far = a - b;
  const T scale = T(1.4426950408889634);
  return far > T(0) ? a + scale * log1p(exp2(-far)) : far <= T(0) ? b + scale * log1p(exp2(far)) : far;
}

namespace detail {
/// Infinity with the sign of x.
template <class T>
__device__ __forceinline__ T far_end(T x) {
  return copysign(T(__int_as_float(0x7f800000)), x);
}
}  // namespace detail

/// Distance to the next float away from 0, with the sign of x.
template <class T>
__device__ __forceinline__ T spacing(T x) {
  return isinf(x) ? x - x : nextafter(x, detail::far_end(x)) - x;
}
/// The value of the last place of |x|.
template <class T>
__device__ __forceinline__ T ulp(T x) {
  if (x != x || isinf(x)) return fabs(x);
  const T size = fabs(x), up = nextafter(size, detail::far_end(T(1)));
  return isinf(up) ? size - nextafter(size, T(0)) : up - size;
}

__device__ __forceinline__ unsigned long long unsigned_gcd(unsigned long long a, unsigned long long b) {
  while (b != 0) {
    const unsigned long long rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
__device__ __forceinline__ unsigned long long unsigned_lcm(unsigned long long a, unsigned long long b) {
  const unsigned long long common = unsigned_gcd(a, b);
  return common == 0 ? 0 : a / common * b;
}
__device__ __forceinline__ long long gcd(long long a, long long b) {
  return (long long)unsigned_gcd(a < 0 ? 0ull - (unsigned long long)a : a,
                                 b < 0 ? 0ull - (unsigned long long)b : b);
}
__device__ __forceinline__ long long lcm(long long a, long long b) {
  const long long common = gcd(a, b);
  return common == 0 ? 0 : llabs(a / common * b);
}
/// The square root, rounded down; of negative numbers 0.
__device__ __forceinline__ long long isqrt(long long n) {
  if (n <= 0) return 0;
  long long root = (long long)sqrt((double)n);
  if (root > 3037000499ll) root = 3037000499ll;
  while (root * root > n) --root;
  while (root < 3037000499ll && (root + 1) * (root + 1) <= n) ++root;
  return root;
}
__device__ __forceinline__ long long factorial(long long n) {
  unsigned long long product = 1;
  for (long long i = 2; i <= n && i <= 66; ++i) product *= (unsigned long long)i;
  return n > 66 ? 0 : (long long)product;  // 2**64 divides what follows
}
__device__ __forceinline__ long long perm(long long n, long long k) {
  if (k < 0 || k > n) return 0;
  unsigned long long product = 1;
  for (long long i = 0; i < k && product != 0; ++i) product *= (unsigned long long)(n - i);
  return (long long)product;
}
/// Ways to choose k of n: as exact as its 64 bits, since each step divides before it multiplies.
__device__ __forceinline__ long long comb(long long n, long long k) {
  if (k < 0 || k > n) return 0;
  if (k > n - k) k = n - k;
  unsigned long long result = 1;
  for (long long i = 1; i <= k; ++i) {
    const unsigned long long factor = (unsigned long long)(n - k + i);
    const unsigned long long common = (unsigned long long)gcd((long long)result, i);
    result = result / common * (factor / ((unsigned long long)i / common));
  }
  return (long long)result;
}

/// math.isclose
__device__ __forceinline__ bool isclose(double a, double b, double rel_tol, double abs_tol) {
  if (a == b) return true;
  if (isinf(a) || isinf(b)) return false;
  const double far = fabs(a - b);
  return far <= fabs(rel_tol * b) || far <= fabs(rel_tol * a) || far <= abs_tol;
}
/// np.isclose
__device__ __forceinline__ bool isclose_np(double a, double b, double rtol, double atol) {
  if (a == b) return true;
  if (isinf(a) || isinf(b)) return false;
  return fabs(a - b) <= atol + rtol * fabs(b);
}

}  // namespace quern
