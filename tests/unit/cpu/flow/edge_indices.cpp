// SPDX-License-Identifier: Apache-2.0
// Indices that stop at an edge or are reflected. Full code assumes that no lane of its warp is at the edge.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Op;
using ir::Space;
using ir::Type;
using ir::Value;

constexpr std::uint32_t kThreads = 96;
constexpr std::uint64_t kUnset = 0x1234'5678'9abc'def0u;

/// An index at an edge: the IR of it, and the number in C++. Numbers wrap at the width of the type.
struct Form {
  const char* what;
  std::function<Value(IrBuilder&, Type, Value index, Value bound)> emit;
  std::function<std::uint64_t(std::int64_t index, std::int64_t bound, std::uint64_t unsigned_index,
                              std::uint64_t unsigned_bound)>
      number;
};

const std::vector<Form>& forms() {
  using Signed = std::int64_t;
  using Unsigned = std::uint64_t;
  const auto bits = [](Signed number) { return static_cast<Unsigned>(number); };
  const auto two = [](Op op) {
    return [op](IrBuilder& b, Type type, Value index, Value bound) { return b.op(op, type, {index, bound}); };
  };
  const auto choose = [](Icmp how, auto if_true, auto if_false) {
    return [=](IrBuilder& b, Type type, Value index, Value bound) {
      const Value condition = b.icmp(how, index, bound);
      return b.select(condition, if_true(b, type, index, bound), if_false(b, type, index, bound));
    };
  };
  const auto same = [](IrBuilder&, Type, Value index, Value) { return index; };
  const auto edge = [](IrBuilder&, Type, Value, Value bound) { return bound; };
  const auto none = [](IrBuilder& b, Type type, Value, Value) { return b.constant(type, 0); };
  const auto before = [](IrBuilder& b, Type type, Value index, Value) {
    return b.sub(index, b.constant(type, 1));
  };
  const auto mirrored = [](IrBuilder& b, Type, Value index, Value bound) { return b.sub(bound, index); };
  const auto around = [](IrBuilder& b, Type, Value index, Value bound) { return b.sub(index, bound); };
  static const std::vector<Form> all = {
      {"smin", two(Op::smin), [=](Signed i, Signed n, Unsigned, Unsigned) { return bits(std::min(i, n)); }},
      {"smax", two(Op::smax), [=](Signed i, Signed n, Unsigned, Unsigned) { return bits(std::max(i, n)); }},
      {"umin", two(Op::umin), [](Signed, Signed, Unsigned i, Unsigned n) { return std::min(i, n); }},
      {"umax", two(Op::umax), [](Signed, Signed, Unsigned i, Unsigned n) { return std::max(i, n); }},
      {"smin of smax of 0",
       [](IrBuilder& b, Type type, Value index, Value bound) {
         return b.op(Op::smin, type, {bound, b.op(Op::smax, type, {index, b.constant(type, 0)})});
       },
       [=](Signed i, Signed n, Unsigned, Unsigned) { return bits(std::min(std::max<Signed>(i, 0), n)); }},
      {"iabs", [](IrBuilder& b, Type type, Value index, Value) { return b.op(Op::iabs, type, {index}); },
       [](Signed i, Signed, Unsigned u, Unsigned) { return i < 0 ? 0 - u : u; }},
      {"slt, mirrored", choose(Icmp::slt, mirrored, same),
       [](Signed i, Signed n, Unsigned u, Unsigned v) { return i < n ? v - u : u; }},
      {"sge, around", choose(Icmp::sge, around, same),
       [](Signed i, Signed n, Unsigned u, Unsigned v) { return i >= n ? u - v : u; }},
      {"ult, to the edge", choose(Icmp::ult, same, edge),
       [](Signed, Signed, Unsigned u, Unsigned v) { return u < v ? u : v; }},
      {"uge, 0", choose(Icmp::uge, none, same),
       [](Signed, Signed, Unsigned u, Unsigned v) { return u >= v ? 0 : u; }},
      {"ugt, before", choose(Icmp::ugt, before, same),
       [](Signed, Signed, Unsigned u, Unsigned v) { return u > v ? u - 1 : u; }},
      {"eq, 0", choose(Icmp::eq, none, before),
       [](Signed, Signed, Unsigned u, Unsigned v) { return u == v ? 0 : u - 1; }},
      {"the bound added to a negative one",
       [](IrBuilder& b, Type type, Value index, Value bound) {
         const Value sign = b.op(Op::ashr, type, {index, b.i32(type == Type::i64 ? 63 : 31)});
         return b.add(index, b.and_(sign, bound));
       },
       [](Signed i, Signed, Unsigned u, Unsigned v) { return i < 0 ? u + v : u; }},
      {"ne, before", choose(Icmp::ne, before, edge),
       [](Signed, Signed, Unsigned u, Unsigned v) { return u != v ? u - 1 : v; }},
  };
  return all;
}

/// The distance of a thread's index from the start: the thread's number, its complement, or a product that
/// wraps.
struct Lanes {
  Type type;
  bool complement = false;
  std::uint64_t factor = 1;
  std::uint64_t distance(std::uint64_t thread) const { return (complement ? ~thread : thread) * factor; }
};

/// out[tid] = the form of start + the lane's distance, and n. An address is computed from it, too, so
/// that it is an index; what it adds to the address is shifted out.
ir::Module program(const Form& form, const Lanes& lanes) {
  IrBuilder b;
  const Type type = lanes.type;
  const Value out = b.param(Type::i64);
  Value start = b.param(Type::i64), n = b.param(Type::i64), thread = b.tid();
  if (type == Type::i32)
    start = b.trunc(type, start), n = b.trunc(type, n);
  else
    thread = b.zext(type, thread);
  if (lanes.complement) thread = b.xor_(thread, b.constant(type, ~std::uint64_t{0}));
  if (lanes.factor != 1) thread = b.mul(thread, b.constant(type, lanes.factor));
  const Value number = form.emit(b, type, b.add(start, thread), n);
  const Value wide = type == Type::i64 ? number : b.sext(Type::i64, number);
  const Value nothing = b.shl(b.shl(wide, 32), 32);
  const Value address = b.add(b.add(out, nothing), b.shl(b.zext(Type::i64, b.tid()), 3));
  b.store(address, wide);
  b.ret();
  return b.module();
}

std::uint64_t expected(const Form& form, Type type, std::int64_t start, std::uint64_t thread,
                       std::int64_t n) {
  const std::uint64_t index = static_cast<std::uint64_t>(start) + thread,
                      bound = static_cast<std::uint64_t>(n);
  if (type == Type::i64) return form.number(static_cast<std::int64_t>(index), n, index, bound);
  const auto narrow = [](std::uint64_t bits) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
  };
  const std::uint64_t result = form.number(narrow(index), narrow(bound), static_cast<std::uint32_t>(index),
                                           static_cast<std::uint32_t>(bound));
  return static_cast<std::uint64_t>(std::int64_t{narrow(result)});
}

TEST_CASE("an index stops at the edge, or is reflected there, in each lane") {
  TestDevice device;
  std::vector<std::pair<std::int64_t, std::int64_t>> cases;  // start and n
  for (const std::int64_t least : {std::int64_t{0}, std::int64_t{std::numeric_limits<std::int32_t>::max()},
                                   std::int64_t{std::numeric_limits<std::int32_t>::min()},
                                   std::numeric_limits<std::int64_t>::max() - 200})
    for (const std::int64_t start : {-100, 0, 50})
      for (const std::int64_t n : {-33, -1, 0, 1, 63, 200}) cases.emplace_back(least + start, least + n);
  for (const std::int64_t start : {-40, 0})
    cases.emplace_back(start, std::numeric_limits<std::int64_t>::min());
  const Lanes all[] = {{Type::i32},
                       {Type::i64},
                       {Type::i32, true},
                       {Type::i64, true},
                       {Type::i32, false, std::uint64_t{1} << 28},
                       {Type::i32, false, std::uint64_t{1} << 31},
                       {Type::i64, false, std::uint64_t{1} << 60},
                       {Type::i64, false, std::uint64_t{1} << 27}};
  for (const Form& form : forms())
    for (const Lanes& lanes : all) {
      const ir::Module module = program(form, lanes);
      for (const Specialisation& variant : variants({kThreads, 1, 1})) {
        const auto code = compile_ir(module, variant);
        for (std::size_t at = 0; at < cases.size(); at += lanes.factor == 1 ? 1 : 5) {
          const auto [start, n] = cases[at];
          device.clear();
          auto out = device.allocate<std::uint64_t>(kThreads);
          for (std::uint32_t t = 0; t < kThreads; ++t) out[t] = kUnset;
          REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(out.data()).add(start).add(n)));
          for (std::uint32_t t = 0; t < kThreads; ++t) {
            if (out[t] == expected(form, lanes.type, start, lanes.distance(t), n)) continue;
            CAPTURE(form.what);
            CAPTURE(name(variant));
            CAPTURE(static_cast<int>(lanes.type));
            CAPTURE(lanes.complement);
            CAPTURE(lanes.factor);
            CAPTURE(start);
            CAPTURE(n);
            CAPTURE(t);
            FAIL("stored ", out[t]);
          }
        }
      }
    }
}

/// Nothing but the test of the minimum reads the index: it stays known up to the end of the block that tests.
TEST_CASE("a gang tests an index that nothing else reads") {
  constexpr std::uint32_t kWidth = 64;
  IrBuilder b;
  const Value out = b.param(Type::i64), in = b.param(Type::i64), n = b.param(Type::i32),
              rounds = b.param(Type::i32);
  const Value row = b.add(b.tid(1), b.shl(b.special(ir::Special::ctaid_y), 3));
  const Value inside = b.op(Op::smax, Type::i32, {row, b.i32(0)});
  const Value clamped = b.op(Op::smin, Type::i32, {inside, b.sub(n, b.i32(1))});
  const Value place = b.add(b.mul(clamped, b.i32(kWidth)), b.tid(0));
  const Value from = b.add(in, b.shl(b.sext(Type::i64, place), 2));
  const auto entry = b.here(), loop = b.block(), done = b.block();
  b.br(loop);
  b.at(loop);
  const Value round = b.phi(Type::i32, {{entry, b.i32(0)}}), sum = b.phi(Type::i32, {{entry, b.i32(0)}});
  const Value own = b.shl(b.zext(Type::i64, b.add(b.tid(0), b.shl(b.tid(1), 3))), 2);
  b.store(own, b.load(Type::i32, from), Space::shared);
  b.barrier();
  const Value next_sum = b.add(sum, b.load(Type::i32, b.xor_(own, b.i64(4)), Space::shared));
  b.barrier();
  const Value next = b.add(round, b.i32(1));
  b.incoming(round, loop, next);
  b.incoming(sum, loop, next_sum);
  b.cond_br(b.icmp(Icmp::slt, next, rounds), loop, done);
  b.at(done);
  const Value total = b.phi(Type::i32, {{loop, next_sum}});
  const Value thread = b.add(b.tid(0), b.shl(b.add(b.tid(1), b.shl(b.special(ir::Special::ctaid_y), 3)), 3));
  b.store(b.add(out, b.shl(b.zext(Type::i64, thread), 2)), total);
  b.ret();
  ir::Module module = b.module();
  module.static_shared_bytes = 256;
  TestDevice device;
  for (const Specialisation& variant : variants({8, 8, 1}))
    for (const std::int32_t height : {5, 16, 100}) {
      CAPTURE(name(variant));
      CAPTURE(height);
      device.clear();
      auto to = device.allocate<std::int32_t>(128), data = device.allocate<std::int32_t>(kWidth * 16);
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::int32_t>(i * i);
      const auto code = compile_ir(module, variant);
      REQUIRE(!device.launch(*code, variant, {1, 2, 1},
                             Params().add(to.data()).add(data.data()).add(height).add(std::int32_t{3})));
      for (std::int32_t y = 0; y < 16; ++y)
        for (std::int32_t x = 0; x < 8; ++x)
          REQUIRE(to[static_cast<std::size_t>(y * 8 + x)] ==
                  3 * data[static_cast<std::size_t>(std::min(y, height - 1) * 64 + (x ^ 1))]);
    }
}

/// The warps of a gang leave full code at the test, each by itself, and read the index there again.
TEST_CASE("all lanes of a warp of a gang are beyond the edge") {
  IrBuilder b;
  const auto entry = b.here(), loop = b.block(), done = b.block();
  const Value out = b.param(Type::i64), in = b.param(Type::i64), n = b.param(Type::i32),
              w = b.param(Type::i32);
  const Value beyond = b.add(b.add(b.tid(0), w), b.i32(1));
  b.br(loop);
  b.at(loop);
  const Value round = b.phi(Type::i32, {{entry, b.i32(0)}}), sum = b.phi(Type::i32, {{entry, b.i32(1)}});
  const auto element = [&](Value index) {
    return b.load(Type::i32, b.add(in, b.shl(b.sext(Type::i64, index), 2)));
  };
  const Value next = b.add(round, b.i32(1)), next_sum = b.add(b.mul(sum, b.i32(7)), element(round));
  b.incoming(round, loop, next);
  b.incoming(sum, loop, next_sum);
  b.cond_br(b.icmp(Icmp::slt, next, n), loop, done);
  b.at(done);
  const Value total = b.phi(Type::i32, {{loop, next_sum}});
  const Value inside = b.op(Op::smax, Type::i32, {beyond, b.i32(1)});
  const Value clamped = b.op(Op::smin, Type::i32, {inside, b.sub(w, b.i32(1))});
  const Value thread = b.add(b.tid(0), b.shl(b.tid(1), 5));
  b.store(b.add(out, b.shl(b.zext(Type::i64, thread), 2)), b.add(b.mul(total, b.i32(7)), element(clamped)));
  b.ret();
  TestDevice device;
  for (const std::uint32_t rows : {1u, 2u, 4u})
    for (const Specialisation& variant : variants({32, rows, 1})) {
      CAPTURE(name(variant));
      CAPTURE(rows);
      const auto code = compile_ir(b.module(), variant);
      for (const std::int32_t width : {2, 100}) {
        device.clear();
        auto to = device.allocate<std::uint32_t>(32 * rows), data = device.allocate<std::uint32_t>(256);
        for (std::uint32_t i = 0; i < data.size(); ++i) data[i] = i * i + 3;
        REQUIRE(!device.launch(*code, variant, {1, 1, 1},
                               Params().add(to.data()).add(data.data()).add(std::int32_t{3}).add(width)));
        std::uint32_t expected = 1;
        for (std::uint32_t i = 0; i < 3; ++i) expected = expected * 7 + data[i];
        expected = expected * 7 + data[static_cast<std::size_t>(width - 1)];
        for (const std::uint32_t got : to) REQUIRE(got == expected);
      }
    }
}

}  // namespace
}  // namespace quern::cpu::test
