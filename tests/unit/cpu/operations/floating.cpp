// SPDX-License-Identifier: Apache-2.0
// References: the host's IEEE arithmetic, with the host's rounding mode if the instruction has one. For
// 16-bit formats, exact rounding of a long double result.
#include <doctest/doctest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "harness.hpp"
#include "narrow.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::Op;
using ir::Rounding;
using ir::Type;
using Row = std::vector<std::uint64_t>;

struct HostRounding {
  explicit HostRounding(Rounding mode) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[static_cast<std::size_t>(mode)]);
  }
  ~HostRounding() { std::fesetround(FE_TONEAREST); }
};

template <class T>
T compute(Op op, const Row& row, Rounding rounding) {
  const auto value = [&](std::size_t at) {
    return static_cast<volatile T>(sizeof(T) == 4 ? f32(row[at]) : f64(row[at]));
  };
  volatile T x = value(0);
  volatile T y = row.size() > 1 ? value(1) : T{1};
  volatile T z = row.size() > 2 ? value(2) : T{0};
  const HostRounding scope(rounding);
  volatile T result = 0;
  switch (op) {
    case Op::fadd:
      result = x + y;
      break;
    case Op::fsub:
      result = x - y;
      break;
    case Op::fmul:
      result = x * y;
      break;
    case Op::fdiv:
      result = x / y;
      break;
    case Op::fsqrt:
      result = std::sqrt(x);
      break;
    case Op::frcp:
      result = T{1} / x;
      break;
    default:
      result = std::fma(x, y, z);
      break;
  }
  return result;
}

unsigned arity_of(Op op) { return op == Op::ffma ? 3 : op == Op::fsqrt || op == Op::frcp ? 1 : 2; }

const std::vector<Op> kArithmetic = {Op::fadd, Op::fsub, Op::fmul, Op::fdiv, Op::fsqrt, Op::frcp, Op::ffma};

std::uint64_t flushed(std::uint64_t bits) { return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits; }

}  // namespace

TEST_CASE("f32 and f64 arithmetic is IEEE in every rounding mode") {
  for (const Op op : kArithmetic)
    for (const Rounding rounding : {Rounding::rn, Rounding::rz, Rounding::rm, Rounding::rp}) {
      const ir::Attributes attr{.rounding = rounding};
      check_elementwise(
          {.op = op,
           .type = Type::f32,
           .attr = attr,
           .inputs = std::vector<Input>(arity_of(op), {Type::f32})},
          [&](const Row& row) { return bits_of(compute<float>(op, row, rounding)); }, {}, same_f32);
      check_elementwise(
          {.op = op,
           .type = Type::f64,
           .attr = attr,
           .inputs = std::vector<Input>(arity_of(op), {Type::f64})},
          [&](const Row& row) { return bits_of(compute<double>(op, row, rounding)); }, {}, same_f64);
    }
}

/// Numbers of 0 .. 1 around those at which x * y + z is a float, and where the product is less than any.
std::vector<std::uint64_t> fractions(float y) {
  std::vector<std::uint64_t> found{bits_of(0.0f), bits_of(-0.0f), bits_of(1.0f), 1, 2, 0x7fffff, 0x800000};
  for (int step = 0; step <= 256; ++step) {
    const float x = std::abs(static_cast<float>(step) / y);
    for (const float near : {std::nextafter(x, -1.0f), x, std::nextafter(x, 2.0f)})
      if (near >= 0 && near <= 1) found.push_back(bits_of(near));
  }
  return found;
}

TEST_CASE("fma of a fraction and two constants of which one is much greater is rounded in every mode") {
  struct Constants {
    float y, z;
  };
  for (const auto& [y, z] : {Constants{252.0f, 12582913.0f},
                             {-252.0f, 12582913.0f},
                             {252.0f, -12582913.0f},
                             {0.3f, 1.2f},
                             {-0.25f, -1.0f},
                             {0x1p-149f, 1.0f},
                             {0x1p-126f, 0x1p-124f},
                             {0x1p-140f, 0x1p-126f},
                             {0x1p124f, 0x1p126f},
                             {0x1p125f, 0x1p127f},
                             {0x1p-127f, 0x1p-125f},
                             {0.0f, 3.0f},
                             {2.0f, 3.0f}})
    for (const Rounding rounding : {Rounding::rz, Rounding::rm, Rounding::rp}) {
      const auto reference = [&](const Row& row) { return bits_of(compute<float>(Op::ffma, row, rounding)); };
      check_elementwise({.op = Op::ffma,
                         .type = Type::f32,
                         .attr = {.rounding = rounding},
                         .inputs = {{Type::f32},
                                    {Type::f32, uniform_constant(bits_of(y))},
                                    {Type::f32, uniform_constant(bits_of(z))}}},
                        reference, {fractions(y), {bits_of(y)}, {bits_of(z)}}, same_f32);
    }
}

TEST_CASE(".ftz flushes subnormal operands and results to zeros of their sign") {
  for (const Op op : kArithmetic)
    check_elementwise(
        {.op = op,
         .type = Type::f32,
         .attr = {.ftz = true},
         .inputs = std::vector<Input>(arity_of(op), {Type::f32})},
        [&](Row row) {
          for (std::uint64_t& bits : row) bits = flushed(bits);
          return flushed(bits_of(compute<float>(op, row, Rounding::rn)));
        },
        {}, same_f32);
}

TEST_CASE(".sat clamps to [0, 1] and turns NaN into +0") {
  for (const Op op : {Op::fadd, Op::fmul, Op::ffma})
    check_elementwise({.op = op,
                       .type = Type::f32,
                       .attr = {.sat = true},
                       .inputs = std::vector<Input>(arity_of(op), {Type::f32})},
                      [&](const Row& row) {
                        const float value = compute<float>(op, row, Rounding::rn);
                        return bits_of(!(value > 0) ? 0.0f : value > 1 ? 1.0f : value);
                      });
}

TEST_CASE("f16 and bf16 arithmetic is rounded once") {
  for (const Type type : {Type::f16, Type::bf16})
    for (const Op op : {Op::fadd, Op::fsub, Op::fmul, Op::ffma}) {
      const auto reference = [&](const Row& row) {
        const double x = narrow_value(type, row[0]);
        const double y = narrow_value(type, row[1]);
        return narrow_exact(type, op, x, y, op == Op::ffma ? narrow_value(type, row[2]) : 0.0);
      };
      check_elementwise({.op = op, .type = type, .inputs = std::vector<Input>(arity_of(op), {type})},
                        reference, {}, type == Type::f16 ? same_f16 : same_bf16);
    }
}

TEST_CASE("fma of 16-bit formats decides ties by what lies far below") {
  // The product is a tie between two results. The addend, which is too small for float's precision, breaks
  // the tie.
  struct Case {
    Type type;
    Row row;
  };
  const std::vector<Case> cases = {
      {Type::bf16, {0x3f81, 0x3f80, 0x0001}},
      {Type::bf16, {0x3f81, 0x3fc0, 0x0001}},
      {Type::bf16, {0x3f81, 0x3fc0, 0x8001}},
      {Type::bf16, {0x3f83, 0x3fc0, 0x0080}},
      {Type::f16, {0x3c01, 0x3e00, 0x0001}},
      {Type::f16, {0x3c01, 0x3e00, 0x8001}},
      {Type::f16, {0x7801, 0x3e00, 0x0001}},
      {Type::f16, {0x7801, 0x3e00, 0x8001}},
      {Type::f16, {0x0401, 0x3800, 0x0001}},
      // The nearest float of these sums is odd, and its neighbour on the other side is a tie.
      {Type::f16, {0x24e8, 0x2686, 0x3c00}},
      {Type::f16, {0xa4e8, 0x2686, 0x3c02}},
  };
  for (const Case& test : cases)
    check_elementwise(
        {.op = Op::ffma, .type = test.type, .inputs = std::vector<Input>(3, {test.type})},
        [&](const Row& row) {
          return narrow_exact(test.type, Op::ffma, narrow_value(test.type, row[0]),
                              narrow_value(test.type, row[1]), narrow_value(test.type, row[2]));
        },
        {{test.row[0]}, {test.row[1]}, {test.row[2]}}, test.type == Type::f16 ? same_f16 : same_bf16);
}

TEST_CASE(".relu turns negative results into +0 and keeps NaN") {
  check_elementwise(
      {.op = Op::ffma,
       .type = Type::f16,
       .attr = {.relu = true},
       .inputs = std::vector<Input>(3, {Type::f16})},
      [&](const Row& row) {
        const std::uint64_t bits =
            narrow_exact(Type::f16, Op::ffma, narrow_value(Type::f16, row[0]),
                         narrow_value(Type::f16, row[1]), narrow_value(Type::f16, row[2]));
        const bool is_nan = (bits & 0x7fff) > 0x7c00;
        return !is_nan && (bits & 0x8000) != 0 ? 0 : bits;
      },
      {}, same_f16);
}

TEST_CASE("minima and maxima prefer numbers to NaN and order the zeros") {
  const auto reference = [](double x, double y, bool is_min) {
    if (std::isnan(x)) return y;
    if (std::isnan(y)) return x;
    if (x == y) return std::signbit(x) == is_min ? x : y;
    return (x < y) == is_min ? x : y;
  };
  for (const bool is_min : {true, false}) {
    const Op op = is_min ? Op::fmin : Op::fmax;
    check_elementwise(
        {.op = op, .type = Type::f32, .inputs = {{Type::f32}, {Type::f32}}},
        [&](const Row& row) {
          return bits_of(static_cast<float>(reference(f32(row[0]), f32(row[1]), is_min)));
        },
        {}, same_f32);
    check_elementwise(
        {.op = op, .type = Type::f64, .inputs = {{Type::f64}, {Type::f64}}},
        [&](const Row& row) { return bits_of(reference(f64(row[0]), f64(row[1]), is_min)); }, {}, same_f64);
    check_elementwise(
        {.op = op, .type = Type::f32, .attr = {.nan = true}, .inputs = {{Type::f32}, {Type::f32}}},
        [&](const Row& row) -> std::uint64_t {
          if (std::isnan(f32(row[0])) || std::isnan(f32(row[1]))) return 0x7fffffff;
          return bits_of(static_cast<float>(reference(f32(row[0]), f32(row[1]), is_min)));
        });
    for (const Type type : {Type::f16, Type::bf16})
      check_elementwise(
          {.op = op, .type = type, .inputs = {{type}, {type}}},
          [&](const Row& row) {
            const double chosen = reference(narrow_value(type, row[0]), narrow_value(type, row[1]), is_min);
            return narrow_exact(type, Op::fmul, chosen, 1.0, 0.0);
          },
          {}, type == Type::f16 ? same_f16 : same_bf16);
  }
}

// For bf16, any other NaN gives a GPU's NaN (docs/decisions/0013-nan-bits.md).
TEST_CASE("neg, abs and copysign touch the sign bit alone, NaN included but for neg and abs of bf16") {
  for (const Type type : {Type::f16, Type::bf16, Type::f32, Type::f64}) {
    const std::uint64_t sign = std::uint64_t{1} << (ir::bit_size(type) - 1);
    const auto bits = [&](std::uint64_t of, std::uint64_t moved) -> std::uint64_t {
      return type == Type::bf16 && (of & 0x7fff) > 0x7f80 ? 0x7fff : moved;
    };
    check_elementwise({.op = Op::fneg, .type = type, .inputs = {{type}}},
                      [&](const Row& row) { return bits(row[0], row[0] ^ sign); });
    check_elementwise({.op = Op::fabs, .type = type, .inputs = {{type}}},
                      [&](const Row& row) { return bits(row[0], row[0] & ~sign); });
    check_elementwise({.op = Op::copysign, .type = type, .inputs = {{type}, {type}}},
                      [&](const Row& row) { return (row[0] & sign) | (row[1] & ~sign); });
  }
}

TEST_CASE("comparisons with NaN, ordered and unordered") {
  using F = ir::Fcmp;
  for (const F predicate : {F::oeq, F::one, F::olt, F::ole, F::ogt, F::oge, F::ueq, F::une, F::ult, F::ule,
                            F::ugt, F::uge, F::ord, F::uno}) {
    const auto reference = [&](double x, double y) -> std::uint64_t {
      const bool uno = std::isnan(x) || std::isnan(y);
      const bool ordered[] = {x == y, !uno && x != y, x<y, x <= y, x> y, x >= y};
      const auto index = static_cast<std::size_t>(predicate);
      if (predicate == F::ord) return !uno;
      if (predicate == F::uno) return uno;
      return index < 6 ? ordered[index] : uno || ordered[index - 6];
    };
    const ir::Attributes attr{.fcmp = predicate};
    check_elementwise({.op = Op::fcmp, .type = Type::i1, .attr = attr, .inputs = {{Type::f32}, {Type::f32}}},
                      [&](const Row& row) { return reference(f32(row[0]), f32(row[1])); });
    check_elementwise({.op = Op::fcmp, .type = Type::i1, .attr = attr, .inputs = {{Type::f64}, {Type::f64}}},
                      [&](const Row& row) { return reference(f64(row[0]), f64(row[1])); });
    check_elementwise({.op = Op::fcmp,
                       .type = Type::i1,
                       .attr = {.fcmp = predicate, .ftz = true},
                       .inputs = {{Type::f32}, {Type::f32}}},
                      [&](const Row& row) { return reference(f32(flushed(row[0])), f32(flushed(row[1]))); });
    check_elementwise({.op = Op::fcmp, .type = Type::i1, .attr = attr, .inputs = {{Type::f16}, {Type::f16}}},
                      [&](const Row& row) {
                        return reference(narrow_value(Type::f16, row[0]), narrow_value(Type::f16, row[1]));
                      });
  }
}

TEST_CASE("testp: zero counts as normal") {
  using P = ir::TestProperty;
  for (const P property : {P::finite, P::infinite, P::number, P::notanumber, P::normal, P::subnormal}) {
    const auto reference = [&](double x, int kind) -> std::uint64_t {
      switch (property) {
        case P::finite:
          return std::isfinite(x);
        case P::infinite:
          return std::isinf(x);
        case P::number:
          return !std::isnan(x);
        case P::notanumber:
          return std::isnan(x);
        case P::normal:
          return kind == FP_NORMAL || kind == FP_ZERO;
        case P::subnormal:
          break;
      }
      return kind == FP_SUBNORMAL;
    };
    const auto imm = static_cast<std::uint64_t>(property);
    check_elementwise({.op = Op::testp, .type = Type::i1, .imm = imm, .inputs = {{Type::f32}}},
                      [&](const Row& row) { return reference(f32(row[0]), std::fpclassify(f32(row[0]))); });
    check_elementwise({.op = Op::testp, .type = Type::i1, .imm = imm, .inputs = {{Type::f64}}},
                      [&](const Row& row) { return reference(f64(row[0]), std::fpclassify(f64(row[0]))); });
  }
}

}  // namespace quern::cpu::emit::testing
