// SPDX-License-Identifier: Apache-2.0
// Checks what the analysis says about how values change from a block to the next one.
#include "cpu/analysis/block_step.hpp"

#include "testing.hpp"

using namespace quern::cpu;
using test::analysed;
using test::block_of;
using test::IrBuilder;

namespace {

std::optional<std::int64_t> step_of(const IrBuilder& b, ir::Value value) {
  const ir::Module module = b.module();
  return analysis::block_step(module.functions[0], analysed(b, block_of(64)), value);
}

}  // namespace

TEST_CASE("the address of a thread's element moves on by the elements of a block") {
  IrBuilder b;
  const auto data = b.param(ir::Type::i64);
  const auto i = b.global_index();
  const auto element = b.add(data, b.shl(b.sext(ir::Type::i64, i), 2));
  const auto record = b.add(data, b.mul(b.sext(ir::Type::i64, i), b.i64(48)));
  const auto row = b.add(data, b.mul(b.sext(ir::Type::i64, b.lshr(i, 4)), b.i64(256)));
  b.ret();
  CHECK(step_of(b, data) == 0);
  CHECK(step_of(b, element) == 64 * 4);
  CHECK(step_of(b, record) == 64 * 48);
  CHECK(step_of(b, row) == 4 * 256);
}

TEST_CASE("blocks whose step is not a constant have none") {
  IrBuilder b;
  const auto data = b.param(ir::Type::i64);
  const auto pitch = b.param(ir::Type::i32);
  const auto block = b.special(ir::Special::ctaid_x);
  const auto by_pitch = b.mul(block, pitch);
  const auto halved = b.lshr(block, 1);  // the same in two blocks
  const auto loaded = b.load(ir::Type::i32, data);
  const auto squared = b.mul(block, block);
  const auto same = b.mul(pitch, pitch);
  b.ret();
  CHECK(step_of(b, by_pitch) == std::nullopt);
  CHECK(step_of(b, halved) == std::nullopt);
  CHECK(step_of(b, loaded) == std::nullopt);
  CHECK(step_of(b, squared) == std::nullopt);
  CHECK(step_of(b, same) == 0);
}

TEST_CASE("values that follow from parameters and the thread's place are the same in all blocks") {
  IrBuilder b;
  const auto data = b.param(ir::Type::i64);
  const auto thread = b.special(ir::Special::tid_x);
  const auto own = b.add(data, b.shl(b.sext(ir::Type::i64, thread), 2));
  const auto column = b.add(data, b.sext(ir::Type::i64, b.special(ir::Special::ctaid_x)));
  const auto row = b.mul(b.special(ir::Special::ctaid_y), thread);
  const auto slice = b.add(thread, b.special(ir::Special::ctaid_z));
  const auto loaded = b.add(thread, b.load(ir::Type::i32, data));
  b.ret();
  const ir::Module module = b.module();
  const auto same = [&](ir::Value value) { return analysis::same_in_all_blocks(module.functions[0], value); };
  CHECK(same(data));
  CHECK(same(own));
  CHECK(!same(column));
  CHECK(!same(row));
  CHECK(!same(slice));
  CHECK(!same(loaded));
}
