// SPDX-License-Identifier: Apache-2.0
// Branches that lanes known at compile time take: full code runs their sides with constant masks.
#include <doctest/doctest.h>

#include <algorithm>

#include "cpu/cuts/serial_regions.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using cuts::KnownLanes;
using cuts::SerialRegion;
using ir::Icmp;
using ir::Type;
using ir::Value;

Specialisation of_block(std::uint32_t threads) {
  Specialisation specialisation;
  specialisation.block = {threads, 1, 1};
  specialisation.isa = Isa::avx2;
  return specialisation;
}

analysis::Analysis facts_of(const ir::Module& module, const Specialisation& specialisation) {
  auto facts =
      analysis::analyse(module, module.functions[0], specialisation, analysis::Assumption::optimistic);
  REQUIRE(facts.has_value());
  return std::move(*facts);
}

Value lane_of(IrBuilder& b) { return b.and_(b.tid(), b.i32(31)); }

Value word_at(IrBuilder& b, Value base, Value index) {
  return b.add(base, b.shl(b.zext(Type::i64, index), 2));
}

TEST_CASE("lanes are known where every warp that has any has the same") {
  IrBuilder b;
  const Value out = b.param(Type::i64), n = b.param(Type::i32);
  const Value data = b.icmp(Icmp::ne, b.load(Type::i32, word_at(b, out, b.tid())), b.i32(0));
  const Value of_all = b.icmp(Icmp::sgt, n, b.i32(5)), above = b.icmp(Icmp::sgt, b.global_index(), n);
  const Value first = b.icmp(Icmp::eq, b.tid(), b.i32(0));
  const Value last_lane = b.icmp(Icmp::eq, lane_of(b), b.i32(31));
  const Value half = b.icmp(Icmp::ult, lane_of(b), b.i32(16));
  const Value two_warps = b.icmp(Icmp::ult, b.tid(), b.i32(64));
  const Value one_and_a_half = b.icmp(Icmp::ult, b.tid(), b.i32(48));
  const Value first_and_data = b.and_(first, data), half_and_data = b.and_(half, data);
  const Value last_and_above = b.and_(last_lane, above), half_of_some = b.and_(half, of_all);
  const Value data_and_first = b.and_(data, first);
  const Value negated = b.xor_(last_and_above, b.i1(true));
  const Value either = b.or_(half, last_lane);
  b.ret();
  const ir::Module module = b.module();
  const Specialisation block = of_block(256);
  const analysis::Analysis facts = facts_of(module, block);
  KnownLanes known(module.functions[0], facts.patterns, block);
  CHECK(known.find(first, true) == 1);
  CHECK(known.find(first, false) == 0);  // lanes 1 to 31 of one warp, all of the others
  CHECK(known.find(last_lane, true) == 0x80000000);
  CHECK(known.find(last_lane, false) == 0x7fffffff);
  CHECK(known.find(half, true) == 0xffff);
  CHECK(known.find(two_warps, true) == 0xffffffff);
  CHECK(known.find(one_and_a_half, true) == 0);
  CHECK(known.find(data, true) == 0);
  CHECK(known.find(of_all, true) == 0xffffffff);
  CHECK(known.find(first_and_data, true) == 1);
  CHECK(known.find(data_and_first, true) == 1);
  CHECK(known.find(half_and_data, true) == 0);
  CHECK(known.find(last_and_above, true) == 0x80000000);
  CHECK(known.find(half_of_some, true) == 0xffff);
  CHECK(known.find(negated, false) == 0x80000000);
  CHECK(known.find(negated, true) == 0);
  CHECK(known.find(either, true) == 0x8000ffff);
}

/// The region of the first block's branch in full code of one warp.
SerialRegion region_of(const IrBuilder& b) {
  const ir::Module module = b.module();
  const ir::Function& function = module.functions[0];
  const Specialisation block = of_block(32);
  const analysis::Analysis facts = facts_of(module, block);
  KnownLanes known(function, facts.patterns, block);
  const std::vector<std::vector<Value>> no_tests(function.blocks.size());
  return cuts::find_serial_regions(function, facts, {}, no_tests, &known)[0];
}

TEST_CASE("full code of one warp has regions of known lanes, and none of other lanes or with loops") {
  enum class Kind { known, data, loop };
  for (const Kind kind : {Kind::known, Kind::data, Kind::loop}) {
    CAPTURE(static_cast<int>(kind));
    IrBuilder b;
    const Value out = b.param(Type::i64), n = b.param(Type::i32);
    const auto some = b.block(), none = b.block(), again = b.block(), after = b.block(), join = b.block();
    const Value place = word_at(b, out, b.tid());
    b.cond_br(kind == Kind::data ? b.icmp(Icmp::ne, b.load(Type::i32, place), b.i32(0))
                                 : b.icmp(Icmp::eq, b.tid(), b.i32(7)),
              some, none);
    b.at(some).store(place, b.i32(1));
    b.br(again);
    b.at(again).store(place, n);
    if (kind == Kind::loop)
      b.cond_br(b.icmp(Icmp::eq, b.load(Type::i32, place), b.i32(0)), again, after);
    else
      b.br(after);
    b.at(after).br(join);
    b.at(none).br(join);
    b.at(join).ret();
    const SerialRegion region = region_of(b);
    if (kind != Kind::known) {
      CHECK(region.join == ir::kNone);
      continue;
    }
    CHECK(region.join == join);
    REQUIRE(region.blocks.size() == 4);
    for (std::size_t i = 0; i < region.blocks.size(); ++i)
      CHECK(region.known_lanes[i] == (region.blocks[i] == none ? 0xffffff7f : 0x80));
  }
}

constexpr std::uint32_t kRead = 2048, kWritten = 1024;  ///< indices in the kernel's memory

/// Lanes [first, last] load and store elements that are not neighbours, if also n > 3.
void check_lanes(std::uint32_t first, std::uint32_t last, std::uint32_t n, unsigned count) {
  IrBuilder b;
  const Value out = b.param(Type::i64), limit = b.param(Type::i32);
  const auto some = b.block(), none = b.block(), join = b.block();
  const Value tid = b.tid(), lane = lane_of(b);
  const Value among = b.icmp(Icmp::ule, b.sub(lane, b.i32(first)), b.i32(last - first));
  b.barrier();
  b.cond_br(b.and_(among, b.icmp(Icmp::sgt, limit, b.i32(3))), some, none);
  b.at(some);
  const Value from = b.add(b.i32(kRead), b.and_(b.mul(tid, b.i32(5)), b.i32(63)));
  const Value loaded = b.load(Type::i32, word_at(b, out, from));
  const Value beside = count == 1 ? loaded : b.load(Type::i32, word_at(b, out, b.add(b.i32(kRead), tid)));
  const Value sum = b.add(loaded, beside);
  b.store(word_at(b, out, b.add(b.i32(kWritten), b.and_(b.mul(tid, b.i32(9)), b.i32(1023)))), sum);
  b.br(join);
  b.at(none).br(join);
  b.at(join);
  const Value result = b.phi(Type::i32, {{some, sum}, {none, tid}});
  b.barrier();
  b.store(word_at(b, out, tid), result);
  b.ret();
  TestDevice device;
  const ir::Module module = b.module();
  for (const std::uint32_t threads : {32u, 64u, 256u})
    for (const Specialisation& variant : variants({threads, 1, 1})) {
      CAPTURE(name(variant));
      CAPTURE(threads);
      device.clear();
      auto memory = device.allocate<std::uint32_t>(4096);
      std::ranges::fill(memory, 0u);
      for (std::uint32_t i = kRead; i < 4096; ++i) memory[i] = i * 7;
      const auto code = compile_ir(module, variant);
      REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data()).add(n)));
      std::vector<std::uint32_t> written(1024, 0);
      for (std::uint32_t t = 0; t < threads; ++t) {
        CAPTURE(t);
        const bool runs = n > 3 && t % 32 >= first && t % 32 <= last;
        const std::uint32_t far = (kRead + (t * 5 & 63)) * 7, near = count == 1 ? far : (kRead + t) * 7;
        REQUIRE(memory[t] == (runs ? far + near : t));
        if (runs) written[t * 9 & 1023] = far + near;
      }
      for (std::uint32_t i = 0; i < 1024; ++i) REQUIRE(memory[kWritten + i] == written[i]);
    }
}

TEST_CASE("one known lane, a few and many load and store their elements, and no others do") {
  for (const std::uint32_t n : {3u, 4u}) {
    check_lanes(0, 0, n, 1);
    check_lanes(31, 31, n, 2);
    check_lanes(5, 7, n, 2);
    check_lanes(16, 31, n, 1);
  }
}

}  // namespace
}  // namespace quern::cpu::test
