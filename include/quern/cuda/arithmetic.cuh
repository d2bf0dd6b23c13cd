// SPDX-License-Identifier: Apache-2.0
// component: compile
// Python's arithmetic where C++ differs: division that rounds down, remainders with the divisor's sign,
// powers.
#pragma once

namespace quern {
namespace detail {

template <class T>
struct is_real {
  enum : bool { value = false };
};
template <>
struct is_real<float> {
  enum : bool { value = true };
};
template <>
struct is_real<double> {
  enum : bool { value = true };
};

// The remainder with the sign of a, as Numba's compiler has it: of magnitudes, each step rounded. fmod would
// be exact, and give other numbers than Numba where a / b is large.
__device__ __forceinline__ float remainder(float a, float b) {
  const float x = fabsf(a), y = fabsf(b);
  const float rest = __fsub_rn(x, __fmul_rn(floorf(__fdiv_rn(x, y)), y));
  return a < 0 ? -rest : rest;
}
__device__ __forceinline__ double remainder(double a, double b) {
  const double x = fabs(a), y = fabs(b);
  const double rest = __dsub_rn(x, __dmul_rn(floor(__ddiv_rn(x, y)), y));
  return a < 0 ? -rest : rest;
}

// Both of a float division: the quotient rounded down, the remainder with the sign of the divisor.
template <class T>
__device__ __forceinline__ void divide_real(T a, T b, T& quotient, T& rest) {
  T mod = remainder(a, b);
  T div = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      div -= 1;
    }
  } else {
    mod = copysign(T(0), b);
  }
  if (div != 0) {
    quotient = floor(div);
    if (div - quotient > T(0.5)) quotient += 1;
  } else {
    quotient = div * div * a / b;
  }
  rest = mod;
}

// The divisor in place of 0 and -1 is 1, with which nothing overflows. There is no branch, so that a warp in
// which all threads have one quotient is seen to have one.
template <class T>
__device__ __forceinline__ T safe_divisor(T b) {
  if constexpr (T(-1) < T(0))
    return static_cast<unsigned long long>(b) + 1 < 2 ? T(1) : b;
  else
    return b == 0 ? T(1) : b;
}

// Without a branch on the divisor's sign, by which the compiler would copy the code that follows.
template <class T>
__device__ __forceinline__ bool has_other_sign(T number, T divisor) {
  return (number < 0) != (divisor < 0);
}

}  // namespace detail

/// a // b. For integers, 0 if b is 0 or if the quotient does not fit; for floats the IEEE result.
template <class T>
__device__ __forceinline__ T floor_div(T a, T b) {
  if constexpr (detail::is_real<T>::value) {
    if (b == 0) return a / b;
    T quotient, remainder;
    detail::divide_real(a, b, quotient, remainder);
    return quotient;
  } else {
    const T divisor = detail::safe_divisor(b);
    T quotient = a / divisor;
    if constexpr (T(-1) < T(0)) {
      quotient -= (T(quotient * divisor) != a) & detail::has_other_sign(a, divisor) ? 1 : 0;
      const T negative = quotient == T(T(1) << (8 * sizeof(T) - 1)) ? T(0) : T(-quotient);
      quotient = b == -1 ? negative : quotient;
    }
    return b == 0 ? T(0) : quotient;
  }
}

/// a % b, with the sign of b. For integers, 0 if b is 0.
template <class T>
__device__ __forceinline__ T floor_mod(T a, T b) {
  if constexpr (detail::is_real<T>::value) {
    if (b == 0) return detail::remainder(a, b);
    T quotient, remainder;
    detail::divide_real(a, b, quotient, remainder);
    return remainder;
  } else {
    const T divisor = detail::safe_divisor(b);
    const T remainder = a % divisor;
    if constexpr (T(-1) < T(0))
      return (remainder != 0) & detail::has_other_sign(remainder, divisor) ? remainder + divisor : remainder;
    else
      return remainder;
  }
}

namespace detail {

/// a * b, the low bits of it for integers: C++ takes for granted that products of int and long long fit.
template <class T>
__device__ __forceinline__ T product(T a, T b) {
  return a * b;
}
__device__ __forceinline__ unsigned short product(unsigned short a, unsigned short b) {
  return static_cast<unsigned short>(unsigned(a) * b);
}
__device__ __forceinline__ int product(int a, int b) { return int(unsigned(a) * b); }
__device__ __forceinline__ long long product(long long a, long long b) {
  return static_cast<long long>(static_cast<unsigned long long>(a) * b);
}

}  // namespace detail

/// a ** b for a whole b, by squaring. A negative power of an integer is 1 / a**-b without its fraction.
template <class T, class Exponent>
__device__ __forceinline__ T power(T base, Exponent exponent) {
  const bool invert = exponent < Exponent(0);
  unsigned long long left =
      invert ? 0ull - static_cast<unsigned long long>(exponent) : static_cast<unsigned long long>(exponent);
  T result(1);
  for (T factor = base; left != 0; left >>= 1) {
    if (left & 1) result = detail::product(result, factor);
    factor = detail::product(factor, factor);
  }
  if (!invert) return result;
  if constexpr (detail::is_real<T>::value)
    return T(1) / result;
  else
    return result == T(0) ? T(0) : T(1) / result;
}

/// Half to even, and never -0: in Numba it is an integer on the way.
__device__ __forceinline__ double half_to_even(double x) {
  double whole = round(x);
  if (fabs(x - whole) == 0.5) whole = 2.0 * round(x / 2.0);
  return whole + 0.0;
}
/// round(x, digits), half to even, as CPython rounds where it has no exact way; in float64 for every T. What
/// is beyond int64 with these digits has no more of them.
template <class T>
__device__ __forceinline__ T round_to(T number, long long digits) {
  const double x = number;
  if (isinf(x) || isnan(x)) return number;
  constexpr double kWhole = 9223372036854775808.0;
  if (digits < 0) {
    const double by = pow(10.0, double(-digits)), scaled = x / by;
    return fabs(scaled) < kWhole ? T(half_to_even(scaled) * by) : number;
  }
  const double first = pow(10.0, double(digits > 22 ? digits - 22 : digits)),
               second = digits > 22 ? 1e22 : 1.0;
  const double scaled = (x * first) * second;
  return fabs(scaled) < kWhole ? T((half_to_even(scaled) / second) / first) : number;
}

template <class T>
__device__ __forceinline__ T sign(T x) {
  return x != x ? x : x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0);
}
template <class T>
__device__ __forceinline__ T square(T x) {
  return detail::product(x, x);
}
template <class T>
__device__ __forceinline__ T degrees(T x) {
  return x * T(57.29577951308232);
}
template <class T>
__device__ __forceinline__ T radians(T x) {
  return x * T(0.017453292519943295);
}

/// min and max as comparisons of one argument after the other: a NaN stays only where it came first.
template <class T>
__device__ __forceinline__ T lesser(T a, T b) {
  return b < a ? b : a;
}
template <class T>
__device__ __forceinline__ T greater(T a, T b) {
  return b > a ? b : a;
}

/// `a and b`, `a or b` of numbers: the operand that decides. The right one is computed only if it does.
template <class T, class Right>
__device__ __forceinline__ T both(T a, Right b) {
  return a != T(0) ? static_cast<T>(b()) : a;
}
template <class T, class Right>
__device__ __forceinline__ T either(T a, Right b) {
  return a != T(0) ? a : static_cast<T>(b());
}

/// Ends the thread after a failed assertion outside debug builds.
__device__ __forceinline__ void end_thread() { asm volatile("exit;"); }

}  // namespace quern
