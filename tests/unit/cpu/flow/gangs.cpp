// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "cpu/cuts/gang_plan.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using cuts::choose_gang;
using cuts::GangPlan;
using ir::Icmp;
using ir::Type;
using ir::Value;

Specialisation of_block(const Extents& block, Isa isa = Isa::avx512) {
  Specialisation specialisation;
  specialisation.block = block;
  specialisation.isa = isa;
  return specialisation;
}

GangPlan gang_of(IrBuilder& b, const Specialisation& specialisation, bool barriers) {
  const ir::Module module = b.module();
  const auto facts =
      analysis::analyse(module, module.functions[0], specialisation, analysis::Assumption::optimistic);
  REQUIRE(facts.has_value());
  return choose_gang(module.functions[0], *facts, specialisation, barriers);
}

/// out[tid] = in[tid]
Value copy_one(IrBuilder& b, Value in, Value out) {
  const Value offset = b.shl(b.zext(Type::i64, b.tid()), 2);
  const Value loaded = b.load(Type::i32, b.add(in, offset));
  b.store(b.add(out, offset), loaded);
  return loaded;
}

TEST_CASE("warps with barriers run in lockstep, warps of a kernel without loops by themselves") {
  IrBuilder b;
  copy_one(b, b.param(Type::i64), b.param(Type::i64));
  b.ret();
  CHECK(gang_of(b, of_block({256, 1, 1}), true).width == 8);
  CHECK(gang_of(b, of_block({96, 1, 1}), true).width == 3);
  CHECK(gang_of(b, of_block({32, 1, 1}), true).width == 1);
  CHECK(gang_of(b, of_block({256, 1, 1}), false).width == 1);
}

TEST_CASE("fewer warps run in lockstep where a loop keeps more than the registers contain") {
  IrBuilder b;
  const Value in = b.param(Type::i64), out = b.param(Type::i64), count = b.param(Type::i32);
  const auto before = b.here(), loop = b.block(), end = b.block();
  b.br(loop);
  b.at(loop);
  const Value round = b.phi(Type::i32), kept = b.phi(Type::i32);
  const Value sum = b.add(kept, copy_one(b, in, out)), next = b.add(round, b.i32(1));
  b.incoming(round, before, b.i32(0));
  b.incoming(round, loop, next);
  b.incoming(kept, before, b.i32(0));
  b.incoming(kept, loop, sum);
  b.cond_br(b.icmp(Icmp::slt, next, count), loop, end);
  b.at(end);
  b.store(out, b.phi(Type::i32, {{loop, sum}}));
  b.ret();
  const auto width = [&](std::uint32_t threads, Isa isa) {
    return gang_of(b, of_block({threads, 1, 1}, isa), true).width;
  };
  CHECK(width(1024, Isa::avx512) == 8);
  CHECK(width(1024, Isa::avx2) == 2);
  CHECK(width(1024, Isa::baseline) == 1);
  // A gang that is the whole block may keep four times as much: eight warps keep 1 KiB.
  CHECK(width(256, Isa::avx512) == 8);
  CHECK(width(256, Isa::avx2) == 8);
  CHECK(width(256, Isa::baseline) == 1);
}

TEST_CASE("a block with barriers is one gang whatever it keeps outside of loops, unless it splits for sure") {
  for (const bool splits : {false, true}) {
    IrBuilder b;
    const Value in = b.param(Type::i64), out = b.param(Type::i64);
    const Value first = copy_one(b, in, out), second = copy_one(b, out, in);
    const auto some = b.block(), join = b.block();
    b.cond_br(b.icmp(Icmp::slt, first, second), some, join);
    b.at(some);
    if (splits) b.barrier();
    b.br(join);
    b.at(join);
    b.store(out, b.add(first, second));
    b.ret();
    CHECK(gang_of(b, of_block({256, 1, 1}, Isa::avx2), true).width == (splits ? 1 : 8));
    CHECK(gang_of(b, of_block({256, 1, 1}, Isa::avx2), false).width == 1);
    CHECK(gang_of(b, of_block({512, 1, 1}, Isa::avx2), true).width == 1);  // 16 warps are no gang
  }
}

TEST_CASE("what warps share is what depends neither on the warp nor on memory of its own") {
  IrBuilder b;
  const Value in = b.param(Type::i64);
  const Value x = b.tid(0), y = b.tid(1), lane = b.special(ir::Special::laneid);
  const Value warp = b.special(ir::Special::warpid);
  const Value from_x = b.load(Type::i32, b.add(in, b.shl(b.zext(Type::i64, x), 2)));
  const Value from_y = b.load(Type::i32, b.add(in, b.shl(b.zext(Type::i64, y), 2)));
  ir::Attributes local;
  local.space = ir::Space::local;
  const Value own = b.op(ir::Op::load, Type::i32, {b.op(ir::Op::local_address, Type::i64, {})}, 0, local);
  b.ret();
  const auto shared = [&](const Extents& block) { return gang_of(b, of_block(block), true).shared; };
  const std::vector<bool> rows = shared({16, 16, 1});
  CHECK(rows[x]);
  CHECK(rows[lane]);
  CHECK(rows[from_x]);
  CHECK(!rows[y]);
  CHECK(!rows[from_y]);
  CHECK(!rows[warp]);
  CHECK(!rows[own]);
  const std::vector<bool> line = shared({256, 1, 1});
  CHECK(!line[x]);
  CHECK(!line[from_x]);
  CHECK(line[y]);
  CHECK(!shared({24, 8, 1})[x]);
}

TEST_CASE("loops that end by what the data says are left to each warp") {
  for (const bool barriers : {false, true})
    for (const bool by_data : {false, true}) {
      IrBuilder b;
      const Value in = b.param(Type::i64), out = b.param(Type::i64), limit = b.param(Type::i32);
      const auto loop = b.block(), end = b.block();
      b.br(loop);
      b.at(loop);
      const Value loaded = copy_one(b, in, out);
      b.cond_br(b.icmp(Icmp::slt, by_data ? loaded : b.tid(), limit), loop, end);
      b.at(end).ret();
      CHECK(gang_of(b, of_block({256, 1, 1}), barriers).width == (by_data ? 1 : 8));
    }
}

TEST_CASE("warps of a block with barriers run in lockstep around a branch on data, if they meet behind it") {
  for (const bool inner_loop : {false, true}) {
    IrBuilder b;
    const Value in = b.param(Type::i64), out = b.param(Type::i64), count = b.param(Type::i32);
    const auto before = b.here(), loop = b.block(), some = b.block(), join = b.block(), end = b.block();
    b.br(loop);
    b.at(loop);
    const Value round = b.phi(Type::i32, {{before, b.i32(0)}});
    const Value loaded = copy_one(b, in, out);
    b.cond_br(b.icmp(Icmp::slt, loaded, count), some, join);
    b.at(some);
    b.store(out, loaded);
    if (inner_loop)
      b.cond_br(b.icmp(Icmp::slt, b.load(Type::i32, in), b.load(Type::i32, out)), some, join);
    else
      b.br(join);
    b.at(join);
    const Value next = b.add(round, b.i32(1));
    b.incoming(round, join, next);
    b.cond_br(b.icmp(Icmp::slt, next, count), loop, end);
    b.at(end).ret();
    const auto width = [&](bool barriers) { return gang_of(b, of_block({1024, 1, 1}), barriers).width; };
    CHECK(width(true) == (inner_loop ? 1 : 8));
    CHECK(width(false) == 1);
  }
}

TEST_CASE("a loop whose iterations differ between lanes is left to each warp if the barriers are behind it") {
  IrBuilder b;
  const Value in = b.param(Type::i64), out = b.param(Type::i64), count = b.param(Type::i32);
  const auto before = b.here(), loop = b.block(), end = b.block();
  // NVRTC unrolls loops over the data in this way: the first one runs (count - tid) & 3 times.
  const Value rest = b.and_(b.sub(count, b.tid()), b.i32(3));
  b.br(loop);
  b.at(loop);
  const Value left = b.phi(Type::i32, {{before, rest}});
  copy_one(b, in, out);
  const Value next = b.sub(left, b.i32(1));
  b.incoming(left, loop, next);
  b.cond_br(b.icmp(Icmp::sgt, next, b.i32(0)), loop, end);
  b.at(end);
  b.barrier();
  b.store(out, b.i32(1));
  b.ret();
  CHECK(gang_of(b, of_block({1024, 1, 1}), true).width == 1);
}

}  // namespace
}  // namespace quern::cpu::test
