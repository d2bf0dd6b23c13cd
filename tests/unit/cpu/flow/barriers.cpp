// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "cpu/compiler/passes.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Type;
using ir::Value;

void store_word(IrBuilder& b, Value out, Value index, Value what) {
  b.store(b.add(out, b.shl(b.zext(Type::i64, index), 2)), what);
}

Value reduce(IrBuilder& b, ir::BarrierReduce how, Value predicate) {
  const Type type = how == ir::BarrierReduce::popc ? Type::i32 : Type::i1;
  return b.op(ir::Op::barrier_reduce, type, {predicate, b.i32(0)}, static_cast<std::uint64_t>(how));
}

TEST_CASE("a barrier's reduction is over all threads of the block that have not ended") {
  TestDevice device;
  for (const std::uint32_t size : {1u, 20u, 32u, 64u, 100u, 1024u}) {
    // Threads below the first number end; the others count those below the second.
    IrBuilder b;
    const auto ends = b.block();
    const auto on = b.block();
    const Value out = b.param(Type::i64);
    const Value first = b.param(Type::i32);
    const Value second = b.param(Type::i32);
    b.cond_br(b.icmp(Icmp::ult, b.tid(), first), ends, on);
    b.at(ends).ret();
    b.at(on);
    const Value below = b.icmp(Icmp::ult, b.tid(), second);
    const Value count = reduce(b, ir::BarrierReduce::popc, below);
    const Value any = b.zext(Type::i32, reduce(b, ir::BarrierReduce::or_, below));
    const Value all = b.zext(Type::i32, reduce(b, ir::BarrierReduce::and_, below));
    store_word(b, out, b.tid(), b.add(b.mul(count, b.i32(4)), b.add(b.mul(any, b.i32(2)), all)));
    b.ret();
    for (const Specialisation& variant : variants({size, 1, 1})) {
      const auto code = compile_ir(b.module(), variant);
      for (const auto& [from, to] :
           {std::pair{0u, 0u}, {0u, 17u}, {5u, 40u}, {40u, 70u}, {33u, 2000u}, {0u, 2000u}}) {
        CAPTURE(name(variant));
        CAPTURE(from);
        CAPTURE(to);
        device.clear();
        auto memory = device.allocate<std::uint32_t>(size);
        REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data()).add(from).add(to)));
        std::uint32_t threads = 0, holds = 0;
        for (std::uint32_t t = from; t < size; ++t, ++threads) holds += t < to ? 1 : 0;
        const std::uint32_t expected = 4 * holds + (holds != 0 ? 2 : 0) + (holds == threads ? 1 : 0);
        for (std::uint32_t t = 0; t < size; ++t) REQUIRE(memory[t] == (t < from ? 0 : expected));
      }
    }
  }
}

TEST_CASE("a barrier may be the last thing that a kernel does") {
  TestDevice device;
  for (const std::uint32_t size : {20u, 64u, 100u})
    for (const Specialisation& variant : variants({size, 1, 1})) {
      CAPTURE(name(variant));
      IrBuilder b;
      const auto odd = b.block(), join = b.block();
      const Value out = b.param(Type::i64);
      store_word(b, out, b.tid(), b.i32(1));
      b.cond_br(b.icmp(Icmp::eq, b.and_(b.tid(), b.i32(1)), b.i32(1)), odd, join);
      b.at(odd);
      store_word(b, out, b.tid(), b.i32(2));
      b.br(join);
      b.at(join);
      b.op(ir::Op::barrier, Type::none, {b.i32(0)});
      b.ret();
      device.clear();
      auto memory = device.allocate<std::uint32_t>(size);
      const auto code = compile_ir(b.module(), variant);
      REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data())));
      for (std::uint32_t t = 0; t < size; ++t) REQUIRE(memory[t] == 1 + t % 2);
    }
}

TEST_CASE("warps may wait for each other at different places of one barrier, but not at different barriers") {
  TestDevice device;
  for (const std::uint32_t id : {0u, 1u}) {
    IrBuilder b;
    const auto even = b.block();
    const auto odd = b.block();
    const auto join = b.block();
    const Value out = b.param(Type::i64);
    const Value warp = b.special(ir::Special::warpid);
    b.cond_br(b.icmp(Icmp::eq, b.and_(warp, b.i32(1)), b.i32(0)), even, odd);
    b.at(even);
    b.op(ir::Op::barrier, Type::none, {b.i32(0)});
    b.br(join);
    b.at(odd);
    b.op(ir::Op::barrier, Type::none, {b.i32(id)});
    b.br(join);
    b.at(join);
    store_word(b, out, b.tid(), b.i32(7));
    b.ret();
    for (const Specialisation& variant : variants({96, 1, 1})) {
      CAPTURE(name(variant));
      device.clear();
      auto memory = device.allocate<std::uint32_t>(96);
      const auto code = compile_ir(b.module(), variant);
      const auto trap = device.launch(*code, variant, {2, 1, 1}, Params().add(memory.data()));
      if (id == 0) {
        REQUIRE(!trap);
        for (const std::uint32_t word : memory) REQUIRE(word == 7);
      } else {
        CHECK(trap == ir::Trap::divergent_barrier);
      }
    }
  }
}

TEST_CASE("after a barrier that lanes reach one after another, all lanes run in full code again") {
  for (const bool several_warps : {true, false}) {
    IrBuilder b;
    const auto first = b.block(), meet = b.block(), work = b.block(), done = b.block();
    const Value out = b.param(Type::i64), n = b.param(Type::i32);
    b.cond_br(b.icmp(Icmp::eq, b.and_(b.tid(), b.i32(31)), b.i32(0)), first, meet);
    b.at(first);
    store_word(b, out, b.i32(0), b.tid());
    b.br(meet);
    b.at(meet).barrier();
    b.cond_br(b.icmp(Icmp::ult, b.tid(), n), work,
              done);  // nothing else stands between the barrier and the branch
    b.at(work);
    store_word(b, out, b.tid(), b.i32(1));
    b.br(done);
    b.at(done).ret();
    Specialisation specialisation;
    specialisation.block = {several_warps ? 256u : 32u, 1, 1};
    Compilation compilation(b.module(), specialisation);
    REQUIRE(run_passes(compilation, Form::checked, Form::cut));
    const cuts::Plan& plan = compilation.plans[0];
    std::size_t barriers = 0;
    for (ir::BlockId id = 0; id < plan.function->blocks.size(); ++id) {
      if (plan.barrier[id] == ir::kNone) continue;
      ++barriers;
      CHECK(plan.reenter[plan.function->blocks[id].succs[0]] == several_warps);
    }
    CHECK(barriers == 1);
  }
}

}  // namespace
}  // namespace quern::cpu::test
