// SPDX-License-Identifier: Apache-2.0
// Precision: values that must stay uniform although lanes diverge somewhere. (The random kernels check that
// no value is uniform by mistake.)
#include "testing.hpp"

using namespace quern::cpu;
using analysis::LanePatternKind;
using test::analysed;
using test::block_of;
using test::IrBuilder;

TEST_CASE("a join of a divergent branch makes its phis varying, but for one value on every edge") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto one = b.i32(1), two = b.i32(2), other_one = b.i32(1);
  const auto tid = b.tid();
  const auto then = b.block(), otherwise = b.block(), join = b.block();
  b.cond_br(b.icmp(ir::Icmp::slt, tid, n), then, otherwise);
  b.at(then).br(join);
  b.at(otherwise).br(join);
  b.at(join);
  const auto differs = b.phi(ir::Type::i32, {{then, one}, {otherwise, two}});
  const auto same_value = b.phi(ir::Type::i32, {{then, n}, {otherwise, n}});
  const auto same_number = b.phi(ir::Type::i32, {{then, one}, {otherwise, other_one}});
  const auto same_lanes = b.phi(ir::Type::i32, {{then, tid}, {otherwise, tid}});
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(64));
  CHECK(a.patterns[differs].kind == LanePatternKind::varying);
  CHECK(a.patterns[differs].min == 1);
  CHECK(a.patterns[differs].max == 2);
  CHECK(a.patterns[same_value].kind == LanePatternKind::uniform);
  CHECK(a.patterns[same_number].constant == 1u);
  CHECK(test::is_strided(a.patterns[same_lanes], 1));
}

TEST_CASE("uniform branches and loops inside a divergent region, and after it, keep uniform phis") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto out = b.param(ir::Type::i64);
  const auto zero = b.i32(0), five = b.i32(5), six = b.i32(6);
  const auto few = b.icmp(ir::Icmp::slt, n, five);
  const auto then = b.block(), a1 = b.block(), a2 = b.block(), inner = b.block(), loop = b.block(),
             left = b.block(), join = b.block();
  const auto c1 = b.block(), c2 = b.block(), end = b.block();
  b.cond_br(b.icmp(ir::Icmp::slt, b.tid(), n), then, join);
  b.at(then).cond_br(few, a1, a2);
  b.at(a1).br(inner);
  b.at(a2).br(inner);
  b.at(inner);
  const auto chosen = b.phi(ir::Type::i32, {{a1, five}, {a2, six}});
  b.br(loop);
  b.at(loop);
  const auto i = b.phi(ir::Type::i32);
  const auto next = b.add(i, b.i32(1));
  b.cond_br(b.icmp(ir::Icmp::slt, next, chosen), loop, left);
  b.at(left);
  const auto last = b.phi(ir::Type::i32, {{loop, next}});
  b.br(join);
  b.at(join).cond_br(few, c1, c2);
  b.at(c1).br(end);
  b.at(c2).br(end);
  b.at(end);
  const auto later = b.phi(ir::Type::i32, {{c1, five}, {c2, six}});
  b.store(out, later);
  b.ret();
  b.incoming(i, inner, zero);
  b.incoming(i, loop, next);
  const analysis::Analysis a = analysed(b, block_of(64));
  for (const ir::Value value : {chosen, i, last, later})
    CHECK(a.patterns[value].kind == LanePatternKind::uniform);
  CHECK(!a.loops[0].divergent);
  CHECK(a.divergent_control[loop]);
  CHECK(!a.divergent_control[end]);
  CHECK(!a.divergent_control[c1]);
}

TEST_CASE("a uniform loop around a divergent one stays uniform") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto zero = b.i32(0), one = b.i32(1);
  const auto tid = b.tid();
  const auto outer = b.block(), inner = b.block(), left = b.block(), after = b.block();
  b.br(outer);
  b.at(outer);
  const auto i = b.phi(ir::Type::i32);
  b.br(inner);
  b.at(inner);
  const auto j = b.phi(ir::Type::i32);
  const auto j_next = b.add(j, one);
  b.cond_br(b.icmp(ir::Icmp::slt, j_next, tid), inner, left);
  b.at(left);
  b.barrier();
  const auto i_next = b.add(i, one);
  b.cond_br(b.icmp(ir::Icmp::slt, i_next, n), outer, after);
  b.at(after);
  const auto last = b.phi(ir::Type::i32, {{left, i_next}});
  b.ret();
  b.incoming(i, 0, zero);
  b.incoming(i, left, i_next);
  b.incoming(j, outer, zero);
  b.incoming(j, inner, j_next);
  const analysis::Analysis a = analysed(b, block_of(64));
  CHECK(!a.loops[0].divergent);
  CHECK(a.loops[1].divergent);
  CHECK(a.patterns[last].kind == LanePatternKind::uniform);
  CHECK(a.divergent_control[inner]);
  CHECK(!a.divergent_control[outer]);
  CHECK(!a.divergent_control[left]);
  CHECK(test::refusal(b, block_of(64)).empty());
}

TEST_CASE("what a divergent loop computes anew in the same way each time leaves it as it is") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto zero = b.i32(0), one = b.i32(1);
  const auto tid = b.tid();
  const auto loop = b.block(), after = b.block();
  b.br(loop);
  b.at(loop);
  const auto i = b.phi(ir::Type::i32);
  const auto next = b.add(i, one);
  const auto steady = b.mul(n, n);
  const auto vote = b.vote(ir::VoteMode::ballot, b.icmp(ir::Icmp::eq, tid, next), b.i32(-1));
  b.cond_br(b.icmp(ir::Icmp::slt, next, tid), loop, after);
  b.at(after);
  const auto counted = b.phi(ir::Type::i32, {{loop, next}});
  const auto invariant = b.phi(ir::Type::i32, {{loop, steady}});
  const auto voted = b.phi(ir::Type::i32, {{loop, vote}});
  b.ret();
  b.incoming(i, 0, zero);
  b.incoming(i, loop, next);
  const analysis::Analysis a = analysed(b, block_of(64));
  CHECK(a.patterns[vote].kind == LanePatternKind::uniform);
  CHECK(a.patterns[counted].kind == LanePatternKind::varying);
  CHECK(a.patterns[invariant].kind == LanePatternKind::uniform);
  CHECK(a.patterns[voted].kind == LanePatternKind::varying);
}

TEST_CASE("lanes that reach the loop's head over several ways back differ in its phis") {
  IrBuilder b;
  const auto zero = b.i32(0), one = b.i32(1), two = b.i32(2);
  const auto odd = b.icmp(ir::Icmp::eq, b.and_(b.tid(), one), one);
  const auto loop = b.block(), more = b.block(), back1 = b.block(), back2 = b.block(), after = b.block();
  b.br(loop);
  b.at(loop);
  const auto i = b.phi(ir::Type::i32);
  const auto k = b.phi(ir::Type::i32);
  const auto k_next = b.add(k, one);
  b.cond_br(b.icmp(ir::Icmp::slt, k, b.i32(9)), more, after);
  b.at(more).cond_br(odd, back1, back2);
  b.at(back1).br(loop);
  b.at(back2).br(loop);
  b.at(after).ret();
  for (const auto& [phi, first, second] : {std::array<ir::Value, 3>{i, one, two}, {k, k_next, k_next}}) {
    b.incoming(phi, 0, zero);
    b.incoming(phi, back1, first);
    b.incoming(phi, back2, second);
  }
  const analysis::Analysis a = analysed(b, block_of(64));
  CHECK(a.patterns[i].kind == LanePatternKind::varying);
  CHECK(a.divergent_branch[more]);
}

TEST_CASE("a value that leaves a divergent loop without a phi is an error, not a wrong pattern") {
  IrBuilder b;
  const auto tid = b.tid();
  const auto zero = b.i32(0);
  const auto loop = b.block(), after = b.block();
  b.br(loop);
  b.at(loop);
  const auto i = b.phi(ir::Type::i32);
  const auto next = b.add(i, b.i32(1));
  b.cond_br(b.icmp(ir::Icmp::slt, next, tid), loop, after);
  b.at(after).add(next, next);
  b.ret();
  b.incoming(i, 0, zero);
  b.incoming(i, loop, next);
  const ir::Module module = b.module();
  const auto result =
      analysis::analyse(module, module.functions[0], block_of(64), analysis::Assumption::safe);
  REQUIRE(!result.has_value());
  CHECK(result.errors()[0].code == "internal");
}
