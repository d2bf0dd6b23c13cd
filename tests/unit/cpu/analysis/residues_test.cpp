// SPDX-License-Identifier: Apache-2.0
// Known low bits of addresses.
#include "testing.hpp"

using namespace quern::cpu;
using analysis::Residue;
using test::analysed;
using test::block_of;
using test::IrBuilder;

namespace {

Residue residue_of(const IrBuilder& b, ir::Value value) { return analysed(b, block_of(64)).residues[value]; }

}  // namespace

TEST_CASE("an element's address is as aligned as the parameter that it counts from") {
  IrBuilder b;
  b.param(ir::Type::i64);
  const auto x = b.param(ir::Type::i64);
  const auto i = b.sext(ir::Type::i64, b.global_index());
  const auto word = b.add(x, b.shl(i, 2));
  const auto shifted = b.add(word, b.i64(6));
  const auto far = b.add(x, b.mul(i, b.i64(48)));
  b.ret();
  CHECK(residue_of(b, word) == Residue{4, 0, 8});
  CHECK(residue_of(b, shifted) == Residue{4, 2, 8});
  CHECK(residue_of(b, far) == Residue{16, 0, 8});
}

TEST_CASE("the sum of two parameters, or of a parameter and any number, says nothing") {
  IrBuilder b;
  const auto x = b.param(ir::Type::i64);
  const auto y = b.param(ir::Type::i64);
  const auto loaded = b.load(ir::Type::i64, x);
  const auto both = b.add(x, y);
  const auto any = b.add(x, loaded);
  const auto twice = b.mul(x, b.i64(2));
  b.ret();
  CHECK(residue_of(b, both) == Residue{});
  CHECK(residue_of(b, any) == Residue{});
  CHECK(residue_of(b, twice) == Residue{2, 0, ir::kNone});
}

TEST_CASE("a pointer that advances in a loop keeps what its steps have in common") {
  IrBuilder b;
  const auto x = b.param(ir::Type::i64);
  const auto n = b.param(ir::Type::i64);
  const auto loop = b.block();
  const auto end = b.block();
  b.br(loop);
  b.at(loop);
  const auto pointer = b.phi(ir::Type::i64, {{0, x}});
  const auto next = b.add(pointer, b.i64(12));
  b.incoming(pointer, loop, next);
  b.cond_br(b.icmp(ir::Icmp::ult, next, n), loop, end);
  b.at(end).ret();
  CHECK(residue_of(b, pointer) == Residue{4, 0, 0});
}

TEST_CASE("bits that are set or cleared are known") {
  IrBuilder b;
  const auto x = b.param(ir::Type::i64);
  const auto loaded = b.load(ir::Type::i64, x);
  const auto down = b.op(ir::Op::and_, ir::Type::i64, {loaded, b.i64(~std::int64_t{7})});
  const auto odd = b.op(ir::Op::or_, ir::Type::i64, {down, b.i64(3)});
  const auto choice = b.op(ir::Op::select, ir::Type::i64, {b.icmp(ir::Icmp::ult, loaded, x), down, odd});
  b.ret();
  CHECK(residue_of(b, down) == Residue{8, 0, ir::kNone});
  CHECK(residue_of(b, odd) == Residue{8, 3, ir::kNone});
  CHECK(residue_of(b, choice) == Residue{});
}
