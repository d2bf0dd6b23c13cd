// SPDX-License-Identifier: Apache-2.0
// Lanes that wait for other lanes or warps: the dispatcher.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Op;
using ir::Type;
using ir::Value;

Value word_at(IrBuilder& b, Value base, Value index) {
  return b.add(base, b.shl(b.zext(Type::i64, index), 2));
}

Value volatile_load(IrBuilder& b, Value address) {
  const Value value = b.load(Type::i32, address);
  b.inst(value).attr.is_volatile = true;
  return value;
}

Value fence(IrBuilder& b) {
  ir::Attributes attributes;
  attributes.semantics = ir::Semantics::sc;
  attributes.scope = ir::Scope::gpu;
  return b.op(Op::fence, Type::none, {}, 0, attributes);
}

/// Runs `kernel` in every variant on `words` words of memory; `check` checks them.
void run(const IrBuilder& kernel, const Extents& block, const Extents& grid, std::size_t words,
         const std::function<void(std::span<std::uint32_t>)>& check) {
  TestDevice device;
  for (const Specialisation& variant : variants(block)) {
    CAPTURE(name(variant));
    device.clear();
    auto memory = device.allocate<std::uint32_t>(words);
    const auto code = compile_ir(kernel.module(), variant);
    const auto trap = device.launch(*code, variant, grid, Params().add(memory.data()));
    REQUIRE(!trap.has_value());
    check(memory);
  }
}

/// Every thread adds 1 to word 1 under the lock in word 0, and stores the former sum at 2 + its index.
IrBuilder spin_lock(bool leaves_before_work) {
  IrBuilder b;
  const auto spin = b.block(), work = b.block(), next = b.block(), end = b.block();
  const Value memory = b.param(Type::i64);
  const Value zero = b.i32(0), one = b.i32(1);
  const Value index = b.global_index();
  b.br(spin);
  b.at(spin);
  const Value taken = b.icmp(Icmp::eq, b.atomic_cas(memory, zero, one), zero);
  const auto fails = b.block(), again = b.block();
  b.cond_br(taken, work, fails);
  b.at(fails).br(next);
  b.at(work);
  const Value count = b.add(memory, b.i64(4));
  const Value old = b.load(Type::i32, count);
  b.store(count, b.add(old, one));
  b.store(word_at(b, memory, b.add(index, b.i32(2))), old);
  fence(b);
  b.atomic(ir::AtomicOp::exch, memory, zero);
  b.br(leaves_before_work ? end : next);
  b.at(next);
  if (leaves_before_work) {
    b.br(spin);
  } else {
    const Value done = b.phi(Type::i1, {{fails, b.i1(false)}, {work, b.i1(true)}});
    b.cond_br(done, end, again);
  }
  b.at(again);
  if (leaves_before_work)
    b.ret();  // no lane reaches this
  else
    b.br(spin);
  b.at(end).ret();
  return b;
}

TEST_CASE("every thread of a block has a lock once, whether or not its holder has left the loop") {
  for (const bool leaves : {true, false})
    for (const std::uint32_t threads : {1u, 20u, 32u, 64u, 100u, 512u}) {
      const std::size_t count = std::size_t{threads} * 2;
      run(spin_lock(leaves), {threads, 1, 1}, {2, 1, 1}, count + 2, [&](std::span<std::uint32_t> words) {
        CHECK(words[0] == 0);
        CHECK(words[1] == count);
        std::vector<std::uint32_t> seen(words.begin() + 2, words.end());
        std::sort(seen.begin(), seen.end());
        std::vector<std::uint32_t> all(count);
        std::iota(all.begin(), all.end(), 0u);
        CHECK(seen == all);
      });
    }
}

TEST_CASE("each lane may wait for the next one's word") {
  // Thread t waits until word t + 1 is set, then sets word t; the last one does not wait.
  constexpr std::uint32_t kThreads = 96;
  IrBuilder b;
  const auto wait = b.block(), set = b.block(), start = b.block(), last = b.block(), again = b.block(),
             found = b.block();
  const Value memory = b.param(Type::i64);
  const Value t = b.tid();
  const Value following = word_at(b, memory, b.add(t, b.i32(1)));
  const Value none = b.i32(0), one = b.i32(1);
  b.cond_br(b.icmp(Icmp::eq, t, b.i32(kThreads - 1)), last, start);
  b.at(last).br(set);
  b.at(start).br(wait);
  b.at(wait);
  b.cond_br(b.icmp(Icmp::eq, volatile_load(b, following), none), again, found);
  b.at(again).br(wait);
  b.at(found).br(set);
  b.at(set);
  const Value seen = b.phi(Type::i32, {{last, none}, {found, one}});
  b.store(word_at(b, memory, t), b.add(seen, b.i32(1)));
  b.ret();
  run(b, {kThreads, 1, 1}, {1, 1, 1}, kThreads + 1, [](std::span<std::uint32_t> words) {
    for (std::uint32_t i = 0; i + 1 < kThreads; ++i) CHECK(words[i] == 2);
    CHECK(words[kThreads - 1] == 1);
  });
}

TEST_CASE("a loop that is entered in its middle runs as each thread alone would run it") {
  // n = tid; odd threads enter at `second`. first: s = s * 3 + n; second: s = s + 5, n = n - 2; repeated
  // while n > 0.
  IrBuilder b;
  const auto first = b.block(), second = b.block(), end = b.block(), odd = b.block();
  const Value memory = b.param(Type::i64);
  const Value t = b.tid();
  const Value zero = b.i32(0);
  const auto even = b.block();
  b.cond_br(b.icmp(Icmp::eq, b.and_(t, b.i32(1)), zero), even, odd);
  b.at(odd).br(second);
  b.at(even).br(first);
  b.at(first);
  const Value s1 = b.phi(Type::i32), n1 = b.phi(Type::i32);
  const Value s2 = b.add(b.mul(s1, b.i32(3)), n1);
  b.br(second);
  b.at(second);
  const Value s3 = b.phi(Type::i32), n3 = b.phi(Type::i32);
  const Value s4 = b.add(s3, b.i32(5)), n4 = b.sub(n3, b.i32(2));
  const auto again = b.block();
  b.cond_br(b.icmp(Icmp::sgt, n4, zero), again, end);
  b.at(again).br(first);
  b.incoming(s1, even, zero), b.incoming(n1, even, t), b.incoming(s1, again, s4), b.incoming(n1, again, n4);
  b.incoming(s3, odd, zero), b.incoming(n3, odd, t), b.incoming(s3, first, s2), b.incoming(n3, first, n1);
  b.at(end).store(word_at(b, memory, t), s4);
  b.ret();
  run(b, {80, 1, 1}, {1, 1, 1}, 80, [](std::span<std::uint32_t> words) {
    for (std::uint32_t i = 0; i < 80; ++i) {
      std::uint32_t s = 0;
      auto n = static_cast<std::int32_t>(i);
      for (bool at_first = i % 2 == 0;; at_first = true) {
        if (at_first) s = s * 3 + static_cast<std::uint32_t>(n);
        s += 5;
        n -= 2;
        if (n <= 0) break;
      }
      CHECK(words[i] == s);
    }
  });
}

void barrier_for(IrBuilder& b, Op which, std::int64_t id, std::int64_t threads) {
  b.op(which, Type::none, {b.i32(id), b.i32(threads)});
}

TEST_CASE("warps that produce go on after bar.arrive, and warps that consume wait for them at bar.sync") {
  // Warps 0 and 1 write words and arrive at barrier 1. Warps 2 and 3 wait there, add, and arrive at barrier
  // 2, at which the producers wait before they overwrite the words, and so on.
  constexpr std::int64_t kRounds = 5;
  IrBuilder b;
  const auto producer = b.block(), consumer = b.block(), end = b.block(), p_next = b.block(),
             c_next = b.block();
  const Value memory = b.param(Type::i64);
  const Value t = b.tid();
  const Value zero = b.i32(0), one = b.i32(1), rounds = b.i32(kRounds);
  const Value is_producer = b.icmp(Icmp::ult, t, b.i32(64));
  const Value own = word_at(b, memory, b.and_(t, b.i32(63)));
  const Value sum_at = word_at(b, memory, t);  // 64.. for the consumers
  const auto p_start = b.block(), c_start = b.block(), p_end = b.block(), c_end = b.block();
  b.cond_br(is_producer, p_start, c_start);
  b.at(p_start).br(producer);
  b.at(c_start).br(consumer);
  b.at(producer);
  const Value p = b.phi(Type::i32);
  b.store(own, b.add(b.mul(p, b.i32(100)), t));
  barrier_for(b, Op::barrier_arrive, 1, 128);
  barrier_for(b, Op::barrier, 2, 128);
  const Value p_after = b.add(p, one);
  b.cond_br(b.icmp(Icmp::ult, p_after, rounds), p_next, p_end);
  b.at(p_end).br(end);
  b.at(p_next).br(producer);
  b.incoming(p, p_start, zero), b.incoming(p, p_next, p_after);
  b.at(consumer);
  const Value c = b.phi(Type::i32), sum = b.phi(Type::i32);
  barrier_for(b, Op::barrier, 1, 128);
  const Value added = b.add(sum, b.load(Type::i32, own));
  b.store(sum_at, added);
  barrier_for(b, Op::barrier_arrive, 2, 128);
  const Value c_after = b.add(c, one);
  b.cond_br(b.icmp(Icmp::ult, c_after, rounds), c_next, c_end);
  b.at(c_end).br(end);
  b.at(c_next).br(consumer);
  b.incoming(c, c_start, zero), b.incoming(c, c_next, c_after);
  b.incoming(sum, c_start, zero), b.incoming(sum, c_next, added);
  b.at(end).ret();
  run(b, {128, 1, 1}, {1, 1, 1}, 128, [](std::span<std::uint32_t> words) {
    for (std::uint32_t i = 0; i < 64; ++i)
      CHECK(words[64 + i] == kRounds * i + 100 * (kRounds * (kRounds - 1) / 2));
  });
}

TEST_CASE("a barrier for some warps does not wait for the others, and its reduction is over its threads") {
  // Warps 1 and 2 of 4 count their odd threads at barrier 3; the other warps do not arrive there.
  IrBuilder b;
  const auto middle = b.block(), end = b.block(), outside = b.block();
  const Value memory = b.param(Type::i64);
  const Value t = b.tid();
  const Value inside = b.icmp(Icmp::ult, b.sub(t, b.i32(32)), b.i32(64));
  b.cond_br(inside, middle, outside);
  b.at(outside).br(end);
  b.at(middle);
  const Value odd = b.icmp(Icmp::eq, b.and_(t, b.i32(1)), b.i32(1));
  const Value count = b.op(Op::barrier_reduce, Type::i32, {odd, b.i32(3), b.i32(64)},
                           static_cast<std::uint64_t>(ir::BarrierReduce::popc));
  b.store(word_at(b, memory, t), count);
  b.br(end);
  b.at(end).ret();
  run(b, {128, 1, 1}, {1, 1, 1}, 128, [](std::span<std::uint32_t> words) {
    for (std::uint32_t i = 0; i < 128; ++i) CHECK(words[i] == (i >= 32 && i < 96 ? 32 : 0));
  });
}

TEST_CASE("a barrier whose number is computed is one barrier for each number") {
  // Each pair of warps has barrier 1 + pair. After it, warp 0 of the pair reads what warp 1 wrote before it.
  IrBuilder b;
  const Value memory = b.param(Type::i64);
  const Value t = b.tid();
  b.store(word_at(b, memory, t), b.add(t, b.i32(7)));
  const Value id = b.add(b.lshr(t, 6), b.i32(1));
  b.op(Op::barrier, Type::none, {id, b.i32(64)});
  const Value other = b.load(Type::i32, word_at(b, memory, b.xor_(t, b.i32(32))));
  b.store(word_at(b, memory, b.add(t, b.i32(256))), other);
  b.ret();
  run(b, {256, 1, 1}, {1, 1, 1}, 512, [](std::span<std::uint32_t> words) {
    for (std::uint32_t i = 0; i < 256; ++i) CHECK(words[256 + i] == (i ^ 32) + 7);
  });
}

TEST_CASE("threads meet at a barrier from different branches") {
  // The lower half of each warp stores before its barrier; the upper half reads after its own.
  IrBuilder b;
  const auto low = b.block(), high = b.block(), end = b.block();
  const Value memory = b.param(Type::i64);
  const Value t = b.tid();
  b.cond_br(b.icmp(Icmp::ult, b.and_(t, b.i32(31)), b.i32(16)), low, high);
  b.at(low).store(word_at(b, memory, t), b.add(t, b.i32(1)));
  b.barrier();
  b.br(end);
  b.at(high).barrier();
  b.store(word_at(b, memory, t), b.load(Type::i32, word_at(b, memory, b.xor_(t, b.i32(16)))));
  b.br(end);
  b.at(end).ret();
  run(b, {96, 1, 1}, {1, 1, 1}, 96, [](std::span<std::uint32_t> words) {
    for (std::uint32_t i = 0; i < 96; ++i) CHECK(words[i] == (i & ~16u) + 1);
  });
}

TEST_CASE("lanes meet at warp_sync from different places, and at a shuffle when all members have come") {
  // Even lanes execute a few more steps before all lanes shuffle. Before that, they synchronise in either
  // branch.
  IrBuilder b;
  const auto even = b.block(), odd = b.block(), join = b.block(), loop = b.block(), out = b.block();
  const Value memory = b.param(Type::i64);
  const Value lane = b.special(ir::Special::laneid);
  const Value all = b.i32(0xffffffff);
  const Value zero = b.i32(0), many = b.i32(1000);
  b.cond_br(b.icmp(Icmp::eq, b.and_(lane, b.i32(1)), zero), even, odd);
  b.at(even).op(Op::warp_sync, Type::none, {all});
  b.br(loop);
  b.at(loop);
  const Value i = b.phi(Type::i32);
  const Value next = b.add(i, b.i32(1));
  const auto again = b.block();
  b.cond_br(b.icmp(Icmp::ult, next, lane), again, out);
  b.at(again).br(loop);
  b.incoming(i, even, zero), b.incoming(i, again, next);
  b.at(out);
  const Value steps = b.phi(Type::i32, {{loop, next}});
  b.br(join);
  b.at(odd).op(Op::warp_sync, Type::none, {all});
  b.br(join);
  b.at(join);
  const Value mine = b.phi(Type::i32, {{out, steps}, {odd, many}});
  const Value got = b.shuffle(ir::ShuffleMode::bfly, mine, b.i32(1), b.i32(31), all);
  b.store(word_at(b, memory, b.tid()), got);
  b.ret();
  run(b, {64, 1, 1}, {1, 1, 1}, 64, [](std::span<std::uint32_t> words) {
    for (std::uint32_t t = 0; t < 64; ++t) {
      const std::uint32_t l = t % 32;
      CHECK(words[t] == (l % 2 == 0 ? 1000 : std::max(1u, l - 1)));
    }
  });
}

TEST_CASE("threads that would wait for ever end the launch with a trap") {
  // Half of the warp waits for the other half, which waits for the first half at a barrier.
  IrBuilder b;
  const auto low = b.block(), high = b.block(), end = b.block();
  const Value lane = b.special(ir::Special::laneid);
  const Value all = b.i32(0xffffffff);
  b.cond_br(b.icmp(Icmp::ult, lane, b.i32(16)), low, high);
  b.at(low).op(Op::warp_sync, Type::none, {all});
  b.barrier();
  b.br(end);
  b.at(high).barrier();
  b.op(Op::warp_sync, Type::none, {all});
  b.br(end);
  b.at(end).ret();
  TestDevice device;
  for (const Specialisation& variant : variants({64, 1, 1})) {
    CAPTURE(name(variant));
    const auto code = compile_ir(b.module(), variant);
    CHECK(device.launch(*code, variant, {1, 1, 1}, Params()) == ir::Trap::divergent_barrier);
  }
}

}  // namespace
}  // namespace quern::cpu::test
