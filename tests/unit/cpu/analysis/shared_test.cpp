// SPDX-License-Identifier: Apache-2.0
// Values that the warps of a block share.
#include "cpu/analysis/shared.hpp"

#include "testing.hpp"

using namespace quern::cpu;
using test::block_of;
using test::IrBuilder;

namespace {

std::vector<bool> shared_of(const IrBuilder& b, const Specialisation& specialisation) {
  const ir::Module module = b.module();
  return analysis::find_shared(module.functions[0], specialisation);
}

}  // namespace

TEST_CASE("thread indices are the same in every warp where a warp is whole rows") {
  IrBuilder b;
  const auto x = b.tid(0);
  const auto y = b.tid(1);
  const auto block = b.ctaid();
  b.ret();
  for (const std::uint32_t row : {8u, 16u, 32u}) {
    CAPTURE(row);
    const std::vector<bool> shared = shared_of(b, block_of(row, 16));
    CHECK(shared[x]);
    CHECK(!shared[y]);
    CHECK(shared[block]);
  }
  for (const std::uint32_t row : {24u, 64u}) {
    CAPTURE(row);
    CHECK(!shared_of(b, block_of(row, 16))[x]);
  }
}

TEST_CASE("what is computed and loaded from the same is the same") {
  IrBuilder b;
  const auto pointer = b.param(ir::Type::i64);
  const auto index = b.sext(ir::Type::i64, b.tid(0));
  const auto address = b.add(pointer, b.shl(index, 2));
  const auto value = b.load(ir::Type::f32, address);
  const auto sum = b.fadd(value, value);
  const auto own = b.load(ir::Type::f32, b.add(address, b.sext(ir::Type::i64, b.tid(1))));
  b.ret();
  const std::vector<bool> shared = shared_of(b, block_of(16, 16));
  CHECK(shared[address]);
  CHECK(shared[value]);
  CHECK(shared[sum]);
  CHECK(!shared[own]);
}

TEST_CASE("where warps come from different sides they bring different values") {
  for (const bool warps_part : {false, true}) {
    CAPTURE(warps_part);
    IrBuilder b;
    const auto n = b.param(ir::Type::i32);
    const auto one = b.i32(1);
    const auto two = b.i32(2);
    const auto then = b.block(), otherwise = b.block(), join = b.block();
    b.cond_br(b.icmp(ir::Icmp::slt, warps_part ? b.tid(1) : b.ctaid(), n), then, otherwise);
    b.at(then).br(join);
    b.at(otherwise).br(join);
    b.at(join);
    const auto phi = b.phi(ir::Type::i32, {{then, one}, {otherwise, two}});
    const auto after = b.add(phi, one);
    const auto still = b.add(n, one);
    b.ret();
    const std::vector<bool> shared = shared_of(b, block_of(16, 16));
    CHECK(shared[phi] == !warps_part);
    CHECK(shared[after] == !warps_part);
    CHECK(shared[still]);
  }
}

TEST_CASE("warps that leave a loop at different rounds bring different values") {
  for (const bool warps_part : {false, true}) {
    CAPTURE(warps_part);
    IrBuilder b;
    const auto n = b.param(ir::Type::i32);
    const auto zero = b.i32(0);
    const auto one = b.i32(1);
    const auto limit = warps_part ? b.tid(1) : n;
    const auto loop = b.block(), after = b.block();
    b.br(loop);
    b.at(loop);
    const auto i = b.phi(ir::Type::i32);
    const auto next = b.add(i, one);
    b.cond_br(b.icmp(ir::Icmp::slt, next, limit), loop, after);
    b.at(after);
    const auto last = b.phi(ir::Type::i32, {{loop, next}});
    b.ret();
    b.incoming(i, 0, zero);
    b.incoming(i, loop, next);
    const std::vector<bool> shared = shared_of(b, block_of(16, 16));
    CHECK(shared[i]);  // warps inside the loop are in the same iteration
    CHECK(shared[last] == !warps_part);
  }
}
