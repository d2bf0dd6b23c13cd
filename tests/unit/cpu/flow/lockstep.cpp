// SPDX-License-Identifier: Apache-2.0
// Gangs whose warps disagree at a branch, run its paths one after another and continue in lockstep.
#include <doctest/doctest.h>

#include <algorithm>

#include "cpu/cuts/serial_regions.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using cuts::SerialRegion;
using ir::Icmp;
using ir::Space;
using ir::Type;
using ir::Value;

constexpr std::uint32_t kThreads = 256;

Specialisation of_block(std::uint32_t threads) {
  Specialisation specialisation;
  specialisation.block = {threads, 1, 1};
  specialisation.isa = Isa::avx512;
  return specialisation;
}

std::vector<SerialRegion> regions_of(const IrBuilder& b) {
  const ir::Module module = b.module();
  const ir::Function& function = module.functions[0];
  const auto facts =
      analysis::analyse(module, function, of_block(kThreads), analysis::Assumption::optimistic);
  REQUIRE(facts.has_value());
  const cuts::GangPlan gang = cuts::choose_gang(function, *facts, of_block(kThreads), true);
  REQUIRE(gang.width == 8);
  const std::vector<std::vector<Value>> no_tests(function.blocks.size());
  return cuts::find_serial_regions(function, *facts, gang, no_tests, nullptr);
}

Value word_at(IrBuilder& b, Value base, Value index) {
  return b.add(base, b.shl(b.zext(Type::i64, index), 2));
}

TEST_CASE("a branch between two barriers has a region, a branch around a barrier has none") {
  for (const bool inside : {false, true}) {
    IrBuilder b;
    const Value out = b.param(Type::i64);
    const auto some = b.block(), join = b.block();
    b.cond_br(b.icmp(Icmp::ult, b.special(ir::Special::warpid), b.i32(3)), some, join);
    b.at(some);
    b.store(word_at(b, out, b.tid()), b.i32(1));
    if (inside) b.barrier();
    b.br(join);
    b.at(join);
    if (!inside) b.barrier();
    b.ret();
    const SerialRegion region = regions_of(b)[0];
    if (inside) {
      CHECK(region.join == ir::kNone);
      continue;
    }
    CHECK(region.join == join);
    CHECK(region.blocks == std::vector<ir::BlockId>{some});
    CHECK(region.all_lanes == std::vector<bool>{true});
  }
}

TEST_CASE("lanes are masked only where not all of a warp may take the same edge") {
  IrBuilder b;
  const Value out = b.param(Type::i64);
  const auto few = b.block(), first = b.block(), meet = b.block(), join = b.block();
  b.cond_br(b.icmp(Icmp::ult, b.tid(), b.i32(64)), few, join);  // two warps
  b.at(few).cond_br(b.icmp(Icmp::eq, b.and_(b.tid(), b.i32(31)), b.i32(0)), first, meet);
  b.at(first).store(word_at(b, out, b.tid()), b.i32(1));
  b.br(meet);
  b.at(meet).store(word_at(b, out, b.tid()), b.i32(2));
  b.br(join);
  b.at(join).ret();
  const SerialRegion region = regions_of(b)[0];
  CHECK(region.join == join);
  CHECK(region.blocks == std::vector<ir::BlockId>{few, first, meet});
  CHECK(region.all_lanes == std::vector<bool>{true, false, true});
  CHECK(!region.together);
}

TEST_CASE("a loop that the warps leave in different iterations is part of its branch's region") {
  IrBuilder b;
  const Value out = b.param(Type::i64), n = b.param(Type::i32);
  const auto loop = b.block(), latch = b.block(), end = b.block();
  const Value tid = b.tid();
  b.br(loop);
  b.at(loop);
  const Value i = b.phi(Type::i32, {{0, tid}});
  b.store(word_at(b, out, i), i);
  const Value next = b.add(i, b.i32(kThreads));
  b.cond_br(b.icmp(Icmp::slt, next, n), latch, end);
  b.at(latch).br(loop);
  b.incoming(i, latch, next);
  b.at(end).ret();
  const SerialRegion region = regions_of(b)[loop];
  CHECK(region.join == end);
  CHECK(region.blocks == std::vector<ir::BlockId>{loop, latch});
  CHECK(region.together);
}

/// Runs a kernel of two parameters, out and n, in one block of each size that divides 256 and in every
/// variant.
template <class Expected>
void check_kernel(const IrBuilder& b, std::uint32_t n, const Expected& expected) {
  TestDevice device;
  const ir::Module module = b.module();
  for (const std::uint32_t threads : {64u, 128u, kThreads, 2 * kThreads})
    for (const Specialisation& variant : variants({threads, 1, 1})) {
      CAPTURE(name(variant));
      device.clear();
      auto memory = device.allocate<std::uint32_t>(4096);
      const auto code = compile_ir(module, variant);
      REQUIRE(!device.launch(*code, variant, {2, 1, 1}, Params().add(memory.data()).add(n)));
      for (std::uint32_t block = 0; block < 2; ++block)
        for (std::uint32_t t = 0; t < threads; ++t) {
          CAPTURE(t);
          REQUIRE(memory[block * threads + t] == expected(block, t, threads));
        }
    }
}

void store_result(IrBuilder& b, Value out, Value what) {
  b.store(word_at(b, out, b.global_index()), what);
  b.ret();
}

TEST_CASE("a counter that all warps share begins anew for each warp of a gang") {
  // Each warp counts to a number of its own; the counter is the same in all warps at any time.
  IrBuilder b;
  const Value out = b.param(Type::i64), n = b.param(Type::i32);
  const auto loop = b.block(), latch = b.block(), end = b.block();
  const Value tid = b.tid(), zero = b.i32(0), limit = b.add(b.lshr(tid, 4), n);
  b.barrier();
  b.br(loop);
  b.at(loop);
  const Value counter = b.phi(Type::i32, {{0, zero}});
  const Value sum = b.phi(Type::i32, {{0, tid}});
  const Value more = b.add(sum, b.mul(counter, counter));
  const Value next = b.add(counter, b.i32(1));
  b.cond_br(b.icmp(Icmp::slt, next, limit), latch, end);
  b.at(latch).br(loop);
  b.incoming(counter, latch, next);
  b.incoming(sum, latch, more);
  b.at(end);
  const Value result = b.phi(Type::i32, {{loop, more}});
  b.barrier();
  store_result(b, out, result);
  check_kernel(b, 3, [](std::uint32_t, std::uint32_t t, std::uint32_t) {
    std::uint32_t squares = t;
    for (std::uint32_t k = 0; k < std::max(1u, t / 16 + 3); ++k) squares += k * k;
    return squares;
  });
}

TEST_CASE("both paths of a branch at which warps and lanes disagree join with the values of their lanes") {
  IrBuilder b;
  const Value out = b.param(Type::i64), n = b.param(Type::i32);
  const auto low = b.block(), high = b.block(), join = b.block();
  const Value place = b.shl(b.zext(Type::i64, b.tid()), 2);
  b.store(place, b.mul(b.tid(), b.i32(3)), Space::shared);
  b.barrier();
  b.cond_br(b.icmp(Icmp::ult, b.tid(), b.i32(40)), low, high);
  b.at(low);
  const Value loaded = b.load(Type::i32, place, Space::shared, 4 * 20);
  b.br(join);
  b.at(high);
  const Value product = b.mul(b.tid(), n);
  b.br(join);
  b.at(join);
  const Value both = b.phi(Type::i32, {{low, loaded}, {high, product}});
  b.barrier();
  b.store(place, both, Space::shared);
  b.barrier();
  store_result(b, out,
               b.load(Type::i32, b.shl(b.zext(Type::i64, b.sub(b.sub(b.ntid(), b.i32(1)), b.tid())), 2),
                      Space::shared));
  check_kernel(b, 7, [](std::uint32_t, std::uint32_t t, std::uint32_t threads) {
    const std::uint32_t other = threads - 1 - t;
    return other < 40 ? (other + 20) * 3 : other * 7;
  });
}

}  // namespace
}  // namespace quern::cpu::test
