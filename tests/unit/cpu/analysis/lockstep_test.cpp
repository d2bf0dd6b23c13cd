// SPDX-License-Identifier: Apache-2.0
// Code that can, and code that cannot, run while the lanes of a warp are kept together.
#include "testing.hpp"

using namespace quern::cpu;
using test::block_of;
using test::IrBuilder;
using test::refusal;

namespace {

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// do { body(b) -> condition } while (condition). While `body` runs, the builder is in the block of the loop.
template <class Body>
IrBuilder loop_until(const Body& body) {
  IrBuilder b;
  const auto pointer = b.param(ir::Type::i64);
  const auto loop = b.block(), after = b.block();
  b.br(loop);
  b.at(loop).line(50);
  b.cond_br(body(b, pointer), loop, after);
  b.at(after).ret();
  return b;
}

ir::Value volatile_load(IrBuilder& b, ir::Value pointer) {
  const ir::Value value = b.load(ir::Type::i32, pointer);
  b.inst(value).attr.is_volatile = true;
  return value;
}

}  // namespace

TEST_CASE("a barrier that only some lanes reach needs the dispatcher; its line is the reason") {
  IrBuilder b("halves");
  const auto out = b.param(ir::Type::i64);
  const auto then = b.block(), join = b.block();
  b.line(5).cond_br(b.icmp(ir::Icmp::slt, b.tid(), b.i32(16)), then, join);
  b.at(then).line(6).barrier();
  b.br(join);
  b.at(join).store(out, b.i32(1));
  b.ret();
  const std::string text = refusal(b, block_of(64));
  CHECK(contains(text, "kernel.cu:6"));
  CHECK(contains(text, "halves"));
  CHECK(contains(text, "PTX line 1006"));
  CHECK(contains(text, "barrier"));
  CHECK(refusal(b, block_of(16)).empty());  // all 16 threads are below 16
}

TEST_CASE("a barrier after an early exit is fine, also in a loop that lanes leave by ending") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto zero = b.i32(0);
  const auto i0 = b.global_index();
  const auto on = b.block(), loop = b.block(), next_block = b.block(), after = b.block(), leaves = b.block(),
             end = b.block();
  b.cond_br(b.icmp(ir::Icmp::sge, i0, n), end, on);
  b.at(on).barrier();
  b.br(loop);
  b.at(loop);
  const auto k = b.phi(ir::Type::i32);
  b.barrier();
  b.cond_br(b.icmp(ir::Icmp::eq, k, i0), leaves, next_block);
  b.at(next_block).barrier();
  const auto next = b.add(k, b.i32(1));
  b.cond_br(b.icmp(ir::Icmp::slt, next, n), loop, after);
  b.at(after).barrier();
  b.br(end);
  b.at(leaves).br(end);
  b.at(end).ret();
  b.incoming(k, on, zero);
  b.incoming(k, next_block, next);
  CHECK(refusal(b, block_of(64)).empty());
}

TEST_CASE("a barrier in a loop that lanes leave at different iterations needs the dispatcher") {
  IrBuilder b;
  const auto tid = b.tid();
  const auto zero = b.i32(0);
  const auto loop = b.block(), after = b.block();
  b.br(loop);
  b.at(loop);
  const auto k = b.phi(ir::Type::i32);
  b.line(8).barrier();
  const auto next = b.add(k, b.i32(1));
  b.cond_br(b.icmp(ir::Icmp::slt, next, tid), loop, after);
  b.at(after).line(9).barrier();
  b.ret();
  b.incoming(k, 0, zero);
  b.incoming(k, loop, next);
  const std::string text = refusal(b, block_of(64));
  CHECK(contains(text, "kernel.cu:8"));
  CHECK(!contains(text, "kernel.cu:9"));
}

TEST_CASE("barriers on both sides of a divergent branch are both reasons for the dispatcher") {
  IrBuilder b;
  const auto then = b.block(), otherwise = b.block(), end = b.block();
  b.cond_br(b.icmp(ir::Icmp::slt, b.tid(), b.i32(16)), then, otherwise);
  b.at(then).line(6).barrier();
  b.br(end);
  b.at(otherwise).line(7).barrier();
  b.br(end);
  b.at(end).ret();
  const std::string text = refusal(b, block_of(64));
  CHECK(contains(text, "kernel.cu:6"));
  CHECK(contains(text, "kernel.cu:7"));
}

TEST_CASE("a lane that waits for another needs the dispatcher: locks, polls by one or all lanes") {
  const auto lock = loop_until([](IrBuilder& b, ir::Value p) {
    return b.icmp(ir::Icmp::ne, b.atomic_cas(p, b.i32(0), b.i32(1)), b.i32(0));
  });
  const auto exchange = loop_until([](IrBuilder& b, ir::Value p) {
    return b.icmp(ir::Icmp::ne, b.atomic(ir::AtomicOp::exch, p, b.i32(1)), b.i32(0));
  });
  const auto poll = loop_until(
      [](IrBuilder& b, ir::Value p) { return b.icmp(ir::Icmp::eq, volatile_load(b, p), b.i32(0)); });
  const auto poll_own = loop_until([](IrBuilder& b, ir::Value p) {
    const ir::Value address = b.add(p, b.zext(ir::Type::i64, b.tid()));
    const ir::Value value = b.load(ir::Type::i32, address);
    b.inst(value).attr.semantics = ir::Semantics::acquire;
    return b.icmp(ir::Icmp::eq, value, b.i32(0));
  });
  const auto poll_by_adding_nothing = loop_until([](IrBuilder& b, ir::Value p) {
    return b.icmp(ir::Icmp::slt, b.atomic(ir::AtomicOp::add, p, b.i32(0)), b.i32(8));
  });
  for (const IrBuilder& b : {lock, exchange, poll, poll_own, poll_by_adding_nothing}) {
    const std::string text = refusal(b, block_of(64));
    CHECK(contains(text, "kernel.cu:50"));
    CHECK(contains(text, "another thread"));
  }
}

TEST_CASE("a lock taken inside the loop that does the work needs the dispatcher too") {
  IrBuilder b;  // while (!done) if (atomicCAS(lock, 0, 1) == 0) { ...; atomicExch(lock, 0); done = true; }
  const auto lock = b.param(ir::Type::i64);
  const auto no = b.i1(false), yes = b.i1(true);
  const auto zero = b.i32(0), one = b.i32(1);
  const auto loop = b.block(), locked = b.block(), latch = b.block(), after = b.block();
  b.br(loop);
  b.at(loop);
  b.cond_br(b.icmp(ir::Icmp::eq, b.line(7).atomic_cas(lock, zero, one), zero), locked, latch);
  b.at(locked).atomic(ir::AtomicOp::exch, lock, zero);
  b.br(latch);
  b.at(latch);
  const auto done = b.phi(ir::Type::i1, {{loop, no}, {locked, yes}});
  b.cond_br(done, after, loop);
  b.at(after).ret();
  CHECK(contains(refusal(b, block_of(64)), "kernel.cu:7"));
}

TEST_CASE("loops that make progress by themselves do not need the dispatcher") {
  SUBCASE("a sum over volatile memory, and atomics whose results are not asked for") {
    IrBuilder b;
    const auto p = b.param(ir::Type::i64);
    const auto zero = b.i32(0);
    const auto loop = b.block(), after = b.block();
    b.br(loop);
    b.at(loop);
    const auto k = b.phi(ir::Type::i32);
    volatile_load(b, p);
    b.atomic(ir::AtomicOp::exch, p, k);
    const auto next = b.add(k, b.i32(1));
    b.cond_br(b.icmp(ir::Icmp::slt, next, b.tid()), loop, after);
    b.at(after).ret();
    b.incoming(k, 0, zero);
    b.incoming(k, loop, next);
    CHECK(refusal(b, block_of(64)).empty());
  }
  SUBCASE("a wait with a limit on the number of tries") {
    IrBuilder b;
    const auto p = b.param(ir::Type::i64);
    const auto zero = b.i32(0);
    const auto loop = b.block(), again = b.block(), after = b.block();
    b.br(loop);
    b.at(loop);
    const auto k = b.phi(ir::Type::i32);
    b.cond_br(b.icmp(ir::Icmp::eq, volatile_load(b, p), zero), again, after);
    b.at(again);
    const auto next = b.add(k, b.i32(1));
    b.cond_br(b.icmp(ir::Icmp::slt, next, b.i32(1000)), loop, after);
    b.at(after).ret();
    b.incoming(k, 0, zero);
    b.incoming(k, again, next);
    CHECK(refusal(b, block_of(64)).empty());
  }
  SUBCASE("a work queue: while ((i = atomicAdd(&next, 1)) < n)") {
    const auto b = loop_until([](IrBuilder& builder, ir::Value p) {
      return builder.icmp(ir::Icmp::slt, builder.atomic(ir::AtomicOp::add, p, builder.i32(1)),
                          builder.i32(100));
    });
    CHECK(refusal(b, block_of(64)).empty());
  }
  SUBCASE("a compare-and-swap that retries with what it read") {
    IrBuilder b;
    const auto p = b.param(ir::Type::i64);
    const auto first = b.load(ir::Type::i32, p);
    const auto loop = b.block(), after = b.block();
    b.br(loop);
    b.at(loop);
    const auto expected = b.phi(ir::Type::i32);
    const auto old = b.atomic_cas(p, expected, b.add(expected, b.tid()));
    b.cond_br(b.icmp(ir::Icmp::ne, old, expected), loop, after);
    b.at(after).ret();
    b.incoming(expected, 0, first);
    b.incoming(expected, loop, old);
    CHECK(refusal(b, block_of(64)).empty());
  }
  SUBCASE("the same, reading again by a volatile load") {
    const auto b = loop_until([](IrBuilder& builder, ir::Value p) {
      const auto seen = volatile_load(builder, p);
      const auto old = builder.atomic_cas(p, seen, builder.add(seen, builder.i32(1)));
      return builder.icmp(ir::Icmp::ne, old, seen);
    });
    CHECK(refusal(b, block_of(64)).empty());
  }
  SUBCASE("inserting into a hash table: the next slot after one that is taken") {
    IrBuilder b;
    const auto table = b.param(ir::Type::i64);
    const auto key = b.tid();
    const auto empty = b.i32(-1);
    const auto loop = b.block(), taken = b.block(), after = b.block();
    b.br(loop);
    b.at(loop);
    const auto slot = b.phi(ir::Type::i32);
    const auto address = b.add(table, b.shl(b.zext(ir::Type::i64, slot), 2));
    const auto old = b.atomic_cas(address, empty, key);
    b.cond_br(b.icmp(ir::Icmp::eq, old, empty), after, taken);
    b.at(taken);
    const auto next = b.and_(b.add(slot, b.i32(1)), b.i32(1023));
    b.cond_br(b.icmp(ir::Icmp::eq, old, key), after, loop);
    b.at(after).ret();
    b.incoming(slot, 0, key);
    b.incoming(slot, taken, next);
    CHECK(refusal(b, block_of(64)).empty());
  }
  SUBCASE("a walk along a list with ordered loads") {
    IrBuilder b;
    const auto list = b.param(ir::Type::i64);
    const auto loop = b.block(), after = b.block();
    b.br(loop);
    b.at(loop);
    const auto node = b.phi(ir::Type::i64);
    const auto next = b.load(ir::Type::i64, node);
    b.inst(next).attr.semantics = ir::Semantics::relaxed;
    b.cond_br(b.icmp(ir::Icmp::ne, next, b.i64(0)), loop, after);
    b.at(after).ret();
    b.incoming(node, 0, list);
    b.incoming(node, loop, next);
    CHECK(refusal(b, block_of(64)).empty());
  }
}

TEST_CASE(
    "a recursive function in which lanes wait is refused with its line; a kernel is given the dispatcher") {
  IrBuilder b = loop_until([](IrBuilder& at, ir::Value pointer) {
    return at.icmp(ir::Icmp::eq, volatile_load(at, pointer), at.i32(0));
  });
  ir::Module module = b.module();
  const auto needs = [&] { return analysis::needs_dispatcher(module, module.functions[0], block_of(64)); };
  REQUIRE(needs().has_value());
  CHECK(*needs());
  module.functions[0].kernel = false;
  REQUIRE(!needs().has_value());
  CHECK(contains(to_string(needs().errors()), "kernel.cu:50"));
  CHECK(contains(to_string(needs().errors()), "cannot wait for one another"));
}

TEST_CASE(
    "lanes wait in a called function at barriers, for members of a mask and in loops, and nowhere else") {
  const auto waits = [](const std::function<void(IrBuilder&)>& fill, bool kernel = false) {
    IrBuilder b;
    b.ret();
    ir::Module module = b.module();
    IrBuilder callee;
    fill(callee);
    callee.ret();
    module.functions.push_back(callee.finish());
    module.functions.back().kernel = kernel;
    return analysis::waits_in_calls(module, block_of(64));
  };
  CHECK_FALSE(waits([](IrBuilder& b) { b.add(b.tid(), b.i32(1)); }));
  CHECK(waits([](IrBuilder& b) { b.barrier(); }));
  CHECK_FALSE(waits([](IrBuilder& b) { b.barrier(); }, true));
  CHECK(waits([](IrBuilder& b) { b.op(ir::Op::warp_sync, ir::Type::none, {b.i32(-1)}); }));
  IrBuilder loop = loop_until([](IrBuilder& at, ir::Value pointer) {
    return at.icmp(ir::Icmp::eq, volatile_load(at, pointer), at.i32(0));
  });
  ir::Module module = loop.module();
  module.functions.push_back(module.functions[0]);
  module.functions[1].kernel = false;
  CHECK(analysis::waits_in_calls(module, block_of(64)));
}

TEST_CASE("a kernel that holds the functions it calls is run by the dispatcher") {
  IrBuilder b;
  b.ret();
  ir::Module module = b.module();
  module.functions[0].local_bytes = module.functions[0].stack_bytes = 1024;
  CHECK(*analysis::needs_dispatcher(module, module.functions[0], block_of(64)));
}

TEST_CASE("irreducible control flow needs the dispatcher, in recursive functions too") {
  IrBuilder b;
  const auto first = b.block(), second = b.block(), back = b.block(), end = b.block();
  b.cond_br(b.icmp(ir::Icmp::slt, b.tid(), b.i32(16)), first, second);
  b.at(first).br(second);
  b.at(second).cond_br(b.icmp(ir::Icmp::slt, b.tid(), b.i32(4)), back, end);
  b.at(back).br(first);
  b.at(end).ret();
  ir::Module module = b.module();
  for (const bool kernel : {true, false}) {
    module.functions[0].kernel = kernel;
    const auto needs = analysis::needs_dispatcher(module, module.functions[0], block_of(64));
    REQUIRE(needs.has_value());
    CHECK(*needs);
  }
}

TEST_CASE("what a test asks for is run by the dispatcher, whatever it does") {
  IrBuilder b;
  b.ret();
  const ir::Module module = b.module();
  Specialisation specialisation = block_of(64);
  CHECK(!*analysis::needs_dispatcher(module, module.functions[0], specialisation));
  specialisation.dispatch = true;
  CHECK(*analysis::needs_dispatcher(module, module.functions[0], specialisation));
}
