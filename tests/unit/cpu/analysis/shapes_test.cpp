// SPDX-License-Identifier: Apache-2.0
// Shapes of the address computations that kernels are made of.
#include <doctest/doctest.h>

#include "cpu/analysis/analysis.hpp"
#include "ir_builder.hpp"

using namespace quern::cpu;
using analysis::Assumption;
using analysis::Shape;
using analysis::ShapeKind;
using test::IrBuilder;

namespace {

Specialisation block_of(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) {
  Specialisation specialisation;
  specialisation.block = {x, y, z};
  return specialisation;
}

analysis::Analysis analysed(const IrBuilder& b, const Specialisation& specialisation,
                            Assumption assumption = Assumption::safe) {
  const ir::Module module = b.module();
  quern::Expected<analysis::Analysis> result =
      analysis::analyse(module, module.functions[0], specialisation, assumption);
  REQUIRE(result.has_value());
  return *std::move(result);
}

/// Affine with the only term step * lane.
bool is_strided(const Shape& shape, std::int64_t step) {
  if (shape.kind != ShapeKind::affine || shape.terms.size() != 1 || shape.terms[0].coefficient != ir::kNone)
    return false;
  for (std::int64_t lane = 0; lane < 32; ++lane)
    if (shape.terms[0].pattern[static_cast<std::size_t>(lane)] != step * lane) return false;
  return true;
}

}  // namespace

TEST_CASE("the address of x[i] in saxpy is a base plus four bytes a lane, without assumptions") {
  for (const std::uint32_t threads : {256u, 96u, 100u, 1000u, 33u}) {
    IrBuilder b;
    const auto x = b.param(ir::Type::i64);
    const auto n = b.param(ir::Type::i32);
    const auto i = b.global_index();
    const auto body = b.block();
    const auto end = b.block();
    b.cond_br(b.icmp(ir::Icmp::slt, i, n), body, end);
    b.at(body);
    const auto wide = b.sext(ir::Type::i64, i);
    const auto address = b.add(x, b.shl(wide, 2));
    const auto value = b.load(ir::Type::f32, address);
    b.store(address, b.fadd(value, value));
    b.br(end);
    b.at(end).ret();
    const analysis::Analysis a = analysed(b, block_of(threads));
    CHECK(is_strided(a.shapes[i], 1));
    CHECK(is_strided(a.shapes[wide], 1));
    CHECK(is_strided(a.shapes[address], 4));
    CHECK(!a.assumed[wide]);
    CHECK(a.shapes[value].kind == ShapeKind::varying);
    CHECK(a.divergent_branch[0]);
    CHECK(a.divergent_control[body]);
    CHECK(!a.divergent_control[end]);
    CHECK(a.shapes[n].kind == ShapeKind::uniform);
  }
}

TEST_CASE("rows of a 16x16 tile: two per warp, and row * N + k has a runtime coefficient") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto k = b.param(ir::Type::i32);
  const auto matrix = b.param(ir::Type::i64);
  const auto tx = b.tid(0);
  const auto ty = b.tid(1);
  const auto column = b.global_index(0);
  const auto row = b.global_index(1);
  const auto index = b.add(b.mul(row, n), k);
  const auto wide = b.sext(ir::Type::i64, index);
  const auto address = b.add(matrix, b.mul(wide, b.i64(4)));
  b.ret();
  SUBCASE("safe: an offset from the base") {
    const analysis::Analysis a = analysed(b, block_of(16, 16));
    CHECK(a.shapes[tx].constant == 0u);
    CHECK(a.shapes[tx].terms[0].pattern[17] == 1);
    CHECK(a.shapes[ty].terms[0].pattern[15] == 0);
    CHECK(a.shapes[ty].terms[0].pattern[16] == 1);
    CHECK(a.shapes[ty].base_align == 2);
    CHECK(a.shapes[column].base_align == 16);
    CHECK(a.shapes[column].exact);
    CHECK(a.shapes[row].exact);
    REQUIRE(a.shapes[index].kind == ShapeKind::affine);
    CHECK(a.shapes[index].terms[0].coefficient == n);
    CHECK(a.shapes[wide].kind == ShapeKind::offset32);
    CHECK(a.shapes[wide].index == index);
    REQUIRE(a.shapes[address].kind == ShapeKind::offset32);
    CHECK(a.shapes[address].scale == 4);
    CHECK(!a.assumed[wide]);
  }
  SUBCASE("optimistic: affine, and marked") {
    const analysis::Analysis a = analysed(b, block_of(16, 16), Assumption::optimistic);
    REQUIRE(a.shapes[address].kind == ShapeKind::affine);
    CHECK(a.shapes[address].terms[0].coefficient == n);
    CHECK(a.shapes[address].terms[0].sign_extend);
    CHECK(a.shapes[address].terms[0].pattern[31] == 4);
    CHECK(a.assumed[wide]);
    CHECK(!a.assumed[address]);
  }
}

TEST_CASE("a divergent loop keeps its counter uniform inside, and varying after it") {
  IrBuilder b;  // mandelbrot: while (z < 4 && i < 1000) ...
  const auto out = b.param(ir::Type::i64);
  const auto i0 = b.global_index();
  const auto zero = b.i32(0);
  const auto limit = b.i32(1000);
  const auto one = b.i32(1);
  const auto c = b.op(ir::Op::s_to_f, ir::Type::f32, {i0});
  const auto head = b.block(), body = b.block(), latch = b.block(), after = b.block();
  b.br(head);
  b.at(head);
  const auto i = b.phi(ir::Type::i32);
  const auto z = b.phi(ir::Type::f32);
  b.cond_br(b.icmp(ir::Icmp::slt, i, limit), body, after);
  b.at(body);
  b.cond_br(b.fcmp(ir::Fcmp::olt, z, b.constant(ir::Type::f32, 0x40800000)), latch, after);
  b.at(latch);
  const auto next = b.add(i, one);
  const auto z_next = b.ffma(z, z, c);
  b.br(head);
  b.at(after);
  const auto result = b.phi(ir::Type::i32, {{head, i}, {body, i}});
  b.store(b.add(out, b.shl(b.sext(ir::Type::i64, i0), 2)), result);
  b.ret();
  b.incoming(i, 0, zero);
  b.incoming(i, latch, next);
  b.incoming(z, 0, c);
  b.incoming(z, latch, z_next);
  const analysis::Analysis a = analysed(b, block_of(256));
  REQUIRE(a.loops.size() == 1);
  CHECK(a.loops[0].divergent);
  CHECK(a.shapes[i].kind == ShapeKind::uniform);
  CHECK(a.shapes[i].min == 0);
  CHECK(a.shapes[i].max == 1000);
  CHECK(a.shapes[z].kind == ShapeKind::varying);
  CHECK(a.shapes[result].kind == ShapeKind::varying);
  CHECK(!a.divergent_branch[head]);
  CHECK(a.divergent_branch[body]);
  CHECK(a.divergent_control[head]);
  CHECK(!a.divergent_control[after]);
  CHECK(a.order == std::vector<ir::BlockId>{0, head, body, latch, after});
}

TEST_CASE("a shuffle reduction: lane and warp of a thread are known patterns") {
  IrBuilder b;
  const auto tid = b.tid();
  const auto lane = b.and_(tid, b.i32(31));
  const auto warp = b.lshr(tid, 5);
  const auto first = b.icmp(ir::Icmp::eq, lane, b.i32(0));
  const auto low = b.or_(b.shl(tid, 2), b.i32(3));
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(256));
  CHECK(is_strided(a.shapes[lane], 1));
  CHECK(a.shapes[lane].constant == 0u);
  CHECK(a.shapes[warp].kind == ShapeKind::uniform);
  CHECK(a.shapes[warp].max == 7);
  CHECK(a.shapes[first].kind == ShapeKind::varying);
  CHECK(is_strided(a.shapes[low], 4));
}
