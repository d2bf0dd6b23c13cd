// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cfenv>
#include <cmath>

#include "harness.hpp"
#include "narrow.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::Op;
using ir::Rounding;
using ir::Type;
using Row = std::vector<std::uint64_t>;
__extension__ using Wide = __int128;

std::uint64_t low(std::uint64_t value, unsigned width) {
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}
std::int64_t number(std::uint64_t value, unsigned width) {
  return static_cast<std::int64_t>(value << (64 - width)) >> (64 - width);
}

constexpr int kHostModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
const std::vector<Rounding> kModes = {Rounding::rn, Rounding::rz, Rounding::rm, Rounding::rp};

template <class F>
auto in_mode(Rounding rounding, F compute) {
  std::fesetround(kHostModes[static_cast<std::size_t>(rounding)]);
  const auto result = compute();
  std::fesetround(FE_TONEAREST);
  return result;
}

double value_of(Type type, std::uint64_t bits) {
  if (type == Type::f32) return f32(bits);
  return type == Type::f64 ? f64(bits) : narrow_value(type, bits);
}

bool same(Type type, std::uint64_t a, std::uint64_t b) {
  switch (type) {
    case Type::f16:
      return same_f16(a, b);
    case Type::bf16:
      return same_bf16(a, b);
    case Type::f32:
      return same_f32(a, b);
    default:
      return same_f64(a, b);
  }
}

std::uint64_t reference_to_integer(double value, Type from, unsigned width, bool is_signed,
                                   Rounding rounding) {
  if (std::isnan(value)) return from == Type::f64 || width == 64 ? std::uint64_t{1} << (width - 1) : 0;
  const double rounded = in_mode(rounding, [&] {
    volatile double v = value;
    return std::nearbyint(v);
  });
  const Wide least = is_signed ? -(Wide{1} << (width - 1)) : 0;
  const Wide greatest = (Wide{1} << (is_signed ? width - 1 : width)) - 1;
  if (rounded >= 0x1p65) return low(static_cast<std::uint64_t>(greatest), width);
  if (rounded <= -0x1p65) return low(static_cast<std::uint64_t>(least), width);
  const auto whole = static_cast<Wide>(rounded);
  return low(static_cast<std::uint64_t>(whole < least ? least : whole > greatest ? greatest : whole), width);
}

/// Values near those at which conversions to integers change.
std::vector<std::uint64_t> reals(Type type) {
  std::vector<std::uint64_t> values = interesting(type);
  for (const double value : {0.4,           0.5,
                             0.6,           1.5,
                             2.5,           3.5,
                             126.5,         127.5,
                             128.0,         254.5,
                             255.5,         256.0,
                             32767.5,       32768.0,
                             65535.0,       65535.5,
                             65536.0,       8388609.5,
                             2147483520.0,  2147483647.0,
                             2147483647.5,  2147483648.0,
                             4294967040.0,  4294967295.0,
                             4294967295.5,  4294967296.0,
                             0x1.fffffep62, 0x1.fffffffffffffp62,
                             0x1p63,        0x1.fffffffffffffp63,
                             0x1p64,        1e30})
    for (const double signed_value : {value, -value}) {
      if (type == Type::f32) values.push_back(bits_of(static_cast<float>(signed_value)));
      if (type == Type::f64) values.push_back(bits_of(signed_value));
      if (type == Type::f16 || type == Type::bf16) values.push_back(round_narrow(type, signed_value));
    }
  return values;
}

}  // namespace

TEST_CASE("integers are widened and narrowed") {
  for (const Type from : {Type::i1, Type::i8, Type::i16, Type::i32})
    for (const Type to : {Type::i16, Type::i32, Type::i64}) {
      const unsigned source = ir::bit_size(from);
      const unsigned width = ir::bit_size(to);
      if (source >= width) continue;
      check_elementwise({.op = Op::zext, .type = to, .inputs = {{from}}},
                        [](const Row& row) { return row[0]; });
      check_elementwise({.op = Op::sext, .type = to, .inputs = {{from}}}, [&](const Row& row) {
        return low(static_cast<std::uint64_t>(number(row[0], source)), width);
      });
      check_elementwise({.op = Op::trunc, .type = from, .inputs = {{to}}},
                        [&](const Row& row) { return low(row[0], source); });
    }
}

TEST_CASE("a bitcast keeps the bits") {
  for (const auto& [from, to] : std::vector<std::pair<Type, Type>>{{Type::i32, Type::f32},
                                                                   {Type::f32, Type::i32},
                                                                   {Type::i64, Type::f64},
                                                                   {Type::f64, Type::i64},
                                                                   {Type::i16, Type::f16},
                                                                   {Type::bf16, Type::i16}})
    check_elementwise({.op = Op::bitcast, .type = to, .inputs = {{from}}},
                      [](const Row& row) { return row[0]; });
}

TEST_CASE("floating point to integer: rounds as told, saturates, NaN as PTX has it") {
  for (const Type from : {Type::f16, Type::bf16, Type::f32, Type::f64})
    for (const Type to : {Type::i8, Type::i16, Type::i32, Type::i64})
      for (const Rounding rounding : kModes) {
        // The 16-bit formats are converted through float; only their widening is tested here.
        if (ir::bit_size(from) == 16 && rounding != Rounding::rz && to != Type::i32) continue;
        const unsigned width = ir::bit_size(to);
        const ir::Attributes attr{.rounding = rounding};
        const auto reference = [&](bool is_signed) {
          return [=](const Row& row) {
            return reference_to_integer(value_of(from, row[0]), from, width, is_signed, rounding);
          };
        };
        check_elementwise({.op = Op::f_to_s, .type = to, .attr = attr, .inputs = {{from}}}, reference(true),
                          {reals(from)});
        check_elementwise({.op = Op::f_to_u, .type = to, .attr = attr, .inputs = {{from}}}, reference(false),
                          {reals(from)});
      }
}

TEST_CASE(".ftz flushes the source before it is rounded") {
  const auto reference = [](bool ftz) {
    return [=](const Row& row) {
      const std::uint64_t bits = ftz && (row[0] & 0x7f800000u) == 0 ? 0 : row[0];
      return reference_to_integer(f32(bits), Type::f32, 32, true, Rounding::rp);
    };
  };
  for (const bool ftz : {false, true})
    check_elementwise(
        {.op = Op::f_to_s, .attr = {.rounding = Rounding::rp, .ftz = ftz}, .inputs = {{Type::f32}}},
        reference(ftz));
}

TEST_CASE("integer to floating point in every rounding mode") {
  for (const Type from : {Type::i8, Type::i16, Type::i32, Type::i64})
    for (const Rounding rounding : kModes)
      for (const bool is_signed : {false, true}) {
        const unsigned width = ir::bit_size(from);
        const Op op = is_signed ? Op::s_to_f : Op::u_to_f;
        const auto convert = [=]<class T>(std::uint64_t bits, T) {
          return in_mode(rounding, [&] {
            volatile std::int64_t as_signed = number(bits, width);
            volatile std::uint64_t as_unsigned = bits;
            // Long double represents every 64-bit integer, so the narrowing is the only rounding.
            volatile long double exact =
                is_signed ? static_cast<long double>(as_signed) : static_cast<long double>(as_unsigned);
            volatile T result = static_cast<T>(exact);
            return static_cast<T>(result);
          });
        };
        check_elementwise({.op = op, .type = Type::f32, .attr = {.rounding = rounding}, .inputs = {{from}}},
                          [&](const Row& row) { return bits_of(convert(row[0], 0.0f)); });
        check_elementwise({.op = op, .type = Type::f64, .attr = {.rounding = rounding}, .inputs = {{from}}},
                          [&](const Row& row) { return bits_of(convert(row[0], 0.0)); });
        if (rounding == Rounding::rn)
          check_elementwise({.op = op, .type = Type::f16, .inputs = {{from}}}, [&](const Row& row) {
            return round_narrow(Type::f16, is_signed ? static_cast<double>(number(row[0], width))
                                                     : static_cast<double>(row[0]));
          });
      }
}

TEST_CASE("widening is exact") {
  for (const auto& [from, to] : std::vector<std::pair<Type, Type>>{
           {Type::f16, Type::f32}, {Type::bf16, Type::f32}, {Type::f16, Type::f64}, {Type::f32, Type::f64}})
    check_elementwise(
        {.op = Op::f_to_f, .type = to, .inputs = {{from}}},
        [&](const Row& row) {
          const double value = value_of(from, row[0]);
          return to == Type::f64 ? bits_of(value) : bits_of(static_cast<float>(value));
        },
        {}, [&](std::uint64_t a, std::uint64_t b) { return same(to, a, b); });
}

TEST_CASE("every half widens to its value and narrows back") {
  std::vector<std::uint64_t> all;
  for (std::uint64_t bits = 0; bits < 65536; ++bits) all.push_back(bits);
  for (const Isa isa : isas()) {
    const Compiled widen =
        compile({.op = Op::f_to_f, .type = Type::f32, .inputs = {{Type::f16}}}, {.isa = isa});
    const Compiled narrow =
        compile({.op = Op::f_to_f, .type = Type::f16, .inputs = {{Type::f32}}}, {.isa = isa});
    bool good = true;
    for (std::uint64_t first = 0; first < 65536; first += 32) {
      Lanes lanes{};
      for (std::size_t lane = 0; lane < 32; ++lane) lanes[lane] = first + lane;
      const Lanes wide = widen.run({lanes})[0];
      const Lanes back = narrow.run({wide})[0];
      for (std::size_t lane = 0; lane < 32; ++lane)
        good = good &&
               same_f32(wide[lane], bits_of(static_cast<float>(narrow_value(Type::f16, lanes[lane])))) &&
               same_f16(back[lane], lanes[lane]);
    }
    CHECK_MESSAGE(good, name_of(isa));
  }
}

// Without F16C, the emitted code computes the bits. This is tested on every machine.
TEST_CASE("what lies in the middle between two halves becomes the even one") {
  for (const Isa isa : {Isa::baseline, isas().back()}) {
    const Compiled narrow =
        compile({.op = Op::f_to_f, .type = Type::f16, .inputs = {{Type::f32}}}, {.isa = isa});
    bool good = true;
    for (std::uint64_t first = 0; first < 0x7bff; first += 32) {
      Lanes middles{};
      for (std::uint64_t lane = 0; lane < 32; ++lane) {
        const double low = narrow_value(Type::f16, first + lane);
        // The number after the largest one would be 65536.
        const double high = first + lane == 0x7bff ? 65536.0 : narrow_value(Type::f16, first + lane + 1);
        middles[lane] = bits_of(static_cast<float>((low + high) / 2));
      }
      const Lanes got = narrow.run({middles})[0];
      for (std::uint64_t lane = 0; lane < 32; ++lane)
        good = good && got[lane] == ((first + lane + 1) & ~std::uint64_t{1});
    }
    CHECK_MESSAGE(good, name_of(isa));
  }
}

// Vectors without AVX-512 call a helper. This is tested on every machine.
TEST_CASE("f64 to 64-bit integers saturates where no instruction converts vectors") {
  struct Case {
    double value;
    std::uint64_t as_signed, as_unsigned;
  };
  constexpr std::uint64_t kMost = INT64_MAX, kLeast = std::uint64_t{1} << 63;
  const std::vector<Case> cases = {
      {0x1p62, kLeast >> 1, kLeast >> 1},
      {0x1p63, kMost, kLeast},
      {0x1.8p63, kMost, kLeast / 2 * 3},
      {0x1p64, kMost, UINT64_MAX},
      {1e300, kMost, UINT64_MAX},
      {-0.5, 0, 0},
      {-1.5, ~std::uint64_t{0}, 0},
      {-0x1p63, kLeast, 0},
      {-0x1.8p63, kLeast, 0},
      {-1e300, kLeast, 0},
      {0x1.fffffffffffffp63, kMost, 0xfffffffffffff800u},
  };
  for (const bool is_signed : {true, false}) {
    const Compiled code = compile({.op = is_signed ? Op::f_to_s : Op::f_to_u,
                                   .type = Type::i64,
                                   .attr = {.rounding = Rounding::rz},
                                   .inputs = {{Type::f64}}},
                                  {.isa = Isa::baseline});
    Lanes values{};
    for (std::size_t i = 0; i < cases.size(); ++i) values[i] = bits_of(cases[i].value);
    const Lanes got = code.run({values})[0];
    for (std::size_t i = 0; i < cases.size(); ++i) {
      CAPTURE(cases[i].value);
      CHECK(got[i] == (is_signed ? cases[i].as_signed : cases[i].as_unsigned));
    }
  }
}

TEST_CASE("f64 to f32 in every rounding mode") {
  std::vector<std::uint64_t> values = interesting(Type::f64);
  for (const double value :
       {1.0 + 0x1p-24, 1.0 + 0x1p-24 + 0x1p-50, 1.0 + 0x1.8p-23, 0x1.fffffefp127, 0x1.fffffffp127, 1e300,
        0x1p-149, 0x1p-150, 0x1.8p-150, 0x1p-160, 0x1.fffffffp-127, 3.14159265358979})
    for (const double v : {value, -value}) values.push_back(bits_of(v));
  for (const Rounding rounding : kModes)
    check_elementwise(
        {.op = Op::f_to_f, .type = Type::f32, .attr = {.rounding = rounding}, .inputs = {{Type::f64}}},
        [&](const Row& row) {
          return bits_of(in_mode(rounding, [&] {
            volatile double value = f64(row[0]);
            volatile float result = static_cast<float>(value);
            return static_cast<float>(result);
          }));
        },
        {values}, same_f32);
}

TEST_CASE("narrowing to 16 bits rounds once, from f64 too") {
  for (const Type to : {Type::f16, Type::bf16})
    for (const Type from : {Type::f32, Type::f64}) {
      std::vector<std::uint64_t> values = reals(from);
      // Values near ties of both formats, at distances that float cannot represent.
      for (const double tie : {1.0 + 0x1p-11, 1.0 + 0x1p-8, 1.0 + 0x3p-11, 65519.996, 65520.0, 0x1p-25,
                               0x1.8p-24, 0x1p-134, 6.1e-5})
        for (const double off : {0.0, tie * 0x1p-50, -tie * 0x1p-50, tie * 0x1p-22, -tie * 0x1p-22})
          for (const double sign : {1.0, -1.0})
            values.push_back(from == Type::f32 ? bits_of(static_cast<float>(sign * (tie + off)))
                                               : bits_of(sign * (tie + off)));
      check_elementwise(
          {.op = Op::f_to_f, .type = to, .inputs = {{from}}},
          [&](const Row& row) { return round_narrow(to, value_of(from, row[0])); }, {values},
          [&](std::uint64_t a, std::uint64_t b) { return same(to, a, b); });
      check_elementwise(
          {.op = Op::f_to_f, .type = to, .attr = {.rounding = Rounding::rz}, .inputs = {{from}}},
          [&](const Row& row) {
            const double value = value_of(from, row[0]);
            std::uint64_t bits = round_narrow(to, value);
            if (std::isfinite(value) && std::fabs(narrow_value(to, bits)) > std::fabs(value)) --bits;
            return bits;
          },
          {values}, [&](std::uint64_t a, std::uint64_t b) { return same(to, a, b); });
    }
}

TEST_CASE("rounding to an integral value in the same format") {
  for (const Type type : {Type::f16, Type::f32, Type::f64})
    for (const Rounding rounding : kModes)
      check_elementwise(
          {.op = Op::f_to_f, .type = type, .attr = {.rounding = rounding}, .imm = 1, .inputs = {{type}}},
          [&](const Row& row) {
            // outside the expression: sums of zeros have a sign that depends on the rounding mode
            const double exact = value_of(type, row[0]);
            const double result = in_mode(rounding, [&] {
              volatile double value = exact;
              return std::nearbyint(value);
            });
            if (type == Type::f16) return round_narrow(type, result);
            return type == Type::f32 ? bits_of(static_cast<float>(result)) : bits_of(result);
          },
          {reals(type)}, [&](std::uint64_t a, std::uint64_t b) { return same(type, a, b); });
}

TEST_CASE("a conversion within f32 may saturate and flush") {
  check_elementwise({.op = Op::f_to_f, .type = Type::f32, .attr = {.sat = true}, .inputs = {{Type::f32}}},
                    [](const Row& row) {
                      const float value = f32(row[0]);
                      return bits_of(!(value > 0) ? 0.0f : value > 1 ? 1.0f : value);
                    });
  check_elementwise(
      {.op = Op::f_to_f, .type = Type::f32, .attr = {.ftz = true}, .inputs = {{Type::f32}}},
      [](const Row& row) { return (row[0] & 0x7f800000u) == 0 ? row[0] & 0x80000000u : row[0]; }, {},
      same_f32);
}

TEST_CASE("integers saturate to another width or signedness") {
  for (const Type from : {Type::i16, Type::i32, Type::i64})
    for (const Type to : {Type::i8, Type::i16, Type::i32, Type::i64})
      for (const bool to_signed : {false, true})
        for (const bool from_signed : {false, true}) {
          const unsigned width = ir::bit_size(to);
          const Op op = from_signed ? Op::saturate_s : Op::saturate_u;
          check_elementwise({.op = op, .type = to, .attr = {.is_signed = to_signed}, .inputs = {{from}}},
                            [&](const Row& row) {
                              const Wide value = from_signed ? Wide{number(row[0], ir::bit_size(from))}
                                                             : static_cast<Wide>(row[0]);
                              const Wide least = to_signed ? -(Wide{1} << (width - 1)) : 0;
                              const Wide greatest = (Wide{1} << (to_signed ? width - 1 : width)) - 1;
                              return low(static_cast<std::uint64_t>(value < least      ? least
                                                                    : value > greatest ? greatest
                                                                                       : value),
                                         width);
                            });
        }
}

}  // namespace quern::cpu::emit::testing
