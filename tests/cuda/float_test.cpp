// SPDX-License-Identifier: Apache-2.0
// Float and double: arithmetic intrinsics in every rounding mode, conversions, classification. Built with
// -frounding-math.
#include <doctest/doctest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "harness.hpp"

using namespace quern;
using namespace quern::cuda_test;

namespace {

struct Mode {
  const char* name;
  int host;
};
constexpr Mode kModes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rd", FE_DOWNWARD}, {"ru", FE_UPWARD}};

template <class T>
T value(Bits bits) {
  if constexpr (sizeof(T) == 4)
    return f32(bits);
  else
    return f64(bits);
}

template <class T, class Compute>
Row rounded(const std::string& device, const Mode& mode, Compute compute) {
  return {device,
          [=](Bits a, Bits b, Bits c) -> Bits {
            std::fesetround(mode.host);
            const volatile T x = value<T>(a), y = value<T>(b), z = value<T>(c);
            const volatile T result = compute(T(x), T(y), T(z));
            std::fesetround(FE_TONEAREST);
            return bits_of(T(result));
          },
          {sizeof(T) == 4 ? Bound::Kind::f32 : Bound::Kind::f64}};
}

/// PTX's conversion of a number to an integer: rounds and clamps. NaN gives 0, or the top bit if either type
/// has 64 bits.
Bits integer_of(double x, int mode, unsigned width, bool is_signed, bool wide_source) {
  if (std::isnan(x)) return wide_source || width == 64 ? std::uint64_t{1} << (width - 1) : 0;
  std::fesetround(mode);
  const volatile double source = x;
  const double whole = std::nearbyint(source);
  std::fesetround(FE_TONEAREST);
  const double limit = std::ldexp(1.0, static_cast<int>(is_signed ? width - 1 : width));
  const Bits all = width == 64 ? ~Bits{0} : (Bits{1} << width) - 1;
  if (whole >= limit) return is_signed ? all >> 1 : all;
  if (is_signed)
    return static_cast<Bits>(whole < -limit ? static_cast<std::int64_t>(-limit)
                                            : static_cast<std::int64_t>(whole)) &
           all;
  return whole <= 0 ? 0 : static_cast<Bits>(whole);
}

void add_conversions(std::vector<Row>& rows, const Mode& mode, bool from_double) {
  struct Target {
    const char* name;
    unsigned width;
    bool is_signed;
  };
  for (const Target& to :
       {Target{"int", 32, true}, Target{"uint", 32, false}, Target{"ll", 64, true}, Target{"ull", 64, false}})
    rows.push_back({std::string(from_double ? "__double2" : "__float2") + to.name + "_" + mode.name + "(a)",
                    [=](Bits a, Bits, Bits) -> Bits {
                      const double x = from_double ? f64(a) : static_cast<double>(f32(a));
                      return integer_of(x, mode.host, to.width, to.is_signed, from_double);
                    }});
}

template <class To, class From>
Row from_integer(const std::string& device, const Mode& mode) {
  return {device, [=](Bits a, Bits, Bits) -> Bits {
            std::fesetround(mode.host);
            const volatile From x = static_cast<From>(a);
            const volatile To y = static_cast<To>(x);
            std::fesetround(FE_TONEAREST);
            return bits_of(To(y));
          }};
}

Row truth(const std::string& device, bool (*holds)(float, float)) {
  return {device, [=](Bits a, Bits b, Bits) -> Bits { return holds(f32(a), f32(b)) ? 1 : 0; }};
}

}  // namespace

TEST_CASE("float arithmetic in every rounding mode") {
  Table table{.type = "float", .values = interesting_floats()};
  for (const Mode& mode : kModes) {
    const std::string m = mode.name;
    table.rows.push_back(
        rounded<float>("__fadd_" + m + "(a, b)", mode, [](float x, float y, float) { return x + y; }));
    table.rows.push_back(
        rounded<float>("__fsub_" + m + "(a, b)", mode, [](float x, float y, float) { return x - y; }));
    table.rows.push_back(
        rounded<float>("__fmul_" + m + "(a, b)", mode, [](float x, float y, float) { return x * y; }));
    table.rows.push_back(
        rounded<float>("__fdiv_" + m + "(a, b)", mode, [](float x, float y, float) { return x / y; }));
    table.rows.push_back(rounded<float>("__fmaf_" + m + "(a, b, c)", mode,
                                        [](float x, float y, float z) { return std::fma(x, y, z); }));
    table.rows.push_back(rounded<float>("__fmaf_ieee_" + m + "(a, b, c)", mode,
                                        [](float x, float y, float z) { return std::fma(x, y, z); }));
    table.rows.push_back(
        rounded<float>("__frcp_" + m + "(a)", mode, [](float x, float, float) { return 1 / x; }));
    table.rows.push_back(
        rounded<float>("__fsqrt_" + m + "(a)", mode, [](float x, float, float) { return std::sqrt(x); }));
    add_conversions(table.rows, mode, false);
  }
  const Mode& nearest = kModes[0];
  table.rows.push_back(rounded<float>("a + b", nearest, [](float x, float y, float) { return x + y; }));
  table.rows.push_back(rounded<float>("a / b", nearest, [](float x, float y, float) { return x / y; }));
  table.rows.push_back(
      rounded<float>("sqrtf(a)", nearest, [](float x, float, float) { return std::sqrt(x); }));
  table.rows.push_back(rounded<float>("__saturatef(a)", nearest, [](float x, float, float) {
    return x > 1 ? 1 : x > 0 ? x : 0;
  }));
  table.rows.push_back(rounded<float>("-a", nearest, [](float x, float, float) { return -x; }));
  table.rows.push_back(rounded<float>("copysignf(a, b)", nearest,
                                      [](float x, float y, float) { return std::copysign(x, y); }));
  table.rows.push_back(
      {"(double)a", [](Bits a, Bits, Bits) { return bits_of(static_cast<double>(f32(a))); }, real()});
  table.rows.push_back(truth("a < b", [](float x, float y) { return x < y; }));
  table.rows.push_back(truth("!(a <= b)", [](float x, float y) { return !(x <= y); }));
  table.rows.push_back(truth("a != b", [](float x, float y) { return x != y; }));
  table.rows.push_back(truth("isnan(a)", [](float x, float) { return std::isnan(x); }));
  table.rows.push_back(truth("isinf(a)", [](float x, float) { return std::isinf(x); }));
  table.rows.push_back(truth("isfinite(a)", [](float x, float) { return std::isfinite(x); }));
  table.rows.push_back(truth("signbit(a) != 0", [](float x, float) { return std::signbit(x); }));
  check(table);
}

TEST_CASE("double arithmetic in every rounding mode") {
  Table table{.type = "double", .values = interesting_doubles()};
  for (const Mode& mode : kModes) {
    const std::string m = mode.name;
    table.rows.push_back(
        rounded<double>("__dadd_" + m + "(a, b)", mode, [](double x, double y, double) { return x + y; }));
    table.rows.push_back(
        rounded<double>("__dsub_" + m + "(a, b)", mode, [](double x, double y, double) { return x - y; }));
    table.rows.push_back(
        rounded<double>("__dmul_" + m + "(a, b)", mode, [](double x, double y, double) { return x * y; }));
    table.rows.push_back(
        rounded<double>("__ddiv_" + m + "(a, b)", mode, [](double x, double y, double) { return x / y; }));
    table.rows.push_back(rounded<double>("__fma_" + m + "(a, b, c)", mode,
                                         [](double x, double y, double z) { return std::fma(x, y, z); }));
    table.rows.push_back(
        rounded<double>("__drcp_" + m + "(a)", mode, [](double x, double, double) { return 1 / x; }));
    table.rows.push_back(
        rounded<double>("__dsqrt_" + m + "(a)", mode, [](double x, double, double) { return std::sqrt(x); }));
    add_conversions(table.rows, mode, true);
    table.rows.push_back({"__double2float_" + m + "(a)",
                          [=](Bits a, Bits, Bits) -> Bits {
                            std::fesetround(mode.host);
                            const volatile double x = f64(a);
                            const volatile float y = static_cast<float>(x);
                            std::fesetround(FE_TONEAREST);
                            return bits_of(float(y));
                          },
                          single()});
  }
  table.rows.push_back({"__hiloint2double(__double2hiint(a), __double2loint(b))",
                        [](Bits a, Bits b, Bits) { return (a & 0xffffffff00000000) | (b & 0xffffffff); }});
  check(table);
}

TEST_CASE("integers become floating-point numbers in every rounding mode") {
  Table table{.type = "long long", .values = interesting_longs()};
  for (const Mode& mode : kModes) {
    const std::string m = mode.name;
    table.rows.push_back(from_integer<float, std::int64_t>("__ll2float_" + m + "(a)", mode));
    table.rows.push_back(
        from_integer<float, std::uint64_t>("__ull2float_" + m + "((unsigned long long)a)", mode));
    table.rows.push_back(from_integer<double, std::int64_t>("__ll2double_" + m + "(a)", mode));
    table.rows.push_back(
        from_integer<double, std::uint64_t>("__ull2double_" + m + "((unsigned long long)a)", mode));
    table.rows.push_back(from_integer<float, std::int32_t>("__int2float_" + m + "((int)a)", mode));
    table.rows.push_back(from_integer<float, std::uint32_t>("__uint2float_" + m + "((unsigned)a)", mode));
  }
  table.rows.push_back(from_integer<double, std::int32_t>("__int2double_rn((int)a)", kModes[0]));
  table.rows.push_back(from_integer<double, std::uint32_t>("__uint2double_rn((unsigned)a)", kModes[0]));
  table.rows.push_back(from_integer<float, std::int8_t>("(float)(signed char)a", kModes[0]));
  table.rows.push_back(from_integer<double, std::uint16_t>("(double)(unsigned short)a", kModes[0]));
  check(table);
}
