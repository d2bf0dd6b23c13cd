// SPDX-License-Identifier: Apache-2.0
// Mathematical functions: compared with the host's functions in a wider format (float with double; double
// with long double), with the error bounds of the CUDA programming guide.
#include <doctest/doctest.h>

#include <cmath>

#include "harness.hpp"

using namespace quern;
using namespace quern::cuda_test;

namespace {

/// Values at which functions are difficult, and some ordinary ones.
std::vector<double> points() {
  std::vector<double> result = {0.0,
                                -0.0,
                                0.5,
                                -0.5,
                                1.0,
                                -1.0,
                                1.5,
                                2.0,
                                -2.0,
                                3.14159265358979312,
                                -1.5707963267948966,
                                0.1,
                                10.0,
                                100.0,
                                1000.25,
                                -12.75,
                                1e-5,
                                -1e-5,
                                1e-10,
                                1e5,
                                12345.678,
                                1e8,
                                -1e15,
                                0.99,
                                1.01,
                                0.999999,
                                1.000001,
                                20.5,
                                -20.5,
                                87.0,
                                -87.0,
                                5.25,
                                -3.3,
                                7.0,
                                4.0,
                                2.718281828459045,
                                0.3183098861837907,
                                30.0,
                                0.001,
                                double{INFINITY},
                                -double{INFINITY},
                                double{NAN},
                                33.75,
                                -0.75,
                                1e-30,
                                1e30};
  return result;
}

std::vector<Bits> float_points() {
  std::vector<Bits> values;
  for (const double x : points()) values.push_back(bits_of(static_cast<float>(x)));
  return values;
}
std::vector<Bits> double_points() {
  std::vector<Bits> values;
  for (const double x : points()) values.push_back(bits_of(x));
  return values;
}

template <class F>
Row single_row(const std::string& device, double ulp, F reference) {
  return {device,
          [=](Bits a, Bits b, Bits c) {
            return bits_of(static_cast<double>(reference(
                static_cast<double>(f32(a)), static_cast<double>(f32(b)), static_cast<double>(f32(c)))));
          },
          single(ulp)};
}
template <class F>
Row real_row(const std::string& device, double ulp, F reference) {
  return {device,
          [=](Bits a, Bits b, Bits c) {
            return bits_of(static_cast<double>(reference(static_cast<long double>(f64(a)),
                                                         static_cast<long double>(f64(b)),
                                                         static_cast<long double>(f64(c)))));
          },
          real(ulp)};
}

/// One function in both precisions: name, ulp bounds, reference over x, y, z.
#define BOTH(call, float_ulp, double_ulp, expression)                                            \
  singles.push_back(single_row(in_float(call), float_ulp, [](double x, double y, double z) {     \
    return (void)x, (void)y, (void)z, expression;                                                \
  }));                                                                                           \
  doubles.push_back(real_row(call, double_ulp, [](long double x, long double y, long double z) { \
    return (void)x, (void)y, (void)z, expression;                                                \
  }))

/// "sin(a)" -> "sinf(a)"
std::string in_float(std::string call) { return call.insert(call.find('('), "f"); }

constexpr long double kPi = 3.14159265358979323846264338327950288L;

}  // namespace

TEST_CASE("mathematical functions of float and double keep to the guide's errors") {
  std::vector<Row> singles, doubles;
  // The bound of the guide, plus one for the rounding of the reference.
  BOTH("sin(a)", 2.5, 2.5, std::sin(x));
  BOTH("cos(a)", 2.5, 2.5, std::cos(x));
  BOTH("tan(a)", 4.5, 2.5, std::tan(x));
  BOTH("asin(a)", 2.5, 2.5, std::asin(x));
  BOTH("acos(a)", 2.5, 2.5, std::acos(x));
  BOTH("atan(a)", 2.5, 2.5, std::atan(x));
  BOTH("atan2(a, b)", 3.5, 2.5, std::atan2(x, y));
  BOTH("sinh(a)", 3.5, 2.5, std::sinh(x));
  BOTH("cosh(a)", 2.5, 1.5, std::cosh(x));
  BOTH("tanh(a)", 2.5, 1.5, std::tanh(x));
  BOTH("asinh(a)", 3.5, 3.5, std::asinh(x));
  BOTH("acosh(a)", 4.5, 3.5, std::acosh(x));
  BOTH("atanh(a)", 3.5, 2.5, std::atanh(x));
  BOTH("exp(a)", 2.5, 1.5, std::exp(x));
  BOTH("exp2(a)", 2.5, 1.5, std::exp2(x));
  BOTH("expm1(a)", 1.5, 1.5, std::expm1(x));
  BOTH("log(a)", 1.5, 1.5, std::log(x));
  BOTH("log2(a)", 1.5, 1.5, std::log2(x));
  BOTH("log10(a)", 2.5, 1.5, std::log10(x));
  BOTH("log1p(a)", 1.5, 1.5, std::log1p(x));
  BOTH("cbrt(a)", 1.5, 1.5, std::cbrt(x));
  BOTH("rsqrt(a)", 2.5, 1.5, 1 / std::sqrt(x));
  BOTH("hypot(a, b)", 3.5, 2.5, std::hypot(x, y));
  BOTH("erf(a)", 2.5, 2.5, std::erf(x));
  BOTH("erfc(a)", 4.5, 5.5, std::erfc(x));
  BOTH("fmod(a, b)", 0.5, 0.5, std::fmod(x, y));
  BOTH("remainder(a, b)", 0.5, 0.5, std::remainder(x, y));
  BOTH("fdim(a, b)", 0.5, 0.5, std::fdim(x, y));
  BOTH("floor(a)", 0.5, 0.5, std::floor(x));
  BOTH("ceil(a)", 0.5, 0.5, std::ceil(x));
  BOTH("trunc(a)", 0.5, 0.5, std::trunc(x));
  BOTH("round(a)", 0.5, 0.5, std::round(x));
  BOTH("rint(a)", 0.5, 0.5, std::rint(x));
  BOTH("fmin(a, b)", 0.5, 0.5, std::fmin(x, y));
  BOTH("fmax(a, b)", 0.5, 0.5, std::fmax(x, y));
  BOTH("logb(a)", 0.5, 0.5, std::logb(x));
  BOTH("tgamma(fabs(a) < 30 ? a : 3.5)", 11.5, 10.5, std::tgamma(std::fabs(x) < 30 ? x : 3.5));
  BOTH("lgamma(fabs(a) + 2.5)", 6.5, 4.5, std::lgamma(std::fabs(x) + 2.5));
  BOTH("pow(fabs(a), b)", 4.5, 2.5, std::pow(std::fabs(x), y));
  BOTH("ldexp(a, 5)", 0.5, 0.5, std::ldexp(x, 5));
  BOTH("sinpi(fabs(a) < 1e4 ? a : 0.25)", 1.5, 2.5,
       std::sin(kPi * std::remainder(static_cast<long double>(std::fabs(x) < 1e4 ? x : 0.25), 2.0L)));
  BOTH("j0(fabs(a) < 6 ? a : 1.5)", 12, 12,
       std::cyl_bessel_j(0.0L, std::fabs(static_cast<long double>(std::fabs(x) < 6 ? x : 1.5))));
  // Float arguments are rounded to float; the conditions above must use the rounded values.
  for (Row& row : singles) {
    if (row.device.starts_with("j0f") || row.device.starts_with("sinpif")) row.bound.absolute = 1e-6;
    if (row.device.starts_with("lgammaf")) row.bound.absolute = 1e-5;
  }
  for (Row& row : doubles) {
    if (row.device.starts_with("j0") || row.device.starts_with("sinpi")) row.bound.absolute = 1e-14;
    if (row.device.starts_with("lgamma")) row.bound.absolute = 1e-14;
  }
  check({.type = "float", .values = float_points(), .rows = singles});
  check({.type = "double", .values = double_points(), .rows = doubles});
}

TEST_CASE("fast intrinsics of float keep to the guide's errors") {
  Table table{.type = "float"};
  // The guide gives absolute bounds for __sinf and __cosf in [-pi, pi] and __logf in [0.5, 2], and bounds in
  // ulp elsewhere.
  for (const double x : {0.0, 0.1, -0.5, 1.0, -1.5, 2.5, 3.0, -3.1, 0.75, 1.25, 0.5, 2.0})
    table.values.push_back(bits_of(static_cast<float>(x)));
  const auto add = [&](const char* device, double ulp, double absolute, double (*reference)(double, double)) {
    table.rows.push_back({device,
                          [=](Bits a, Bits b, Bits) {
                            return bits_of(
                                reference(static_cast<double>(f32(a)), static_cast<double>(f32(b))));
                          },
                          single(ulp, absolute)});
  };
  add("__sinf(a)", 0.5, 0x1p-21, [](double x, double) { return std::sin(x); });
  add("__cosf(a)", 0.5, 0x1p-21, [](double x, double) { return std::cos(x); });
  add("__expf(a)", 6, 0, [](double x, double) { return std::exp(x); });
  add("__exp10f(a)", 10, 0, [](double x, double) { return std::pow(10.0, x); });
  add("__logf(fabsf(a) + 0.5f)", 3, 0x1p-21, [](double x, double) { return std::log(std::fabs(x) + 0.5); });
  add("__log2f(fabsf(a) + 0.5f)", 2, 0x1p-21, [](double x, double) { return std::log2(std::fabs(x) + 0.5); });
  add("__log10f(fabsf(a) + 0.5f)", 3, 0x1p-20,
      [](double x, double) { return std::log10(std::fabs(x) + 0.5); });
  add("__fdividef(a, b + 4)", 3, 0, [](double x, double y) { return x / (y + 4); });
  add("__frsqrt_rn(fabsf(a) + 1)", 0.5, 0, [](double x, double) {
    return 1 / std::sqrt(static_cast<double>(static_cast<float>(std::fabs(x)) + 1.0f));
  });
  add("__powf(fabsf(a) + 0.5f, b)", 40, 0,
      [](double x, double y) { return std::pow(std::fabs(x) + 0.5, y); });
  add("__tanhf(a)", 0, 0x1p-10, [](double x, double) { return std::tanh(x); });
  check(table);
}
