// SPDX-License-Identifier: Apache-2.0
// Compares with double arithmetic, with the bounds that the PTX ISA documents.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <map>

#include "harness.hpp"
#include "narrow.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::Approx;
using ir::Op;
using ir::Type;

Operation unary(Approx which, bool ftz = false) {
  return {.op = Op::approx,
          .type = Type::f32,
          .attr = {.ftz = ftz},
          .imm = static_cast<std::uint64_t>(which),
          .inputs = {{Type::f32}}};
}

/// Visits f(x) for about 2^16 floats from `first` to `last` (positive, by bits), and for their negatives.
template <class Visit>
void sweep(const Compiled& code, float first, float last, Visit visit) {
  const auto from = static_cast<std::uint32_t>(bits_of(first));
  const auto to = static_cast<std::uint32_t>(bits_of(last));
  const std::uint32_t step = (to - from) / 65536 + 1;
  for (std::uint64_t at = from; at <= to; at += std::uint64_t{step} * 16) {
    Lanes lanes{};
    for (std::size_t lane = 0; lane < 32; ++lane)
      lanes[lane] = std::min<std::uint64_t>(at + step * (lane / 2), to) | (lane % 2 == 0 ? 0 : 0x80000000u);
    const Lanes got = code.run({lanes})[0];
    for (std::size_t lane = 0; lane < 32; ++lane) visit(f32(lanes[lane]), f32(got[lane]));
  }
}

double ulps(float got, double exact) {
  const float nearest = static_cast<float>(exact);
  if (got == nearest) return 0;
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  return std::fabs(static_cast<double>(got) - exact) / ulp;
}

/// The value of one float.
float at(const Compiled& code, float x) { return f32(code.run({Lanes{bits_of(x)}})[0][0]); }

}  // namespace

TEST_CASE("ex2.approx: 1 ulp in the whole range (PTX: 2), exact at integers") {
  for (const Isa isa : isas()) {
    const Compiled code = compile(unary(Approx::ex2), {.isa = isa});
    double worst = 0;
    sweep(code, 1e-10f, 127.99999f,
          [&](float x, float y) { worst = std::max(worst, ulps(y, std::exp2(static_cast<double>(x)))); });
    CHECK_MESSAGE(worst <= 1.0, name_of(isa));
    for (int k = -149; k <= 127; ++k) REQUIRE(at(code, static_cast<float>(k)) == std::ldexp(1.0f, k));
    CHECK(at(code, 128.0f) == INFINITY);
    CHECK(at(code, INFINITY) == INFINITY);
    CHECK(at(code, 1e30f) == INFINITY);
    CHECK(bits_of(at(code, -INFINITY)) == 0);
    CHECK(at(code, -1e30f) == 0);
    CHECK(std::isnan(at(code, NAN)));
    CHECK(at(code, -0.0f) == 1.0f);
    const Compiled flushed = compile(unary(Approx::ex2, true), {.isa = isa});
    CHECK(at(flushed, -130.0f) == 0.0f);
    CHECK(at(flushed, -126.00001f) == 0.0f);
    CHECK(at(flushed, -126.0f) == 0x1p-126f);
    CHECK(at(flushed, -125.5f) > 0x1p-126f);
    CHECK(at(flushed, 0x1p-140f) == 1.0f);
  }
}

TEST_CASE("lg2.approx: 2^-22 absolute within (0.5, 2), relative elsewhere") {
  for (const Isa isa : isas()) {
    const Compiled code = compile(unary(Approx::lg2), {.isa = isa});
    double absolute = 0;
    double relative = 0;
    const auto visit = [&](float x, float y) {
      if (!(x > 0)) return;
      const double exact = std::log2(static_cast<double>(x));
      double& worst = x > 0.5f && x < 2.0f ? absolute : relative;
      worst = std::max(worst, std::fabs(y - exact) / (x > 0.5f && x < 2.0f ? 1.0 : std::fabs(exact)));
    };
    sweep(code, 0x1p-149f, 3e38f, visit);
    sweep(code, 0.4f, 2.5f, visit);
    CHECK_MESSAGE(absolute <= 0x1p-22, name_of(isa));
    CHECK_MESSAGE(relative <= 0x1p-22, name_of(isa));
    for (int k = -149; k <= 127; ++k) REQUIRE(at(code, std::ldexp(1.0f, k)) == static_cast<float>(k));
    CHECK(at(code, 0.0f) == -INFINITY);
    CHECK(at(code, -0.0f) == -INFINITY);
    CHECK(at(code, INFINITY) == INFINITY);
    CHECK(std::isnan(at(code, -1.0f)));
    CHECK(std::isnan(at(code, -INFINITY)));
    CHECK(std::isnan(at(code, NAN)));
    CHECK(at(compile(unary(Approx::lg2, true), {.isa = isa}), 0x1p-130f) == -INFINITY);
  }
}

TEST_CASE("sin.approx and cos.approx: 2^-20.5 absolute in [-2 pi, 2 pi], and 2^-20 everywhere") {
  for (const Isa isa : isas())
    for (const bool is_sine : {true, false}) {
      const Compiled code = compile(unary(is_sine ? Approx::sin : Approx::cos), {.isa = isa});
      double near = 0;
      double far = 0;
      double beyond = 0;
      const auto error = [&](float x, float y) {
        return std::fabs(y - (is_sine ? std::sin(static_cast<double>(x)) : std::cos(static_cast<double>(x))));
      };
      sweep(code, 1e-20f, 6.2831855f, [&](float x, float y) { near = std::max(near, error(x, y)); });
      sweep(code, 6.3f, 0x1p20f, [&](float x, float y) { far = std::max(far, error(x, y)); });
      // glibc reduces doubles of any size exactly.
      sweep(code, 0x1p20f, 3.4028235e38f, [&](float x, float y) { beyond = std::max(beyond, error(x, y)); });
      CHECK_MESSAGE(near <= 0x1p-22, name_of(isa));
      CHECK_MESSAGE(far <= 0x1p-20, name_of(isa));
      CHECK_MESSAGE(beyond <= 0x1p-20, name_of(isa));
      // by the series in decimal numbers of 80 digits
      CHECK(std::fabs(at(code, 9115986.0f) - (is_sine ? 0.99433858444314471 : 0.10625807963445969)) <=
            0x1p-20);
      CHECK(std::isnan(at(code, INFINITY)));
      CHECK(std::isnan(at(code, -INFINITY)));
      CHECK(std::isnan(at(code, NAN)));
      if (is_sine) CHECK(bits_of(at(code, -0.0f)) == bits_of(-0.0f));
      if (!is_sine) CHECK(at(code, 0.0f) == 1.0f);
    }
}

TEST_CASE("tanh.approx: 2^-11 relative") {
  for (const Isa isa : isas()) {
    const Compiled code = compile(unary(Approx::tanh), {.isa = isa});
    double worst = 0;
    sweep(code, 1e-30f, 3e38f, [&](float x, float y) {
      const double exact = std::tanh(static_cast<double>(x));
      worst = std::max(worst, std::fabs(y - exact) / std::fabs(exact));
    });
    sweep(code, 0.3f, 1.5f, [&](float x, float y) {
      const double exact = std::tanh(static_cast<double>(x));
      worst = std::max(worst, std::fabs(y - exact) / std::fabs(exact));
    });
    CHECK_MESSAGE(worst <= 0x1p-20, name_of(isa));
    CHECK(at(code, INFINITY) == 1.0f);
    CHECK(at(code, -INFINITY) == -1.0f);
    CHECK(std::isnan(at(code, NAN)));
    CHECK(bits_of(at(code, -0.0f)) == bits_of(-0.0f));
  }
}

TEST_CASE("rcp, sqrt and rsqrt: within 1 ulp, 2^-23 and 2^-22.9") {
  for (const Isa isa : isas()) {
    const Compiled reciprocal = compile(unary(Approx::rcp), {.isa = isa});
    const Compiled root = compile(unary(Approx::sqrt), {.isa = isa});
    const Compiled inverse_root = compile(unary(Approx::rsqrt), {.isa = isa});
    double worst = 0;
    sweep(reciprocal, 0x1p-125f, 0x1p125f,
          [&](float x, float y) { worst = std::max(worst, ulps(y, 1.0 / x)); });
    CHECK(worst <= 1);
    worst = 0;
    sweep(root, 0x1p-149f, 3e38f, [&](float x, float y) {
      if (x > 0) worst = std::max(worst, std::fabs(y / std::sqrt(static_cast<double>(x)) - 1));
    });
    CHECK(worst <= 0x1p-23);
    worst = 0;
    sweep(inverse_root, 0x1p-149f, 3e38f, [&](float x, float y) {
      if (x > 0) worst = std::max(worst, std::fabs(y * std::sqrt(static_cast<double>(x)) - 1));
    });
    CHECK(worst <= std::exp2(-22.9));
    CHECK(at(reciprocal, -0.0f) == -INFINITY);
    CHECK(bits_of(at(reciprocal, -INFINITY)) == bits_of(-0.0f));
    CHECK(bits_of(at(root, -0.0f)) == bits_of(-0.0f));
    CHECK(std::isnan(at(root, -1.0f)));
    CHECK(at(inverse_root, -0.0f) == -INFINITY);
    CHECK(at(inverse_root, INFINITY) == 0.0f);
    CHECK(std::isnan(at(inverse_root, -1.0f)));
    CHECK(at(compile(unary(Approx::rcp, true), {.isa = isa}), 0x1p-127f) == INFINITY);
  }
}

TEST_CASE("div.approx gives 0 for divisors above 2^126, div.full the quotient") {
  for (const Isa isa : isas()) {
    Operation operation{.op = Op::approx,
                        .type = Type::f32,
                        .imm = static_cast<std::uint64_t>(Approx::div),
                        .inputs = {{Type::f32}, {Type::f32}}};
    const Compiled approximate = compile(operation, {.isa = isa});
    operation.imm = static_cast<std::uint64_t>(Approx::div_full);
    const Compiled full = compile(operation, {.isa = isa});
    const auto quotient = [](const Compiled& code, float a, float b) {
      return f32(code.run({Lanes{bits_of(a)}, Lanes{bits_of(b)}})[0][0]);
    };
    CHECK(quotient(approximate, 1.0f, 3.0f) == 1.0f / 3.0f);
    CHECK(quotient(approximate, 1.0f, 0x1p126f) == 0x1p-126f);
    CHECK(quotient(approximate, 8.0f, 0x1.8p126f) == 0.0f);
    CHECK(bits_of(quotient(approximate, -8.0f, 0x1.8p126f)) == bits_of(-0.0f));
    CHECK(std::isnan(quotient(approximate, INFINITY, 0x1.8p126f)));
    CHECK(quotient(approximate, 1.0f, 0.0f) == INFINITY);
    CHECK(std::isnan(quotient(approximate, 0.0f, 0.0f)));
    CHECK(quotient(full, 0x1p126f, 0x1.8p127f) == 0x1p126f / 0x1.8p127f);
  }
}

TEST_CASE("the approximations give the same bits on every instruction set, as vector and as scalar") {
  for (const Approx which :
       {Approx::ex2, Approx::lg2, Approx::sin, Approx::cos, Approx::tanh, Approx::rsqrt}) {
    std::map<std::uint64_t, std::uint64_t> seen;
    Operation scalar = unary(which);
    scalar.inputs[0].pattern = uniform();
    scalar.result = uniform();
    bool equal = true;
    for (const Isa isa : isas()) {
      sweep(compile(unary(which), {.isa = isa}), 1e-6f, 1e4f, [&](float x, float y) {
        const auto [found, inserted] = seen.emplace(bits_of(x), bits_of(y));
        equal = equal && same_f32(found->second, bits_of(y));
      });
      const Compiled one = compile(scalar, {.isa = isa});
      for (const float x : {0.1f, 1.7f, 33.3f}) {
        const Lanes vector = compile(unary(which), {.isa = isa}).run({Lanes{bits_of(x)}})[0];
        equal = equal && one.run({Lanes{bits_of(x)}})[0][0] == vector[0];
      }
    }
    CHECK(equal);
  }
}

TEST_CASE("ex2 and tanh of 16-bit formats: 2^-9.9 and 2^-10.9 relative for f16, 2^-7 for bf16") {
  for (const Type type : {Type::f16, Type::bf16})
    for (const Approx which : {Approx::ex2, Approx::tanh}) {
      const Operation operation{
          .op = Op::approx, .type = type, .imm = static_cast<std::uint64_t>(which), .inputs = {{type}}};
      const Compiled code = compile(operation, {.isa = isas().back()});
      double worst = 0;
      for (std::uint64_t first = 0; first < 0x10000; first += 32) {
        Lanes lanes{};
        for (std::size_t lane = 0; lane < 32; ++lane) lanes[lane] = first + lane;
        const Lanes got = code.run({lanes})[0];
        for (std::size_t lane = 0; lane < 32; ++lane) {
          const double x = narrow_value(type, lanes[lane]);
          const double exact = which == Approx::ex2 ? std::exp2(x) : std::tanh(x);
          const double least = type == Type::f16 ? 0x1p-14 : 0x1p-126;
          const double greatest = type == Type::f16 ? 65504.0 : 3e38;
          if (!(std::fabs(exact) >= least && std::fabs(exact) < greatest)) continue;
          worst = std::max(worst, std::fabs(narrow_value(type, got[lane]) / exact - 1));
        }
      }
      CHECK(worst <= (type == Type::f16 ? std::exp2(-10.9) : 0x1p-7));
    }
}

TEST_CASE("rcp and rsqrt of f64 with .ftz read and write the upper 32 bits") {
  for (const Approx which : {Approx::rcp, Approx::rsqrt}) {
    const Operation operation{.op = Op::approx,
                              .type = Type::f64,
                              .attr = {.ftz = true},
                              .imm = static_cast<std::uint64_t>(which),
                              .inputs = {{Type::f64}}};
    const Compiled code = compile(operation, {.isa = isas().back()});
    for (const double x : {3.0, 0.7, 12345.678, 1e200, 1e-200}) {
      const double got = f64(code.run({Lanes{bits_of(x)}})[0][0]);
      const double exact = which == Approx::rcp ? 1 / x : 1 / std::sqrt(x);
      CHECK((bits_of(got) & 0xffffffffu) == 0);
      CHECK(std::fabs(got / exact - 1) <= 0x1p-19);
    }
    CHECK(f64(code.run({Lanes{1}})[0][0]) == INFINITY);
  }
}

}  // namespace quern::cpu::emit::testing
