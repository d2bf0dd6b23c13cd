// SPDX-License-Identifier: Apache-2.0
// Branches that compare a thread's index with a bound: full code tests the last lane before it compares all
// lanes.
#include <doctest/doctest.h>

#include <limits>

#include "cpu/analysis/analysis.hpp"
#include "cpu/cuts/bounds.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Type;
using ir::Value;

constexpr std::uint32_t kThreads = 128;
constexpr std::uint32_t kSide = 16;

/// Does not use ir::holds, with which the compiler folds comparisons.
bool holds(Icmp how, std::int64_t a, std::int64_t b, bool narrow) {
  const auto first = narrow ? static_cast<std::uint32_t>(a) : static_cast<std::uint64_t>(a);
  const auto second = narrow ? static_cast<std::uint32_t>(b) : static_cast<std::uint64_t>(b);
  if (narrow) a = static_cast<std::int32_t>(a), b = static_cast<std::int32_t>(b);
  switch (how) {
    case Icmp::slt:
      return a < b;
    case Icmp::sle:
      return a <= b;
    case Icmp::sgt:
      return a > b;
    case Icmp::sge:
      return a >= b;
    case Icmp::ult:
      return first < second;
    case Icmp::ule:
      return first <= second;
    case Icmp::ugt:
      return first > second;
    default:
      return first >= second;
  }
}

std::vector<std::int64_t> starts() {
  std::vector<std::int64_t> list = {0, 5, -1, -40, -128, -129};
  for (const std::int64_t least :
       {std::int64_t{std::numeric_limits<std::int32_t>::min()}, std::numeric_limits<std::int64_t>::min()})
    for (const std::int64_t away : {-128, -127, -50, -33, -32, -31, -1, 0, 3})
      list.push_back(
          static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + static_cast<std::uint64_t>(away)));
  return list;
}

std::vector<std::int64_t> bounds_of(std::int64_t start) {
  std::vector<std::int64_t> list = {0,
                                    1,
                                    -1,
                                    std::numeric_limits<std::int32_t>::max(),
                                    std::numeric_limits<std::int32_t>::min(),
                                    std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min()};
  for (const std::int64_t away : {-1, 0, 1, 30, 31, 32, 33, 63, 64, 100, 126, 127, 128, 129})
    list.push_back(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + static_cast<std::uint64_t>(away)));
  return list;
}

/// Stores 1 in block `yes` and 2 in block `no`. Both end in `join`, where the kernel ends.
void store_side(IrBuilder& b, Value address, ir::BlockId yes, ir::BlockId no, ir::BlockId join) {
  b.at(yes);
  b.store(address, b.i32(1));
  b.br(join);
  b.at(no);
  b.store(address, b.i32(2));
  b.br(join);
  b.at(join);
  b.ret();
}

/// out[tid] = 1 if `start + tid HOW bound` holds, else 2. With the sides exchanged: `bound HOW start + tid`.
ir::Module guard(Icmp how, bool exchanged, bool narrow) {
  IrBuilder b;
  const auto yes = b.block();
  const auto no = b.block();
  const auto join = b.block();
  const Value out = b.param(Type::i64);
  Value start = b.param(Type::i64), bound = b.param(Type::i64);
  if (narrow) start = b.trunc(Type::i32, start), bound = b.trunc(Type::i32, bound);
  const Value index = b.add(start, narrow ? b.tid() : b.zext(Type::i64, b.tid()));
  const Value address = b.add(out, b.shl(b.zext(Type::i64, b.tid()), 2));
  b.cond_br(exchanged ? b.icmp(how, bound, index) : b.icmp(how, index, bound), yes, no);
  store_side(b, address, yes, no, join);
  return b.module();
}

TEST_CASE("an index is compared with a bound in every lane, where it wraps too") {
  TestDevice device;
  for (const Icmp how :
       {Icmp::slt, Icmp::sle, Icmp::sgt, Icmp::sge, Icmp::ult, Icmp::ule, Icmp::ugt, Icmp::uge})
    for (const bool exchanged : {false, true}) {
      const bool narrow = exchanged == (how == Icmp::slt || how == Icmp::sge || how == Icmp::ule);
      const ir::Module module = guard(how, exchanged, narrow);
      for (const Specialisation& variant : variants({kThreads, 1, 1})) {
        const auto code = compile_ir(module, variant);
        for (const std::int64_t start : starts())
          for (const std::int64_t bound : bounds_of(start)) {
            device.clear();
            auto out = device.allocate<std::uint32_t>(kThreads);
            REQUIRE(
                !device.launch(*code, variant, {1, 1, 1}, Params().add(out.data()).add(start).add(bound)));
            for (std::uint32_t t = 0; t < kThreads; ++t) {
              const auto index = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + t);
              const bool expected =
                  exchanged ? holds(how, bound, index, narrow) : holds(how, index, bound, narrow);
              if (out[t] == (expected ? 1u : 2u)) continue;
              CAPTURE(name(variant));
              CAPTURE(static_cast<int>(how));
              CAPTURE(exchanged);
              CAPTURE(narrow);
              CAPTURE(start);
              CAPTURE(bound);
              CAPTURE(t);
              FAIL("stored ", out[t]);
            }
          }
      }
    }
}

/// out[tid] = 1 if the thread is in `width` columns and `height` rows and `flag` is not 0, else 2, as `if
/// (inside)` or `if (outside)`.
ir::Module rectangle(bool outside, ir::BlockId& guarded) {
  IrBuilder b;
  const auto yes = b.block();
  const auto no = b.block();
  const auto join = b.block();
  const Value out = b.param(Type::i64), width = b.param(Type::i64), height = b.param(Type::i64),
              flag = b.param(Type::i64);
  const Value x = b.zext(Type::i64, b.tid(0)), y = b.zext(Type::i64, b.tid(1));
  const Value number = b.add(b.mul(b.tid(1), b.i32(kSide)), b.tid(0));
  const Value address = b.add(out, b.shl(b.zext(Type::i64, number), 2));
  const Value column = b.icmp(outside ? Icmp::sge : Icmp::slt, x, width);
  const Value row = b.icmp(outside ? Icmp::sle : Icmp::sgt, height, y);
  const Value is_set = b.icmp(outside ? Icmp::eq : Icmp::ne, flag, b.i64(0));
  guarded = b.here();
  if (outside)
    b.cond_br(b.or_(b.or_(column, is_set), row), no, yes);
  else
    b.cond_br(b.and_(row, b.and_(is_set, column)), yes, no);
  store_side(b, address, yes, no, join);
  return b.module();
}

TEST_CASE("indices are compared with several bounds at once") {
  TestDevice device;
  for (const bool outside : {false, true}) {
    CAPTURE(outside);
    ir::BlockId guarded = 0;
    const ir::Module module = rectangle(outside, guarded);
    for (const Specialisation& variant : variants({kSide, kSide, 1})) {
      CAPTURE(name(variant));
      const Expected<analysis::Analysis> facts =
          analysis::analyse(module, module.functions[0], variant, analysis::Assumption::optimistic);
      REQUIRE(facts.has_value());
      const cuts::BoundedBranches found =
          cuts::bounded_branches(module.functions[0], facts->patterns, guarded);
      CHECK(found.comparisons.size() == 2);
      CHECK(found.uniform.size() == 1);
      CHECK(found.if_below != outside);
      const auto code = compile_ir(module, variant);
      for (const std::int64_t width : {-1, 0, 1, 15, 16, 17})
        for (const std::int64_t height : {-1, 0, 1, 2, 15, 16, 17})
          for (const std::int64_t flag : {0, 1}) {
            device.clear();
            auto out = device.allocate<std::uint32_t>(kSide * kSide);
            REQUIRE(!device.launch(*code, variant, {1, 1, 1},
                                   Params().add(out.data()).add(width).add(height).add(flag)));
            for (std::int64_t y = 0; y < kSide; ++y)
              for (std::int64_t x = 0; x < kSide; ++x)
                REQUIRE(out[static_cast<std::size_t>(y * kSide + x)] ==
                        (x < width && y < height && flag != 0 ? 1u : 2u));
          }
    }
  }
}

TEST_CASE("conditions that do not bound every lane from above are not taken for bounds") {
  IrBuilder b;
  const auto yes = b.block(), no = b.block();
  const Value n = b.param(Type::i64), address = b.param(Type::i64);
  const Value x = b.zext(Type::i64, b.tid());
  const Value below = b.icmp(Icmp::slt, x, n), above = b.icmp(Icmp::sgt, x, n);
  const Value data = b.icmp(Icmp::slt, b.load(Type::i64, b.add(address, b.shl(x, 3))), n);
  const Value either = b.or_(below, below), mixed = b.and_(below, above), of_data = b.and_(below, data);
  b.cond_br(either, yes, no);
  b.at(yes).ret();
  b.at(no).ret();
  for (const Value condition : {either, mixed, of_data}) {
    ir::Module module = b.module();
    ir::Function& function = module.functions[0];
    function[function.blocks[0].insts.back()].args[0] = condition;
    const Expected<analysis::Analysis> facts =
        analysis::analyse(module, function, variants({kThreads, 1, 1})[0], analysis::Assumption::optimistic);
    REQUIRE(facts.has_value());
    CHECK(cuts::bounded_branches(function, facts->patterns, 0).comparisons.empty());
  }
}

/// for (i = tid; i < n; i += step) out[tid] += i, with 64-bit i.
TEST_CASE("a loop over indices below a bound ends for each lane by itself") {
  TestDevice device;
  IrBuilder b;
  const auto none = b.block();
  const auto some = b.block();
  const auto body = b.block();
  const auto again = b.block();
  const auto over = b.block();
  const auto done = b.block();
  const Value out = b.param(Type::i64), n = b.param(Type::i64), step = b.param(Type::i64);
  const Value first = b.zext(Type::i64, b.tid());
  const Value address = b.add(out, b.shl(first, 2));
  b.cond_br(b.icmp(Icmp::sge, first, n), none, some);
  b.at(none).br(done);
  b.at(some).br(body);
  b.at(body);
  const Value i = b.phi(Type::i64);
  b.store(address, b.add(b.load(Type::i32, address), b.trunc(Type::i32, i)));
  const Value next = b.add(i, step);
  b.incoming(i, some, first);
  b.incoming(i, again, next);
  b.cond_br(b.icmp(Icmp::slt, next, n), again, over);
  b.at(again).br(body);
  b.at(over).br(done);
  b.at(done);
  b.ret();
  for (const Specialisation& variant : variants({kThreads, 1, 1})) {
    CAPTURE(name(variant));
    const auto code = compile_ir(b.module(), variant);
    for (const std::int64_t stride : {1, 7, 31, 32, 128, 1000})
      for (const std::int64_t count : {0, 1, 31, 32, 33, 127, 128, 129, 500, 1024}) {
        device.clear();
        auto memory = device.allocate<std::uint32_t>(kThreads);
        REQUIRE(
            !device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data()).add(count).add(stride)));
        for (std::uint32_t t = 0; t < kThreads; ++t) {
          std::uint32_t expected = 0;
          for (std::int64_t at = t; at < count; at += stride) expected += static_cast<std::uint32_t>(at);
          REQUIRE(memory[t] == expected);
        }
      }
  }
}

}  // namespace
}  // namespace quern::cpu::test
