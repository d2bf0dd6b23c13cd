// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "harness.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::Op;
using ir::Type;
using Row = std::vector<std::uint64_t>;
__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

std::uint64_t low(std::uint64_t value, unsigned width) {
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}
std::int64_t number(std::uint64_t value, unsigned width) {
  return static_cast<std::int64_t>(value << (64 - width)) >> (64 - width);
}

/// The operation on two operands of `type`, with its reference on their bits and width.
void check_binary(Op op, std::vector<Type> types,
                  std::uint64_t (*reference)(std::uint64_t, std::uint64_t, unsigned)) {
  for (const Type type : types) {
    const unsigned width = ir::bit_size(type);
    check_elementwise({.op = op, .type = type, .inputs = {{type}, {type}}},
                      [&](const Row& row) { return low(reference(row[0], row[1], width), width); });
  }
}

const std::vector<Type> kAll = {Type::i8, Type::i16, Type::i32, Type::i64};
const std::vector<Op> kDivisions = {Op::udiv, Op::urem, Op::sdiv, Op::srem};

using Reference2 = std::uint64_t (*)(std::uint64_t, std::uint64_t, unsigned);

Reference2 division_of(Op op) {
  if (op == Op::udiv)
    return [](std::uint64_t a, std::uint64_t b, unsigned) { return b == 0 ? ~std::uint64_t{0} : a / b; };
  if (op == Op::urem)
    return [](std::uint64_t a, std::uint64_t b, unsigned) { return b == 0 ? ~std::uint64_t{0} : a % b; };
  if (op == Op::sdiv)
    return [](std::uint64_t a, std::uint64_t b, unsigned width) {
      if (b == 0) return ~std::uint64_t{0};
      return static_cast<std::uint64_t>(
          static_cast<std::int64_t>(SignedWide{number(a, width)} / number(b, width)));
    };
  return [](std::uint64_t a, std::uint64_t b, unsigned width) {
    if (b == 0) return ~std::uint64_t{0};
    return static_cast<std::uint64_t>(
        static_cast<std::int64_t>(SignedWide{number(a, width)} % number(b, width)));
  };
}

/// Without a mask for all lanes, the lanes that do not run have values for which other code would be chosen.
void check_uniform_divisor(Op op, Type type, const Machine& machine) {
  const unsigned width = ir::bit_size(type);
  const Compiled code = compile({.op = op, .type = type, .inputs = {{type}, {type, uniform()}}}, machine);
  std::vector<std::uint64_t> dividends = interesting(type), divisors = dividends;
  for (const std::uint64_t more : {1ull << 49, 1ull << 50, (1ull << 50) - 1, (1ull << 50) + 1, 1237ull}) {
    dividends.push_back(low(more * 3, width));
    dividends.push_back(low(0 - more, width));
    divisors.push_back(low(more, width));
  }
  const std::uint32_t mask = machine.full ? 0xffffffffu : 0x5a5a5a5au;
  for (const std::uint64_t divisor : divisors)
    for (const std::size_t begin : {0u, 32u}) {
      Lanes lanes{};
      for (std::size_t lane = 0; lane < lanes.size(); ++lane)
        lanes[lane] =
            (mask >> lane & 1) != 0 ? dividends[(begin + lane) % dividends.size()] : low(~0ull, width);
      const Lanes got = code.run({lanes, filled(divisor)}, mask)[0];
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        if ((mask >> lane & 1) == 0) continue;
        CAPTURE(lanes[lane]);
        CAPTURE(divisor);
        CHECK(got[lane] == low(division_of(op)(lanes[lane], divisor, width), width));
      }
    }
}

}  // namespace

TEST_CASE("integer sums, differences and products wrap at every width") {
  check_binary(Op::iadd, kAll, [](std::uint64_t a, std::uint64_t b, unsigned) { return a + b; });
  check_binary(Op::isub, kAll, [](std::uint64_t a, std::uint64_t b, unsigned) { return a - b; });
  check_binary(Op::imul, kAll, [](std::uint64_t a, std::uint64_t b, unsigned) { return a * b; });
}

TEST_CASE("the high half of a product is exact, signed and unsigned") {
  const std::vector<Type> types = {Type::i16, Type::i32, Type::i64};
  check_binary(Op::imulhi_u, types, [](std::uint64_t a, std::uint64_t b, unsigned width) {
    return static_cast<std::uint64_t>(Wide{a} * b >> width);
  });
  check_binary(Op::imulhi_s, types, [](std::uint64_t a, std::uint64_t b, unsigned width) {
    return static_cast<std::uint64_t>(SignedWide{number(a, width)} * number(b, width) >> width);
  });
}

TEST_CASE("division never faults: by zero it gives all ones, INT_MIN / -1 gives INT_MIN") {
  for (const Op op : kDivisions) check_binary(op, kAll, division_of(op));
}

TEST_CASE("64-bit divisions are exact where f64 begins to round") {
  std::vector<std::uint64_t> values;
  for (const unsigned bits : {31u, 32u, 49u, 50u, 51u, 52u, 53u, 54u})
    for (const std::uint64_t distance : {0ull, 1ull, 2ull, 3ull}) {
      values.push_back((std::uint64_t{1} << bits) - distance);
      values.push_back((std::uint64_t{1} << bits) + distance);
      values.push_back(0 - values.back());
      values.push_back(0 - (std::uint64_t{1} << bits) + distance);
    }
  for (const std::uint64_t small : {1ull, 2ull, 3ull, 5ull, 7ull, 641ull, 65537ull}) values.push_back(small);
  for (const Op op : kDivisions)
    check_elementwise({.op = op, .type = Type::i64, .inputs = {{Type::i64}, {Type::i64}}},
                      [&](const Row& row) { return division_of(op)(row[0], row[1], 64); }, {values, values});
}

TEST_CASE("a divisor that all lanes share is any divisor") {
  for (const Type type : kAll)
    for (const Op op : kDivisions)
      for (const Isa isa : isas())
        for (const bool full : {true, false}) check_uniform_divisor(op, type, {.isa = isa, .full = full});
}

TEST_CASE("division by a constant is that of any divisor") {
  for (const std::uint64_t divisor : {0ull, 1ull, 3ull, 7ull, 10ull, 0x80000000ull, 0xffffffffull}) {
    for (const Op op : {Op::udiv, Op::sdiv, Op::urem, Op::srem}) {
      const Operation operation{.op = op, .inputs = {{Type::i32}, {Type::i32, uniform_constant(divisor)}}};
      const Operation general{.op = op, .inputs = {{Type::i32}, {Type::i32}}};
      const Compiled constant = compile(operation, {.isa = isas().back()});
      const Compiled any = compile(general, {.isa = isas().back()});
      Lanes values{};
      const auto interesting_values = interesting(Type::i32);
      for (std::size_t lane = 0; lane < 32; ++lane)
        values[lane] = interesting_values[lane % interesting_values.size()];
      Lanes divisors{};
      divisors.fill(divisor);
      CHECK(constant.run({values, divisors}) == any.run({values, divisors}));
    }
  }
}

TEST_CASE("a dot product of bytes takes each word's bytes as signed or unsigned") {
  const auto byte = [](std::uint64_t word, unsigned at, bool is_signed) -> std::int64_t {
    const std::int64_t value = static_cast<std::int64_t>(word >> at & 0xff);
    return is_signed && value > 127 ? value - 256 : value;
  };
  const std::vector<std::uint64_t> words = {0,          1,          0x80808080, 0xffffffff, 0x7f7f7f7f,
                                            0x01ff0203, 0xff80017f, 0x00ff00ff, 0xff00ff00, 0x12345678};
  for (const unsigned signs : {0u, 1u, 2u, 3u})
    check_elementwise({.op = Op::dot4, .imm = signs, .inputs = {{Type::i32}, {Type::i32}, {Type::i32}}},
                      [&](const Row& row) {
                        std::int64_t sum = static_cast<std::int64_t>(row[2]);
                        for (const unsigned at : {0u, 8u, 16u, 24u})
                          sum += byte(row[0], at, (signs & 1) != 0) * byte(row[1], at, (signs & 2) != 0);
                        return low(static_cast<std::uint64_t>(sum), 32);
                      },
                      {words, words, words});
}

TEST_CASE("minima and maxima compare as signed or unsigned") {
  check_binary(Op::umin, kAll, [](std::uint64_t a, std::uint64_t b, unsigned) { return a < b ? a : b; });
  check_binary(Op::umax, kAll, [](std::uint64_t a, std::uint64_t b, unsigned) { return a > b ? a : b; });
  check_binary(Op::smin, kAll, [](std::uint64_t a, std::uint64_t b, unsigned w) {
    return number(a, w) < number(b, w) ? a : b;
  });
  check_binary(Op::smax, kAll, [](std::uint64_t a, std::uint64_t b, unsigned w) {
    return number(a, w) > number(b, w) ? a : b;
  });
}

TEST_CASE("saturating sums and differences stop at the ends of the range") {
  const auto clamp = [](SignedWide value, unsigned width) {
    const SignedWide top = SignedWide{1} << (width - 1);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value < -top      ? -top
                                                                : value > top - 1 ? top - 1
                                                                                  : value));
  };
  static const auto saturate = clamp;
  check_binary(Op::iadd_sat, {Type::i32}, [](std::uint64_t a, std::uint64_t b, unsigned w) {
    return saturate(SignedWide{number(a, w)} + number(b, w), w);
  });
  check_binary(Op::isub_sat, {Type::i32}, [](std::uint64_t a, std::uint64_t b, unsigned w) {
    return saturate(SignedWide{number(a, w)} - number(b, w), w);
  });
}

TEST_CASE("abs of the least integer is itself") {
  for (const Type type : {Type::i16, Type::i32, Type::i64}) {
    const unsigned width = ir::bit_size(type);
    check_elementwise({.op = Op::iabs, .type = type, .inputs = {{type}}}, [&](const Row& row) {
      return low(number(row[0], width) < 0 ? 0 - row[0] : row[0], width);
    });
  }
}

TEST_CASE("and, or, xor work on every integer and on predicates") {
  const std::vector<Type> types = {Type::i1, Type::i16, Type::i32, Type::i64};
  check_binary(Op::and_, types, [](std::uint64_t a, std::uint64_t b, unsigned) { return a & b; });
  check_binary(Op::or_, types, [](std::uint64_t a, std::uint64_t b, unsigned) { return a | b; });
  check_binary(Op::xor_, types, [](std::uint64_t a, std::uint64_t b, unsigned) { return a ^ b; });
}

TEST_CASE("sums with carry chain") {
  for (const Type type : {Type::i32, Type::i64}) {
    const unsigned width = ir::bit_size(type);
    const std::vector<Input> inputs = {{type}, {type}, {Type::i1}};
    check_elementwise({.op = Op::add_carry, .type = type, .inputs = inputs},
                      [&](const Row& row) { return low(row[0] + row[1] + row[2], width); });
    check_elementwise({.op = Op::carry_of_add, .type = Type::i1, .inputs = inputs}, [&](const Row& row) {
      return static_cast<std::uint64_t>((Wide{row[0]} + row[1] + row[2]) >> width);
    });
  }
}

TEST_CASE("integer comparisons") {
  const std::vector<ir::Icmp> predicates = {ir::Icmp::eq,  ir::Icmp::ne,  ir::Icmp::slt, ir::Icmp::sle,
                                            ir::Icmp::sgt, ir::Icmp::sge, ir::Icmp::ult, ir::Icmp::ule,
                                            ir::Icmp::ugt, ir::Icmp::uge};
  for (const Type type : {Type::i16, Type::i32, Type::i64})
    for (const ir::Icmp predicate : predicates) {
      const unsigned width = ir::bit_size(type);
      const auto reference = [&](const Row& row) -> std::uint64_t {
        const std::uint64_t a = row[0];
        const std::uint64_t b = row[1];
        const std::int64_t x = number(a, width);
        const std::int64_t y = number(b, width);
        const bool results[] = {a == b, a != b, x<y, x <= y, x> y, x >= y, a<b, a <= b, a> b, a >= b};
        return results[static_cast<std::size_t>(predicate)];
      };
      check_elementwise(
          {.op = Op::icmp, .type = Type::i1, .attr = {.icmp = predicate}, .inputs = {{type}, {type}}},
          reference);
    }
}

TEST_CASE("select chooses by lane, and by a uniform condition for all lanes") {
  const auto reference = [](const Row& row) { return row[0] != 0 ? row[1] : row[2]; };
  for (const Type type : {Type::i1, Type::i32, Type::i64, Type::f16, Type::bf16, Type::f32, Type::f64}) {
    const std::vector<std::vector<std::uint64_t>> values = {{0, 1}, {0, 1}, {0, 1}};
    check_elementwise({.op = Op::select, .type = type, .inputs = {{Type::i1}, {type}, {type}}}, reference,
                      values);
  }
  const Operation operation{.op = Op::select, .inputs = {{Type::i1, uniform()}, {Type::i32}, {Type::i32}}};
  for (const Isa isa : isas()) {
    Lanes a{};
    Lanes b{};
    for (std::size_t lane = 0; lane < 32; ++lane) a[lane] = lane, b[lane] = lane + 100;
    const Compiled code = compile(operation, {.isa = isa});
    CHECK(code.run({Lanes{1}, a, b})[0] == a);
    CHECK(code.run({Lanes{0}, a, b})[0] == b);
  }
}

TEST_CASE("an affine result is computed on the bases") {
  analysis::LaneOffsets lanes{};
  for (std::size_t lane = 0; lane < 32; ++lane) lanes[lane] = static_cast<std::int64_t>(lane) * 4;
  const Operation operation{.op = Op::iadd,
                            .type = Type::i64,
                            .inputs = {{Type::i64, affine(lanes)}, {Type::i64, uniform()}},
                            .result = affine(lanes)};
  Lanes got = compile(operation, {.isa = isas().back()}).run({Lanes{1000}, Lanes{24}})[0];
  CHECK(got[0] == 1024);  // the base; the terms are the analysis's
}

}  // namespace quern::cpu::emit::testing
