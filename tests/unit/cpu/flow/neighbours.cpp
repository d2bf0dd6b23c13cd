// SPDX-License-Identifier: Apache-2.0
// Accesses to neighbouring elements that become one access.
#include <doctest/doctest.h>

#include <functional>

#include "cpu/cuts/passes.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Space;
using ir::Type;
using ir::Value;

/// The number of loads and stores after the pass.
std::size_t accesses_left(const IrBuilder& b) {
  Specialisation specialisation;
  specialisation.block = {256, 1, 1};
  ir::Module module = b.module();
  cuts::Plan plan;
  plan.module = &module;
  plan.function = &module.functions[0];
  plan.has_full = true;
  REQUIRE(cuts::analyse_uncut(module.functions[0], plan, specialisation).has_value());
  REQUIRE(cuts::merge_neighbours(module.functions[0], plan, specialisation).has_value());
  std::size_t count = 0;
  for (const ir::Block& block : module.functions[0].blocks)
    for (const Value value : block.insts) {
      const ir::Op op = module.functions[0][value].op;
      count += op == ir::Op::load || op == ir::Op::store ? 1 : 0;
    }
  return count;
}

/// Threads that read a record of `in` and write one of `out`, both `stride` bytes long. The number of thread
/// i's record is numbers[i].
struct Records {
  IrBuilder b;
  Value in = b.param(Type::i64), out = b.param(Type::i64), numbers = b.param(Type::i64);
  Value stride = b.param(Type::i32);
  Value index = b.zext(Type::i64, b.global_index());

  /// The address of thread `of`'s record.
  Value record(Value base, Value of) { return b.add(base, b.mul(of, b.zext(Type::i64, stride))); }
  Value by_data() { return b.zext(Type::i64, b.load(Type::i32, b.add(numbers, b.shl(index, 2)))); }
};

TEST_CASE("fields of records that are apart are loaded at once") {
  struct Case {
    const char* what;
    std::function<void(Records&)> emit;
    std::size_t accesses;
  };
  const auto load_all = [](IrBuilder& b, Value address, std::initializer_list<int> offsets,
                           Type type = Type::i32) {
    for (const int offset : offsets) b.load(type, address, Space::global, offset);
  };
  const Case cases[] = {
      {"four words of records by a stride known at run time",
       [&](Records& r) { load_all(r.b, r.record(r.in, r.index), {0, 4, 8, 12}); }, 1},
      {"in another order, and seven",
       [&](Records& r) { load_all(r.b, r.record(r.in, r.index), {8, 24, 4, 0, 16, 12, 20}); }, 2},
      {"three words", [&](Records& r) { load_all(r.b, r.record(r.in, r.index), {4, 0, 8}); }, 1},
      {"records of 16 bytes",
       [&](Records& r) { load_all(r.b, r.b.add(r.in, r.b.shl(r.index, 4)), {0, 4, 8, 12}); }, 1},
      {"records of 8 bytes, of which two are read",
       [&](Records& r) { load_all(r.b, r.b.add(r.in, r.b.shl(r.index, 3)), {0, 4, 8, 12}); }, 2},
      {"neighbours of lanes that are neighbours",
       [&](Records& r) { load_all(r.b, r.b.add(r.in, r.b.shl(r.index, 2)), {0, 4, 8, 12}); }, 4},
      {"records that the data choose",
       [&](Records& r) { load_all(r.b, r.record(r.in, r.by_data()), {0, 4}); }, 2},
      {"doubles", [&](Records& r) { load_all(r.b, r.record(r.in, r.index), {0, 8, 16, 24}, Type::i64); }, 2},
      {"with a gap", [&](Records& r) { load_all(r.b, r.record(r.in, r.index), {0, 8}); }, 2},
      {"one address for all", [&](Records& r) { load_all(r.b, r.in, {0, 4}); }, 2},
      {"a store between them",
       [&](Records& r) {
         const Value at = r.record(r.in, r.index);
         load_all(r.b, at, {0});
         r.b.store(r.out, r.b.i32(1));
         load_all(r.b, at, {4});
       },
       3},
      {"a store to shared memory between them",
       [&](Records& r) {
         const Value at = r.record(r.in, r.index);
         load_all(r.b, at, {0});
         r.b.store(r.b.i64(0), r.b.i32(1), Space::shared);
         load_all(r.b, at, {4});
       },
       2},
      {"a barrier between them",
       [&](Records& r) {
         const Value at = r.record(r.in, r.index);
         load_all(r.b, at, {0});
         r.b.barrier();
         load_all(r.b, at, {4});
       },
       2},
      {"lines of their own",
       [&](Records& r) {
         const Value at = r.record(r.in, r.index);
         r.b.line(1);
         load_all(r.b, at, {0});
         r.b.line(2);
         load_all(r.b, at, {4});
       },
       1},
  };
  for (const Case& each : cases) {
    Records records;
    each.emit(records);
    records.b.ret();
    CHECK_MESSAGE(accesses_left(records.b) == each.accesses, each.what);
  }
}

/// Four neighbours of each thread in shared memory, whose indices 8 * tid | k are computed each by itself, as
/// compilers do. `between`: what happens after the second load.
std::size_t shared_loads_left(const std::function<void(IrBuilder&)>& between, bool may_wrap = false) {
  IrBuilder b;
  const Value start = b.param(Type::i32);
  const Value first = b.shl(may_wrap ? b.add(b.tid(), start) : b.tid(), 3);
  for (int k = 0; k < 4; ++k) {
    if (k == 2) between(b);
    const Value index = k == 0 ? first : b.or_(first, b.i32(k));
    b.load(Type::i32, b.shl(b.sext(Type::i64, index), 2), Space::shared);
  }
  b.ret();
  return accesses_left(b);
}

TEST_CASE("neighbours in shared memory are loaded at once, whose indices are computed one by one") {
  CHECK(shared_loads_left([](IrBuilder&) {}) == 1);
  CHECK(shared_loads_left([](IrBuilder& of) { of.barrier(); }) == 2);
  CHECK(shared_loads_left([](IrBuilder& of) { of.store(of.i64(64), of.i32(1), Space::shared); }) == 3);
  CHECK(shared_loads_left([](IrBuilder& of) { of.store(of.i64(64), of.i32(1), Space::generic); }) == 3);
  CHECK(shared_loads_left([](IrBuilder& of) { of.store(of.i64(64), of.i32(1), Space::global); }) == 2);
  // An or is a sum only if the numbers have no bits in common.
  IrBuilder b;
  const Value first = b.shl(b.tid(), 3);
  for (const int k : {7, 8})
    b.load(Type::i32, b.shl(b.sext(Type::i64, b.or_(first, b.i32(k))), 2), Space::shared);
  b.ret();
  CHECK(accesses_left(b) == 2);
  // The lowest bits of an index are known even where its sums wrap, but not whether widening it adds as much.
  CHECK(shared_loads_left([](IrBuilder&) {}, true) == 4);
}

/// Writes the words of a block to shared memory, and reads them in the order of CUB's blocked arrangement,
/// with a word of padding behind 32.
TEST_CASE("threads read their neighbours in shared memory") {
  constexpr std::uint32_t kThreads = 64, kItems = 8;
  IrBuilder b;
  const Value out = b.param(Type::i64), in = b.param(Type::i64);
  const auto padded = [&](Value index) {
    return b.shl(b.sext(Type::i64, b.add(index, b.ashr(index, 5))), 2);
  };
  for (std::uint32_t item = 0; item < kItems; ++item) {
    const Value index = b.add(b.tid(), b.i32(item * kThreads));
    b.store(padded(index), b.load(Type::i32, b.add(in, b.shl(b.zext(Type::i64, index), 2))), Space::shared);
  }
  b.barrier();
  const Value first = b.shl(b.tid(), 3);
  Value sum = b.i32(0);
  for (std::uint32_t item = 0; item < kItems; ++item) {
    const Value index = item == 0 ? first : b.or_(first, b.i32(item));
    sum = b.add(b.mul(sum, b.i32(31)), b.load(Type::i32, padded(index), Space::shared));
  }
  b.store(b.add(out, b.shl(b.zext(Type::i64, b.tid()), 2)), sum);
  b.ret();
  ir::Module module = b.module();
  module.static_shared_bytes = 4 * (kThreads * kItems + kThreads);
  TestDevice device;
  for (const Specialisation& variant : variants({kThreads, 1, 1})) {
    CAPTURE(name(variant));
    device.clear();
    auto to = device.allocate<std::uint32_t>(kThreads),
         from = device.allocate<std::uint32_t>(kThreads * kItems);
    for (std::uint32_t i = 0; i < from.size(); ++i) from[i] = i * 2654435761u;
    const auto code = compile_ir(module, variant);
    REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(to.data()).add(from.data())));
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      std::uint32_t expected = 0;
      for (std::uint32_t item = 0; item < kItems; ++item) expected = expected * 31 + from[t * kItems + item];
      REQUIRE(to[t] == expected);
    }
  }
}

TEST_CASE("fields of records that are apart are stored at once") {
  const auto stores = [](std::initializer_list<int> offsets, bool load_between = false) {
    Records r;
    const Value at = r.record(r.out, r.index);
    std::size_t made = 0;
    for (const int offset : offsets) {
      if (load_between && made++ == 1) r.b.load(Type::i32, r.in);
      r.b.store(at, r.b.i32(offset), Space::global, offset);
    }
    r.b.ret();
    return accesses_left(r.b);
  };
  CHECK(stores({0, 4, 8}) == 2);
  CHECK(stores({0, 4, 8, 12}) == 1);
  CHECK(stores({12, 0, 8, 4, 16}) == 2);
  CHECK(stores({0, 4}, true) == 3);
  CHECK(stores({4, 4, 0}) == 2);
}

TEST_CASE("stores of lines of their own stay apart") {
  Records r;
  const Value at = r.record(r.out, r.index);
  for (const std::uint32_t line : {1u, 2u}) {
    r.b.line(line);
    r.b.store(at, r.b.i32(line), Space::global, 4 * std::int64_t{line});
  }
  r.b.ret();
  CHECK(accesses_left(r.b) == 2);
}

TEST_CASE("records are copied and overwritten as by each access alone") {
  constexpr std::uint32_t kThreads = 96, kBlocks = 2, kAll = kThreads * kBlocks, kWords = 9;
  for (const bool by_data : {false, true}) {
    Records r;
    const Value number = by_data ? r.by_data() : r.index;
    const Value from = r.record(r.in, number), to = r.record(r.out, number);
    std::vector<Value> words;
    for (const int word : {3, 0, 1, 2, 5, 4, 6})
      words.push_back(r.b.load(Type::i32, from, Space::global, 4 * word));
    // words: 3 0 1 2 5 4 6
    r.b.store(to, words[0], Space::global, 0);
    r.b.store(to, words[1], Space::global, 4);
    r.b.store(to, words[2], Space::global, 8);
    r.b.store(to, words[3], Space::global, 4);  // again
    r.b.store(to, words[4], Space::global, 12);
    r.b.store(to, words[5], Space::global, 0);  // again
    const Value again = r.b.load(Type::i32, to, Space::global, 4);
    r.b.store(to, r.b.add(again, words[6]), Space::global, 16);
    r.b.ret();
    const ir::Module module = r.b.module();
    TestDevice device;
    for (const std::uint32_t stride : {20u, 36u})
      for (const Specialisation& variant : variants({kThreads, 1, 1})) {
        CAPTURE(name(variant));
        device.clear();
        auto in = device.allocate<std::uint32_t>(kAll * kWords),
             out = device.allocate<std::uint32_t>(kAll * kWords);
        auto numbers = device.allocate<std::uint32_t>(kAll);
        for (std::uint32_t i = 0; i < in.size(); ++i) in[i] = i * 2654435761u;
        for (auto& word : out) word = 7;
        for (std::uint32_t i = 0; i < kAll; ++i)
          numbers[i] = i * 5 % kAll;  // 5 and kAll have no common factor
        const auto code = compile_ir(module, variant);
        REQUIRE(!device.launch(*code, variant, {kBlocks, 1, 1},
                               Params().add(in.data()).add(out.data()).add(numbers.data()).add(stride)));
        const std::uint32_t pitch = stride / 4;
        for (std::uint32_t i = 0; i < kAll; ++i) {
          const auto word = [&](std::uint32_t k) { return (i * pitch + k) * 2654435761u; };
          const std::uint32_t expected[] = {word(4), word(2), word(1), word(5), word(2) + word(6)};
          for (std::uint32_t k = 0; k < 5; ++k) REQUIRE(out[i * pitch + k] == expected[k]);
          for (std::uint32_t k = 5; k < pitch; ++k) REQUIRE(out[i * pitch + k] == 7);
        }
      }
  }
}

}  // namespace
}  // namespace quern::cpu::test
