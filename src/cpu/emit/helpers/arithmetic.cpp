// SPDX-License-Identifier: Apache-2.0
// Arithmetic for which some processors have no vector instruction: 64-bit divisions and conversions, fma
// without FMA, and directed rounding. Directed rounding switches MXCSR around a call through a pointer, which
// the compiler can neither inline nor move.
#include <immintrin.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/emit/helpers/helper_code.hpp"

namespace quern::cpu::emit {
namespace {

/// Control bits for each ir::Rounding: rn, rz, rm, rp.
constexpr unsigned kMxcsrRounding[] = {0x0000, 0x6000, 0x2000, 0x4000};

class RoundingScope {
 public:
  explicit RoundingScope(std::uint32_t rounding) : saved_(_mm_getcsr()) {
    _mm_setcsr((saved_ & ~0x6000u) | kMxcsrRounding[rounding & 3]);
  }
  ~RoundingScope() { _mm_setcsr(saved_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  unsigned saved_;
};

template <class T>
using Loop = void (*)(std::uint32_t count, T* out, const T* a, const T* b, const T* c);

template <class T, RoundedOp op>
__attribute__((noinline)) void loop(std::uint32_t count, T* out, const T* a, const T* b, const T* c) {
  for (std::uint32_t at = 0; at < count; ++at) {
    if constexpr (op == RoundedOp::add) out[at] = a[at] + b[at];
    if constexpr (op == RoundedOp::sub) out[at] = a[at] - b[at];
    if constexpr (op == RoundedOp::mul) out[at] = a[at] * b[at];
    if constexpr (op == RoundedOp::div) out[at] = a[at] / b[at];
    if constexpr (op == RoundedOp::sqrt) out[at] = std::sqrt(a[at]);
    if constexpr (op == RoundedOp::fma) out[at] = std::fma(a[at], b[at], c[at]);
  }
}

__attribute__((noinline, target("avx2,fma"))) void fma_with_fma(std::uint32_t count, float* out,
                                                                const float* a, const float* b,
                                                                const float* c) {
  std::uint32_t at = 0;
  for (; at + 8 <= count; at += 8)
    _mm256_storeu_ps(
        out + at, _mm256_fmadd_ps(_mm256_loadu_ps(a + at), _mm256_loadu_ps(b + at), _mm256_loadu_ps(c + at)));
  for (; at < count; ++at)
    _mm_store_ss(out + at, _mm_fmadd_ss(_mm_load_ss(a + at), _mm_load_ss(b + at), _mm_load_ss(c + at)));
}

__attribute__((noinline, target("avx2,fma"))) void fma_with_fma(std::uint32_t count, double* out,
                                                                const double* a, const double* b,
                                                                const double* c) {
  std::uint32_t at = 0;
  for (; at + 4 <= count; at += 4)
    _mm256_storeu_pd(
        out + at, _mm256_fmadd_pd(_mm256_loadu_pd(a + at), _mm256_loadu_pd(b + at), _mm256_loadu_pd(c + at)));
  for (; at < count; ++at)
    _mm_store_sd(out + at, _mm_fmadd_sd(_mm_load_sd(a + at), _mm_load_sd(b + at), _mm_load_sd(c + at)));
}

template <class T>
Loop<T> fma_loop() {
  static const bool has_fma = __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("avx2") != 0;
  return has_fma ? static_cast<Loop<T>>(fma_with_fma) : loop<T, RoundedOp::fma>;
}

template <class T>
Loop<T> loop_of(RoundedOp op) {
  switch (op) {
    case RoundedOp::add:
      return loop<T, RoundedOp::add>;
    case RoundedOp::sub:
      return loop<T, RoundedOp::sub>;
    case RoundedOp::mul:
      return loop<T, RoundedOp::mul>;
    case RoundedOp::div:
      return loop<T, RoundedOp::div>;
    case RoundedOp::sqrt:
      return loop<T, RoundedOp::sqrt>;
    case RoundedOp::fma:
      break;
  }
  return fma_loop<T>();
}

template <class T>
void rounded(std::uint32_t op, std::uint32_t rounding, std::uint32_t count, T* out, const T* a, const T* b,
             const T* c) {
  // The pointer is volatile, so that the call stays between the two changes of MXCSR.
  volatile Loop<T> run = loop_of<T>(static_cast<RoundedOp>(op));
  const RoundingScope scope(rounding);
  run(count, out, a, b, c);
}

template <class To>
__attribute__((noinline)) void convert_signed(std::uint32_t count, To* out, const std::uint64_t* in) {
  for (std::uint32_t at = 0; at < count; ++at) out[at] = static_cast<To>(static_cast<std::int64_t>(in[at]));
}

/// Converts unsigned numbers by a signed conversion. Large ones are halved, with the lowest bit kept as a
/// sticky bit, and the result is doubled, which is exact.
template <class To>
__attribute__((noinline)) void convert_unsigned(std::uint32_t count, To* out, const std::uint64_t* in) {
  for (std::uint32_t at = 0; at < count; ++at) {
    const std::uint64_t value = in[at];
    const bool large = value >> 63 != 0;
    const To half = static_cast<To>(static_cast<std::int64_t>(large ? value >> 1 | (value & 1) : value));
    // a multiplication: with directed rounding, adding a zero could give -0
    out[at] = half * (large ? To{2} : To{1});
  }
}

template <class To>
void from_integer(bool is_signed, std::uint32_t rounding, std::uint32_t count, To* out,
                  const std::uint64_t* in) {
  void (*volatile convert)(std::uint32_t, To*, const std::uint64_t*) =
      is_signed ? convert_signed<To> : convert_unsigned<To>;
  const RoundingScope scope(rounding);
  convert(count, out, in);
}

/// x modulo 2 pi, in [-pi, pi], for |x| >= 2^20; NaN if x is not finite. As M. Payne and R. Hanek ("Radian
/// reduction for trigonometric functions", 1983): whole turns do not count, so of 1 / (2 pi) only the 64 bits
/// are needed that the mantissa of x turns into a fraction. The error is at most 2^-37 before the result is
/// rounded.
float reduced_angle(float x) {
  // 1 / (16 pi) = 2^-3 / (2 pi) in binary, behind the point.
  constexpr std::uint64_t kBits[] = {0x0517cc1b727220a9, 0x4fe13abe8fa9a6ee, 0x06db14acc9e21c82};
  constexpr double kTurn = 0x1.921fb54442d18p2;
  std::uint32_t word = 0;
  std::memcpy(&word, &x, sizeof word);
  const unsigned exponent = word >> 23 & 0xff;
  if (exponent == 0xff) return std::numeric_limits<float>::quiet_NaN();
  // |x| is mantissa * 2^(at - 3).
  const std::uint64_t mantissa = (word & 0x7fffff) | 0x800000;
  const unsigned at = exponent - 147, first = at / 64, shift = at % 64;
  const std::uint64_t window =
      shift == 0 ? kBits[first] : kBits[first] << shift | kBits[first + 1] >> (64 - shift);
  const auto turns = static_cast<std::int64_t>(mantissa * window);  // * 2^-64, without whole turns
  const auto angle = static_cast<float>(static_cast<double>(turns) * (kTurn * 0x1p-64));
  return std::signbit(x) ? -angle : angle;
}

}  // namespace

extern "C" {

/// Reduces the numbers of at least 2^20 to [-pi, pi].
static void quern_cpu_reduce_angles(std::uint32_t count, float* x) {
  for (std::uint32_t at = 0; at < count; ++at)
    if (!(std::fabs(x[at]) < 0x1p20f)) x[at] = reduced_angle(x[at]);
}

static void quern_cpu_rounded_f32(std::uint32_t op, std::uint32_t rounding, std::uint32_t count, float* out,
                                  const float* a, const float* b, const float* c) {
  rounded(op, rounding, count, out, a, b, c);
}
static void quern_cpu_rounded_f64(std::uint32_t op, std::uint32_t rounding, std::uint32_t count, double* out,
                                  const double* a, const double* b, const double* c) {
  rounded(op, rounding, count, out, a, b, c);
}
static void quern_cpu_fma_f32(std::uint32_t count, float* out, const float* a, const float* b,
                              const float* c) {
  fma_loop<float>()(count, out, a, b, c);
}
static void quern_cpu_fma_f64(std::uint32_t count, double* out, const double* a, const double* b,
                              const double* c) {
  fma_loop<double>()(count, out, a, b, c);
}
static void quern_cpu_int_to_f32(std::uint32_t is_signed, std::uint32_t rounding, std::uint32_t count,
                                 float* out, const std::uint64_t* in) {
  from_integer(is_signed != 0, rounding, count, out, in);
}
static void quern_cpu_int_to_f64(std::uint32_t is_signed, std::uint32_t rounding, std::uint32_t count,
                                 double* out, const std::uint64_t* in) {
  from_integer(is_signed != 0, rounding, count, out, in);
}

/// Saturating; the caller handles NaN.
static void quern_cpu_f64_to_s64(std::int64_t* out, const double* in) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const double value = in[lane];
    const bool high = value >= 0x1p63;
    const bool inside = value > -0x1p63 && !high;
    out[lane] = inside ? static_cast<std::int64_t>(value) : high ? INT64_MAX : INT64_MIN;
  }
}
static void quern_cpu_f64_to_u64(std::uint64_t* out, const double* in) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const double value = in[lane];
    const bool high = value >= 0x1p64;
    const bool inside = value > 0 && !high;
    out[lane] = inside ? static_cast<std::uint64_t>(value) : high ? UINT64_MAX : 0;
  }
}

/// Divides. The emitter ensures that the divisor is not 0 and that the division does not overflow.
static void quern_cpu_div_s64(std::int64_t* out, const std::int64_t* x, const std::int64_t* y) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) out[lane] = x[lane] / y[lane];
}
static void quern_cpu_div_u64(std::uint64_t* out, const std::uint64_t* x, const std::uint64_t* y) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    // Most 64-bit values in kernels are small, and a 32-bit division takes a fraction of the time.
    const bool narrow = (x[lane] | y[lane]) >> 32 == 0;
    out[lane] = narrow ? static_cast<std::uint32_t>(x[lane]) / static_cast<std::uint32_t>(y[lane])
                       : x[lane] / y[lane];
  }
}

}  // extern "C"

std::span<const Helper> arithmetic_helpers() {
  static const Helper rows[] = {
      QUERN_HELPER(quern_cpu_rounded_f32),
      QUERN_HELPER(quern_cpu_rounded_f64),
      QUERN_HELPER(quern_cpu_fma_f32),
      QUERN_HELPER(quern_cpu_fma_f64),
      QUERN_HELPER(quern_cpu_int_to_f32),
      QUERN_HELPER(quern_cpu_int_to_f64),
      QUERN_HELPER(quern_cpu_f64_to_s64),
      QUERN_HELPER(quern_cpu_f64_to_u64),
      QUERN_HELPER(quern_cpu_reduce_angles),
      QUERN_HELPER(quern_cpu_div_s64),
      QUERN_HELPER(quern_cpu_div_u64),
      // LLVM calls C functions if it recognises a comparison and a select of 16-bit numbers as a minimum or
      // maximum. They are defined here, since C does not specify which zero is greater.
      helper_row("fmaxf", &greater<float>),
      helper_row("fminf", &lesser<float>),
  };
  return rows;
}

}  // namespace quern::cpu::emit
