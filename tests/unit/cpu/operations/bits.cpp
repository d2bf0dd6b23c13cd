// SPDX-License-Identifier: Apache-2.0
// The references follow the pseudocode of the PTX ISA, bit by bit.
#include <doctest/doctest.h>

#include "cpu/ir/fold.hpp"
#include "harness.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::Op;
using ir::Type;
using Row = std::vector<std::uint64_t>;

std::uint64_t low(std::uint64_t value, unsigned width) {
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}
/// As GPUs read positions and lengths beyond 255, which the PTX ISA does not allow.
std::uint64_t field_number(std::uint64_t given, unsigned width) { return width == 32 ? given & 0xff : given; }
bool bit(std::uint64_t value, std::uint64_t at) { return at < 64 && (value >> at & 1) != 0; }

std::uint64_t reference_bfe(const Row& row, unsigned width, bool is_signed) {
  const unsigned msb = width - 1;
  const std::uint64_t position = field_number(row[1], width);
  const std::uint64_t length = field_number(row[2], width);
  bool sign = false;
  if (is_signed && length != 0) sign = bit(row[0], std::min<std::uint64_t>(position + length - 1, msb));
  std::uint64_t result = 0;
  for (unsigned i = 0; i <= msb; ++i) {
    const bool value = i < length && position + i <= msb ? bit(row[0], position + i) : sign;
    result |= static_cast<std::uint64_t>(value) << i;
  }
  return result;
}

std::uint64_t reference_bfi(const Row& row, unsigned width) {
  const std::uint64_t position = field_number(row[2], width);
  const std::uint64_t length = field_number(row[3], width);
  std::uint64_t result = row[1];
  for (unsigned i = 0; i < length && position + i < width; ++i) {
    result &= ~(std::uint64_t{1} << (position + i));
    result |= static_cast<std::uint64_t>(bit(row[0], i)) << (position + i);
  }
  return result;
}

std::uint64_t reference_bfind(std::uint64_t value, unsigned width, bool is_signed, bool shift_amount) {
  const bool look_for = !(is_signed && bit(value, width - 1));
  for (unsigned at = width; at-- > 0;)
    if (bit(value, at) == look_for) return shift_amount ? width - 1 - at : at;
  return 0xffffffff;
}

std::uint64_t reference_prmt(std::uint64_t a, std::uint64_t b, std::uint64_t selector) {
  const std::uint64_t both = b << 32 | a;
  std::uint64_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> (i * 4) & 0xf;
    std::uint64_t byte = both >> ((nibble & 7) * 8) & 0xff;
    if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (i * 8);
  }
  return result;
}

const std::vector<std::uint64_t> kAmounts = {0,  1,  5,  7,  8,   15,  16,         31,        32,
                                             33, 63, 64, 65, 255, 256, 0x80000000, 0xffffffff};

}  // namespace

TEST_CASE("shifts by the width or more give zero, or the sign") {
  for (const Type type : {Type::i8, Type::i16, Type::i32, Type::i64}) {
    const unsigned width = ir::bit_size(type);
    const std::vector<Input> inputs = {{type}, {Type::i32}};
    const std::vector<std::vector<std::uint64_t>> values = {interesting(type), kAmounts};
    check_elementwise(
        {.op = Op::shl, .type = type, .inputs = inputs},
        [&](const Row& row) { return row[1] >= width ? 0 : low(row[0] << row[1], width); }, values);
    check_elementwise(
        {.op = Op::lshr, .type = type, .inputs = inputs},
        [&](const Row& row) { return row[1] >= width ? 0 : row[0] >> row[1]; }, values);
    check_elementwise(
        {.op = Op::ashr, .type = type, .inputs = inputs},
        [&](const Row& row) {
          const auto value = static_cast<std::int64_t>(row[0] << (64 - width)) >> (64 - width);
          return low(static_cast<std::uint64_t>(value >> std::min<std::uint64_t>(row[1], 63)), width);
        },
        values);
  }
}

TEST_CASE("funnel shifts wrap their amount, or clamp it to 32") {
  const std::vector<Input> inputs = {{Type::i32}, {Type::i32}, {Type::i32}};
  const std::vector<std::vector<std::uint64_t>> values = {
      interesting(Type::i32), {0, 1, 0x80000000, 0xdeadbeef}, kAmounts};
  for (const bool clamp : {false, true}) {
    const auto amount = [=](std::uint64_t c) { return clamp ? std::min<std::uint64_t>(c, 32) : c & 31; };
    check_elementwise(
        {.op = Op::funnel_l, .attr = {.clamp = clamp}, .inputs = inputs},
        [=](const Row& row) { return ((row[1] << 32 | row[0]) << amount(row[2])) >> 32; }, values);
    check_elementwise(
        {.op = Op::funnel_r, .attr = {.clamp = clamp}, .inputs = inputs},
        [=](const Row& row) { return low((row[1] << 32 | row[0]) >> amount(row[2]), 32); }, values);
  }
}

TEST_CASE("counting and finding bits") {
  for (const Type type : {Type::i32, Type::i64}) {
    const unsigned width = ir::bit_size(type);
    check_elementwise({.op = Op::popc, .inputs = {{type}}}, [](const Row& row) {
      return static_cast<std::uint64_t>(__builtin_popcountll(row[0]));
    });
    check_elementwise({.op = Op::clz, .inputs = {{type}}}, [&](const Row& row) {
      const std::uint64_t found = reference_bfind(row[0], width, false, true);
      return found == 0xffffffff ? width : found;
    });
    check_elementwise({.op = Op::brev, .type = type, .inputs = {{type}}}, [&](const Row& row) {
      std::uint64_t result = 0;
      for (unsigned at = 0; at < width; ++at)
        result |= static_cast<std::uint64_t>(bit(row[0], at)) << (width - 1 - at);
      return result;
    });
    for (const bool is_signed : {false, true})
      for (const bool shift_amount : {false, true})
        check_elementwise(
            {.op = Op::bfind, .attr = {.is_signed = is_signed, .shiftamt = shift_amount}, .inputs = {{type}}},
            [&](const Row& row) { return reference_bfind(row[0], width, is_signed, shift_amount); });
  }
}

TEST_CASE("bit fields of any position and length") {
  const std::vector<std::uint64_t> numbers = {0, 1, 4, 8, 31, 32, 33, 63, 64, 200, 255, 256, 257};
  for (const Type type : {Type::i32, Type::i64}) {
    const unsigned width = ir::bit_size(type);
    for (const bool is_signed : {false, true})
      check_elementwise({.op = Op::bfe,
                         .type = type,
                         .attr = {.is_signed = is_signed},
                         .inputs = {{type}, {Type::i32}, {Type::i32}}},
                        [&](const Row& row) { return reference_bfe(row, width, is_signed); },
                        {interesting(type), numbers, numbers});
    check_elementwise({.op = Op::bfi, .type = type, .inputs = {{type}, {type}, {Type::i32}, {Type::i32}}},
                      [&](const Row& row) { return reference_bfi(row, width); },
                      {{0, 0xdeadbeef, ~std::uint64_t{0} >> (64 - width)},
                       {0, 0x12345678, ~std::uint64_t{0} >> (64 - width)},
                       numbers,
                       numbers});
  }
}

TEST_CASE("byte permutation with any selector, replicating signs") {
  const std::vector<std::uint64_t> words = {0x03020100, 0x87868584, 0xff7f80fe};
  const std::vector<std::uint64_t> selectors = {0x3210, 0x7654, 0x0000, 0x4140,    0xba98,
                                                0xfedc, 0x5410, 0x8f07, 0x12344321};
  const std::vector<Input> inputs = {{Type::i32}, {Type::i32}, {Type::i32}};
  const auto reference = [](const Row& row) { return reference_prmt(row[0], row[1], row[2]); };
  check_elementwise({.op = Op::prmt, .inputs = inputs}, reference, {words, words, selectors});
  for (const std::uint64_t selector : selectors) {
    const Operation operation{.op = Op::prmt,
                              .inputs = {{Type::i32}, {Type::i32}, {Type::i32, uniform_constant(selector)}}};
    for (const Isa isa : isas()) {
      const Lanes got = compile(operation, {.isa = isa})
                            .run({Lanes{words[0], words[2]}, Lanes{words[1], words[0]}, Lanes{selector}})[0];
      CHECK(got[0] == reference_prmt(words[0], words[1], selector));
      CHECK(got[1] == reference_prmt(words[2], words[0], selector));
    }
  }
}

TEST_CASE("byte permutation by one selector for all lanes that is known at run time only") {
  const Operation operation{.op = Op::prmt, .inputs = {{Type::i32}, {Type::i32}, {Type::i32, uniform()}}};
  for (const Isa isa : isas()) {
    const auto kernel = compile(operation, {.isa = isa});
    for (const std::uint64_t selector : {0x3210u, 0x7654u, 0x4140u, 0xba98u, 0xfedcu, 0x8f07u, 0x12344321u}) {
      Lanes a, b;
      for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
        a[lane] = 0x83027f80u + 0x01030507u * lane;
        b[lane] = 0xf1e2d3c4u ^ (0x11224488u * lane);
      }
      for (std::size_t lane = 0; lane < kWarpSize; ++lane) a[lane] &= 0xffffffff, b[lane] &= 0xffffffff;
      const Lanes got = kernel.run({a, b, Lanes{selector}})[0];
      for (std::size_t lane = 0; lane < kWarpSize; ++lane)
        CHECK(got[lane] == reference_prmt(a[lane], b[lane], selector));
    }
  }
}

TEST_CASE("the named modes of prmt choose bytes by the low two bits of c") {
  // PTX ISA, table of prmt modes: the selectors for c = 0, 1, 2, 3.
  const std::vector<std::pair<ir::PrmtMode, std::array<std::uint64_t, 4>>> modes = {
      {ir::PrmtMode::f4e, {0x3210, 0x4321, 0x5432, 0x6543}},
      {ir::PrmtMode::b4e, {0x5670, 0x6701, 0x7012, 0x0123}},
      {ir::PrmtMode::rc8, {0x0000, 0x1111, 0x2222, 0x3333}},
      {ir::PrmtMode::ecl, {0x3210, 0x3211, 0x3222, 0x3333}},
      {ir::PrmtMode::ecr, {0x0000, 0x1110, 0x2210, 0x3210}},
      {ir::PrmtMode::rc16, {0x1010, 0x3232, 0x1010, 0x3232}}};
  for (const auto& [mode, selectors] : modes)
    check_elementwise({.op = Op::prmt,
                       .imm = static_cast<std::uint64_t>(mode),
                       .inputs = {{Type::i32}, {Type::i32}, {Type::i32}}},
                      [&](const Row& row) { return reference_prmt(row[0], row[1], selectors[row[2] & 3]); },
                      {{0x03020100}, {0x87868584}, {0, 1, 2, 3, 7, 0xfffffffe}});
}

TEST_CASE("lop3 computes each of the 256 functions") {
  const Lanes a{0xf0};
  const Lanes b{0xcc};
  const Lanes c{0xaa};
  for (std::uint64_t table = 0; table < 256; ++table) {
    const Operation operation{
        .op = Op::lop3, .imm = table, .inputs = {{Type::i32}, {Type::i32}, {Type::i32}}};
    // PTX ISA: the table is the function applied to 0xF0, 0xCC, 0xAA.
    const Machine machine{.isa = isas()[table % isas().size()], .opt_level = 0};
    REQUIRE((compile(operation, machine).run({a, b, c})[0][0] & 0xff) == table);
  }
}

TEST_CASE("bit fields of constants are folded") {
  for (const Type type : {Type::i32, Type::i64})
    for (std::uint64_t position = 0; position < 300; position += 3)
      for (std::uint64_t length = 0; length < 300; ++length) {
        const unsigned width = ir::bit_size(type);
        const std::uint64_t a = low(0x9e3779b97f4a7c15u, width), b = low(0x0123456789abcdefu, width);
        const Row extracted{a, position, length}, inserted{a, b, position, length};
        for (const bool is_signed : {false, true}) {
          ir::Inst extract{.op = Op::bfe, .type = type};
          extract.attr.is_signed = is_signed;
          REQUIRE(ir::fold(extract, width, extracted) == reference_bfe(extracted, width, is_signed));
        }
        const ir::Inst insert{.op = Op::bfi, .type = type};
        REQUIRE(ir::fold(insert, width, inserted) == reference_bfi(inserted, width));
      }
}

}  // namespace quern::cpu::emit::testing
