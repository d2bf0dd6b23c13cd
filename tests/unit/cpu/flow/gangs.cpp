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

TEST_CASE("fewer warps run in lockstep where registers are few") {
  IrBuilder b;
  copy_one(b, b.param(Type::i64), b.param(Type::i64));
  b.ret();
  CHECK(gang_of(b, of_block({256, 1, 1}, Isa::avx2), true).width == 2);
  CHECK(gang_of(b, of_block({256, 1, 1}, Isa::baseline), true).width == 1);
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
  for (const bool by_data : {false, true}) {
    IrBuilder b;
    const Value in = b.param(Type::i64), out = b.param(Type::i64), limit = b.param(Type::i32);
    const auto loop = b.block(), end = b.block();
    b.br(loop);
    b.at(loop);
    const Value loaded = copy_one(b, in, out);
    b.cond_br(b.icmp(Icmp::slt, by_data ? loaded : b.tid(), limit), loop, end);
    b.at(end).ret();
    CHECK(gang_of(b, of_block({256, 1, 1}), false).width == (by_data ? 1 : 8));
  }
}

}  // namespace
}  // namespace quern::cpu::test
