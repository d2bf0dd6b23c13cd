// SPDX-License-Identifier: Apache-2.0
// Loops over barriers and over shuffles that are unrolled.
#include <doctest/doctest.h>

#include "cpu/cuts/passes.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Space;
using ir::Type;
using ir::Value;

/// The sum of (thread + block) over the block, by halving the number of threads that take part.
IrBuilder tree() {
  IrBuilder b;
  const Value out = b.param(Type::i64);
  const auto head = b.block(), add = b.block(), wait = b.block(), latch = b.block(), end = b.block();
  const Value place = b.shl(b.zext(Type::i64, b.tid()), 2);
  b.store(place, b.add(b.tid(), b.ctaid()), Space::shared);
  b.barrier();
  const Value first = b.lshr(b.ntid(), 1);
  b.br(head);
  b.at(head);
  const Value half = b.phi(Type::i32, {{0, first}});
  b.cond_br(b.icmp(Icmp::ult, b.tid(), half), add, wait);
  b.at(add);
  const Value other = b.add(place, b.shl(b.zext(Type::i64, half), 2));
  b.store(place, b.add(b.load(Type::i32, place, Space::shared), b.load(Type::i32, other, Space::shared)),
          Space::shared);
  b.br(wait);
  b.at(wait).barrier();
  const Value next = b.lshr(half, 1);
  b.cond_br(b.icmp(Icmp::ne, next, b.i32(0)), latch, end);
  b.at(latch).br(head);
  b.incoming(half, latch, next);
  b.at(end);
  b.store(b.add(out, b.shl(b.zext(Type::i64, b.global_index()), 2)),
          b.load(Type::i32, b.i64(0), Space::shared));
  b.ret();
  return b;
}

/// The sum of (thread + block) over the warp, by shuffles whose distance a loop halves.
IrBuilder warp_sum() {
  IrBuilder b;
  const Value out = b.param(Type::i64);
  const auto loop = b.block(), latch = b.block(), end = b.block();
  const Value mine = b.add(b.tid(), b.ctaid()), first = b.i32(16);
  b.br(loop);
  b.at(loop);
  const Value distance = b.phi(Type::i32, {{0, first}}), sum = b.phi(Type::i32, {{0, mine}});
  const Value other = b.shuffle(ir::ShuffleMode::bfly, sum, distance, b.i32(31), b.i32(-1));
  const Value both = b.add(sum, other), next = b.lshr(distance, 1);
  b.cond_br(b.icmp(Icmp::ne, next, b.i32(0)), latch, end);
  b.at(latch).br(loop);
  b.incoming(distance, latch, next);
  b.incoming(sum, latch, both);
  b.at(end);
  const Value whole = b.phi(Type::i32, {{loop, both}});
  b.store(b.add(out, b.shl(b.zext(Type::i64, b.global_index()), 2)), whole);
  b.ret();
  return b;
}

std::size_t left_after_unrolling(const IrBuilder& b, std::uint32_t threads, ir::Op op) {
  Specialisation specialisation;
  specialisation.block = {threads, 1, 1};
  ir::Module module = b.module();
  cuts::Plan plan;
  plan.module = &module;
  plan.function = &module.functions[0];
  plan.has_full = true;
  cuts::unroll_rounds(module.functions[0], plan, specialisation);
  std::size_t count = 0;
  for (const ir::Block& block : module.functions[0].blocks)
    for (const Value value : block.insts) count += module.functions[0][value].op == op ? 1 : 0;
  return count;
}

std::size_t barriers_after_unrolling(const IrBuilder& b, std::uint32_t threads) {
  return left_after_unrolling(b, threads, ir::Op::barrier);
}

TEST_CASE("a loop over barriers is unrolled if the shape of the block gives its iterations") {
  CHECK(barriers_after_unrolling(tree(), 256) == 1 + 8);
  CHECK(barriers_after_unrolling(tree(), 128) == 1 + 7);
  CHECK(barriers_after_unrolling(tree(), 32) == 2);  // one warp: barriers cost nothing
}

TEST_CASE("a loop over shuffles is unrolled, so that their distances are known") {
  CHECK(left_after_unrolling(warp_sum(), 256, ir::Op::shuffle) == 5);
  CHECK(left_after_unrolling(warp_sum(), 64, ir::Op::shuffle) == 5);
}

TEST_CASE("a loop over barriers whose end a parameter decides stays a loop") {
  IrBuilder b;
  b.param(Type::i64);
  const Value n = b.param(Type::i32);
  const auto loop = b.block(), latch = b.block(), end = b.block();
  const Value zero = b.i32(0);
  b.br(loop);
  b.at(loop);
  const Value i = b.phi(Type::i32, {{0, zero}});
  b.barrier();
  const Value next = b.add(i, b.i32(1));
  b.cond_br(b.icmp(Icmp::slt, next, n), latch, end);
  b.at(latch).br(loop);
  b.incoming(i, latch, next);
  b.at(end).ret();
  CHECK(barriers_after_unrolling(b, 256) == 1);
}

TEST_CASE("a reduction in shared memory gives the sum in every variant") {
  TestDevice device;
  const ir::Module module = tree().module();
  for (const std::uint32_t threads : {32u, 64u, 128u, 256u, 512u})
    for (const Specialisation& variant : variants({threads, 1, 1})) {
      CAPTURE(name(variant));
      device.clear();
      auto memory = device.allocate<std::uint32_t>(1024);
      const auto code = compile_ir(module, variant);
      REQUIRE(!device.launch(*code, variant, {2, 1, 1}, Params().add(memory.data())));
      for (std::uint32_t i = 0; i < 2 * threads; ++i)
        REQUIRE(memory[i] == threads * (threads - 1) / 2 + threads * (i / threads));
    }
}

TEST_CASE("a sum by shuffles in a loop gives the sum of the warp in every variant") {
  TestDevice device;
  const ir::Module module = warp_sum().module();
  for (const std::uint32_t threads : {32u, 64u, 256u})
    for (const Specialisation& variant : variants({threads, 1, 1})) {
      CAPTURE(name(variant));
      device.clear();
      auto memory = device.allocate<std::uint32_t>(512);
      const auto code = compile_ir(module, variant);
      REQUIRE(!device.launch(*code, variant, {2, 1, 1}, Params().add(memory.data())));
      for (std::uint32_t i = 0; i < 2 * threads; ++i)
        REQUIRE(memory[i] == 32 * (i % threads / 32 * 32) + 31 * 16 + 32 * (i / threads));
    }
}

}  // namespace
}  // namespace quern::cpu::test
