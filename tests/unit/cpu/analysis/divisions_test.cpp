// SPDX-License-Identifier: Apache-2.0
// What the analysis assumes of divisions.
#include "testing.hpp"

using namespace quern::cpu;
using analysis::Assumption;
using analysis::LanePatternKind;
using test::analysed;
using test::block_of;
using test::IrBuilder;
using test::is_strided;

TEST_CASE("numbers of divisions are assumed not to be negative where their sign is asked for") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i64);
  const auto other = b.param(ir::Type::i64);
  const auto i = b.sub(b.sext(ir::Type::i64, b.global_index()), b.i64(5));
  const auto rest = b.op(ir::Op::srem, ir::Type::i64, {i, n});
  const auto quotient = b.op(ir::Op::sdiv, ir::Type::i64, {i, n});
  const auto again = b.sub(i, b.mul(quotient, n));
  const auto of_number = b.icmp(ir::Icmp::slt, i, b.i64(0)), of_divisor = b.icmp(ir::Icmp::sgt, n, b.i64(-1));
  const auto sign =
      b.op(ir::Op::ashr, ir::Type::i64, {b.op(ir::Op::xor_, ir::Type::i64, {rest, n}), b.i32(63)});
  const auto of_other = b.icmp(ir::Icmp::slt, other, b.i64(0)), is_zero = b.icmp(ir::Icmp::eq, n, b.i64(0));
  const auto odd = b.icmp(ir::Icmp::ne, rest, b.i64(0));
  const auto adjusts = b.and_(odd, of_number);
  const auto adjusted = b.select(adjusts, b.add(rest, n), rest);
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(64), Assumption::optimistic);
  CHECK(a.patterns[of_number].constant == 0u);
  CHECK(a.patterns[of_divisor].constant == 1u);
  CHECK(a.patterns[sign].constant == 0u);
  CHECK(a.patterns[adjusts].constant == 0u);
  CHECK(a.patterns[odd].kind == LanePatternKind::varying);
  CHECK_FALSE(a.patterns[of_other].constant.has_value());
  CHECK_FALSE(a.patterns[is_zero].constant.has_value());
  REQUIRE(is_strided(a.patterns[again], 1));
  CHECK(a.patterns[again].min == 0);
  CHECK(is_strided(a.patterns[adjusted], 1));
  for (const ir::Value assumed : {of_number, of_divisor, sign, again}) CHECK(a.assumed[assumed]);
  for (const ir::Value derived : {adjusts, adjusted}) CHECK_FALSE(a.assumed[derived]);
  const analysis::Analysis safe = analysed(b, block_of(64), Assumption::safe);
  for (const ir::Value value : {of_number, of_divisor, sign, adjusts})
    CHECK_FALSE(safe.patterns[value].constant.has_value());
  CHECK(safe.patterns[adjusted].kind == LanePatternKind::varying);
}

TEST_CASE("lanes are assumed to have one quotient where they seldom step over a multiple") {
  for (const bool is_signed : {false, true}) {
    IrBuilder b;
    const auto n = b.param(ir::Type::i32);
    const auto i = b.global_index();
    const auto divide = is_signed ? ir::Op::sdiv : ir::Op::udiv,
               rest = is_signed ? ir::Op::srem : ir::Op::urem;
    const auto by = [&](ir::Op op, ir::Value divisor) { return b.op(op, ir::Type::i32, {i, divisor}); };
    const auto row = by(divide, n), column = by(rest, n);
    const auto of_100 = by(rest, b.i32(100)), of_300 = by(rest, b.i32(300)), of_96 = by(divide, b.i32(96));
    b.ret();
    const analysis::Analysis a = analysed(b, block_of(64), Assumption::optimistic);
    CHECK(a.patterns[row].kind == LanePatternKind::uniform);
    CHECK(a.patterns[row].min == 0);
    REQUIRE(a.patterns[column].kind == LanePatternKind::affine);
    CHECK(a.patterns[column].terms == a.patterns[i].terms);
    CHECK(a.patterns[column].min == 0);
    CHECK(a.patterns[of_100].kind == LanePatternKind::varying);
    CHECK(a.patterns[of_300].kind == LanePatternKind::affine);
    CHECK(a.patterns[of_300].max == 299);
    CHECK(a.patterns[of_96].kind == LanePatternKind::uniform);
    for (const ir::Value assumed : {row, column, of_300, of_96}) CHECK(a.assumed[assumed]);
    CHECK_FALSE(a.assumed[of_100]);
    const analysis::Analysis safe = analysed(b, block_of(64), Assumption::safe);
    for (const ir::Value value : {row, column, of_300, of_96}) {
      CHECK(safe.patterns[value].kind == LanePatternKind::varying);
      CHECK_FALSE(safe.assumed[value]);
    }
  }
}
