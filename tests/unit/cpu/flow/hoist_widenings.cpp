// SPDX-License-Identifier: Apache-2.0
// Indices that are widened in the side of a branch at which the warps of a gang disagree.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cpu/compiler/passes.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Type;
using ir::Value;

enum class Case {
  signed_index,
  two_indices,
  unsigned_index,
  long_chain,  ///< more operations than warps that do not take the side should compute
  on_data      ///< the branch depends on the data
};

constexpr std::uint32_t kThreads = 256, kRounds = 3;

/// In each round, warp 3 widens the number `base` + tid.x + round, and outputs its high word plus its low one
/// times 5. The other warps output their numbers.
ir::Module widen(Case which) {
  IrBuilder b;
  const Value out = b.param(Type::i64), base = b.param(Type::i32), data = b.param(Type::i64);
  const auto before = b.here(), loop = b.block(), some = b.block(), none = b.block(), join = b.block(),
             end = b.block();
  const Value x = b.tid(0), y = b.tid(1), own = b.add(b.shl(y, 5), x);
  const Value chosen =
      which == Case::on_data ? b.load(Type::i32, b.add(data, b.shl(b.zext(Type::i64, own), 2))) : y;
  const Value takes = b.icmp(Icmp::eq, chosen, b.i32(3));
  b.br(loop);
  b.at(loop);
  const Value round = b.phi(Type::i32, {{before, b.i32(0)}});
  b.barrier();
  b.cond_br(takes, some, none);
  b.at(some);
  Value index = b.add(b.add(x, base), round);
  if (which == Case::long_chain) {
    for (const std::uint32_t step : {3u, 5u, 9u}) index = b.add(b.sub(index, base), b.add(base, b.i32(step)));
    index = b.sub(index, b.i32(17));
  }
  const auto widened = [&](Value narrow) {
    const Value wide = which == Case::unsigned_index ? b.zext(Type::i64, narrow) : b.sext(Type::i64, narrow);
    return b.add(b.trunc(Type::i32, b.lshr(wide, 32)), b.mul(b.trunc(Type::i32, wide), b.i32(5)));
  };
  Value result = widened(index);
  if (which == Case::two_indices) result = b.add(result, widened(b.sub(index, b.i32(40))));
  b.br(join);
  b.at(none).br(join);
  b.at(join);
  const Value given = b.phi(Type::i32, {{some, result}, {none, own}});
  const Value place = b.add(b.mul(round, b.i32(kThreads)), own);
  b.store(b.add(out, b.shl(b.zext(Type::i64, place), 2)), given);
  const Value next = b.add(round, b.i32(1));
  b.incoming(round, join, next);
  b.cond_br(b.icmp(Icmp::slt, next, b.i32(kRounds)), loop, end);
  b.at(end).ret();
  return b.module();
}

std::uint32_t expected(Case which, std::uint32_t index) {
  const auto of = [&](std::uint32_t narrow) {
    const bool negative = which != Case::unsigned_index && narrow >> 31 != 0;
    return (negative ? 0xffffffff : 0) + narrow * 5;
  };
  return which == Case::two_indices ? of(index) + of(index - 40) : of(index);
}

constexpr Case kAll[] = {Case::signed_index, Case::two_indices, Case::unsigned_index, Case::long_chain,
                         Case::on_data};

TEST_CASE("a gang continues behind a side in which an index is widened") {
  for (const Case which : kAll) {
    CAPTURE(static_cast<int>(which));
    Specialisation specialisation;
    specialisation.block = {32, 8, 1};
    Compilation compilation(widen(which), specialisation);
    REQUIRE(run_passes(compilation, Form::checked, Form::cut));
    const cuts::Plan& plan = compilation.plans[0];
    CHECK(plan.gang.width == (which == Case::on_data ? 1 : 8));
    const auto regions = std::ranges::count_if(
        plan.serial, [](const cuts::SerialRegion& region) { return region.join != ir::kNone; });
    CHECK(regions == (which == Case::signed_index || which == Case::two_indices ? 1 : 0));
  }
}

/// True if a path from `block` to the next join widens a number.
bool widens_up_to_join(const ir::Function& function, ir::BlockId block) {
  for (; function.blocks[block].preds.size() == 1; block = function.blocks[block].succs[0])
    if (std::ranges::any_of(function.blocks[block].insts,
                            [&](Value value) { return function[value].op == ir::Op::sext; }))
      return true;
  return false;
}

TEST_CASE("without a gang, only warps that take the side widen its index") {
  for (const bool has_gang : {false, true}) {
    Specialisation specialisation;
    specialisation.block = {32, 8, 1};
    specialisation.gang = has_gang ? 0 : 1;
    Compilation compilation(widen(Case::signed_index), specialisation);
    REQUIRE(run_passes(compilation, Form::checked, Form::cut));
    const ir::Function& function = *compilation.plans[0].function;
    const auto parts = [&](const ir::Block& block) {
      const ir::Inst& end = function[block.insts.back()];
      return end.op == ir::Op::cond_br && function[end.args[0]].attr.icmp == Icmp::eq;
    };
    const auto branch = std::ranges::find_if(function.blocks, parts);
    REQUIRE(branch != function.blocks.end());
    CHECK(widens_up_to_join(function, branch->succs[0]) == !has_gang);
    CHECK(!widens_up_to_join(function, branch->succs[1]));
  }
}

TEST_CASE("an index that wraps between lanes is widened as it is") {
  TestDevice device;
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const Case which : kAll) {
    CAPTURE(static_cast<int>(which));
    const ir::Module module = widen(which);
    for (const Specialisation& variant : variants({32, 8, 1})) {
      CAPTURE(name(variant));
      const auto code = compile_ir(module, variant);
      for (const std::uint32_t base : {0u, 20u, kMost - 40, kMost - 32, kMost - 10, kMost, 0u - 12}) {
        CAPTURE(base);
        device.clear();
        auto out = device.allocate<std::uint32_t>(kRounds * kThreads);
        auto data = device.allocate<std::uint32_t>(kThreads);
        for (std::uint32_t i = 0; i < kThreads; ++i) data[i] = i / 32;
        REQUIRE(
            !device.launch(*code, variant, {1, 1, 1}, Params().add(out.data()).add(base).add(data.data())));
        for (std::uint32_t i = 0; i < kRounds * kThreads; ++i) {
          CAPTURE(i);
          const std::uint32_t own = i % kThreads, round = i / kThreads;
          REQUIRE(out[i] == (own / 32 == 3 ? expected(which, base + own % 32 + round) : own));
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::cpu::test
