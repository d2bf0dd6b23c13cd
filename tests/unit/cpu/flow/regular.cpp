// SPDX-License-Identifier: Apache-2.0
// Loops that the lanes of most warps leave together: full code keeps their indices as a base and differences
// of the lanes, and masked code returns to it only if the lanes agree.
#include <doctest/doctest.h>

#include <algorithm>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Type;
using ir::Value;

void increment(IrBuilder& b, Value out, Value index, Value by) {
  const Value address = b.add(out, b.shl(b.sext(Type::i64, index), 2));
  b.store(address, b.add(b.load(Type::i32, address), by));
}

/// Adds 1 to each element of [0, n) whose index is one of the thread's, and 16 for each thread that has all
/// its iterations behind it. The iterations that the unrolled loop leaves over come first, as NVRTC has them.
ir::Module unrolled(bool with_barrier) {
  IrBuilder b;
  const Value out = b.param(Type::i64), last_of = b.param(Type::i64), n = b.param(Type::i32),
              step = b.param(Type::i32);
  const Value one = b.i32(1), zero = b.i32(0), four = b.i32(4);
  if (with_barrier) b.barrier();
  const Value first = b.global_index();
  const auto any = b.block(), rest = b.block(), again = b.block(), rest_end = b.block(), middle = b.block(),
             main = b.block(), more = b.block(), main_end = b.block(), all = b.block(), end = b.block();
  b.cond_br(b.icmp(Icmp::slt, first, n), any, end);
  b.at(any);
  const Value count = b.add(b.op(ir::Op::udiv, Type::i32, {b.sub(b.sub(n, first), one), step}), one);
  const Value left = b.and_(count, b.i32(3));
  b.cond_br(b.icmp(Icmp::eq, left, zero), middle, rest);
  b.at(rest);
  const Value i = b.phi(Type::i32), k = b.phi(Type::i32);
  increment(b, out, i, one);
  const Value next_i = b.add(i, step), next_k = b.sub(k, one);
  b.cond_br(b.icmp(Icmp::ne, next_k, zero), again, rest_end);
  b.at(again).br(rest);
  b.incoming(i, any, first);
  b.incoming(i, again, next_i);
  b.incoming(k, any, left);
  b.incoming(k, again, next_k);
  b.at(rest_end);
  const Value behind = b.phi(Type::i32, {{rest, next_i}});
  b.br(middle);
  b.at(middle);
  const Value start = b.phi(Type::i32, {{any, first}, {rest_end, behind}});
  b.cond_br(b.icmp(Icmp::ult, count, four), all, main);
  b.at(main);
  const Value j = b.phi(Type::i32);
  Value at = j;
  for (int copy = 0; copy < 4; ++copy) {
    increment(b, out, at, one);
    at = b.add(at, step);
  }
  b.cond_br(b.icmp(Icmp::slt, at, n), more, main_end);
  b.at(more).br(main);
  b.incoming(j, middle, start);
  b.incoming(j, more, at);
  b.at(main_end);
  const Value stop = b.phi(Type::i32, {{main, at}});
  b.br(all);
  b.at(all);
  const Value done = b.phi(Type::i32, {{middle, start}, {main_end, stop}});
  b.store(b.add(last_of, b.shl(b.zext(Type::i64, first), 2)), done);
  b.br(end);
  b.at(end).ret();
  return b.module();
}

TEST_CASE("every iteration of an unrolled loop runs once, wherever the lanes of a warp leave it") {
  TestDevice device;
  for (const bool with_barrier : {false, true}) {
    const ir::Module module = unrolled(with_barrier);
    for (const std::uint32_t threads : {32u, 96u, 256u})
      for (const Specialisation& variant : variants({threads, 1, 1})) {
        CAPTURE(name(variant));
        const auto code = compile_ir(module, variant);
        for (std::uint32_t n = 1; n < 12 * threads; n += n < 70 ? 1 : 37)
          for (const std::uint32_t step : {2 * threads, 2 * threads + 3, 5 * threads}) {
            CAPTURE(n);
            CAPTURE(step);
            device.clear();
            auto out = device.allocate<std::uint32_t>(20 * threads);
            auto last = device.allocate<std::uint32_t>(2 * threads);
            REQUIRE(!device.launch(*code, variant, {2, 1, 1},
                                   Params().add(out.data()).add(last.data()).add(n).add(step)));
            std::vector<std::uint32_t> expected(out.size());
            for (std::uint32_t thread = 0; thread < 2 * threads; ++thread) {
              std::uint32_t i = thread;
              for (; i < n; i += step) ++expected[i];
              REQUIRE(last[thread] == (thread < n ? i : 0));
            }
            REQUIRE(std::vector<std::uint32_t>(out.begin(), out.end()) == expected);
          }
      }
  }
}

/// The lanes of a warp leave a loop with indices that differ as those of neighbours do only by wrapping.
TEST_CASE("full code is not entered with indices that would wrap in it") {
  IrBuilder b;
  const Value out = b.param(Type::i64), n = b.param(Type::i32), odd = b.param(Type::i32);
  const auto left = b.block(), right = b.block(), join = b.block();
  const Value place = b.add(out, b.shl(b.zext(Type::i64, b.tid()), 3));
  b.cond_br(b.icmp(Icmp::slt, b.tid(), n), left, right);
  b.at(left);
  const Value low = b.add(b.tid(), odd);
  b.br(join);
  b.at(right);
  const Value high = b.add(b.add(b.tid(), odd), b.i32(0));
  b.br(join);
  b.at(join);
  const Value index = b.phi(Type::i32, {{left, low}, {right, high}});
  b.store(place, b.sext(Type::i64, index));
  b.ret();
  const ir::Module module = b.module();
  TestDevice device;
  for (const Specialisation& variant : variants({64, 1, 1})) {
    CAPTURE(name(variant));
    const auto code = compile_ir(module, variant);
    for (const std::int32_t start : {0, -5, INT32_MAX - 63, INT32_MAX - 40, INT32_MAX - 10, INT32_MAX})
      for (const std::int32_t bound : {0, 1, 20, 32, 50, 64}) {
        CAPTURE(start);
        CAPTURE(bound);
        device.clear();
        auto memory = device.allocate<std::int64_t>(64);
        REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data()).add(bound).add(start)));
        for (std::uint32_t t = 0; t < 64; ++t)
          REQUIRE(memory[t] == static_cast<std::int32_t>(static_cast<std::uint32_t>(start) + t));
      }
  }
}

/// Masked code does not know whether an index wraps, and tests it before it accesses neighbours at once.
TEST_CASE("lanes that run access their own elements where the index of a lane that does not run wraps") {
  IrBuilder b;
  const Value from = b.param(Type::i64), to = b.param(Type::i64), start = b.param(Type::i32),
              first = b.param(Type::i32), count = b.param(Type::i32);
  const auto inside = b.block(), end = b.block();
  b.cond_br(b.icmp(Icmp::ult, b.sub(b.tid(), first), count), inside, end);
  b.at(inside);
  const Value at = b.shl(b.zext(Type::i64, b.add(b.tid(), start)), 2);
  b.store(b.add(to, at), b.add(b.load(Type::i32, b.add(from, at)), b.i32(1)));
  b.br(end);
  b.at(end).ret();
  const ir::Module module = b.module();
  TestDevice device;
  for (const Specialisation& variant : variants({64, 1, 1})) {
    CAPTURE(name(variant));
    const auto code = compile_ir(module, variant);
    for (const std::uint32_t wrapped : {0u, 5u, 20u, 40u})  // threads below have an index of almost 2^32
      for (const std::uint32_t skipped : {wrapped, wrapped + 3, wrapped + 20}) {
        CAPTURE(wrapped);
        CAPTURE(skipped);
        device.clear();
        auto in = device.allocate<std::uint32_t>(64);
        auto out = device.allocate<std::uint32_t>(64);
        for (std::uint32_t t = 0; t < 64; ++t) in[t] = 7 * t;
        const std::uint32_t running = std::min(20u, 64 - skipped);
        REQUIRE(!device.launch(
            *code, variant, {1, 1, 1},
            Params().add(in.data()).add(out.data()).add(0u - wrapped).add(skipped).add(running)));
        for (std::uint32_t t = 0; t < 64; ++t) {
          const bool runs = t + wrapped >= skipped && t + wrapped < skipped + running;
          REQUIRE(out[t] == (runs ? 7 * t + 1 : 0));
        }
      }
  }
}

}  // namespace
}  // namespace quern::cpu::test
