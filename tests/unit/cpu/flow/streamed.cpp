// SPDX-License-Identifier: Apache-2.0
// Stores that bypass the caches: which arrays they are for, and that memory contains the same afterwards.
#include <doctest/doctest.h>

#include "cpu/emit/emit.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Op;
using ir::Space;
using ir::Type;
using ir::Value;

Specialisation fastest() {
  Specialisation specialisation;
  specialisation.block = {256, 1, 1};
  specialisation.isa = emit::processor_isa();
  return specialisation;
}

Value element(IrBuilder& b, Value array, Value index) {
  return b.add(array, b.shl(b.zext(Type::i64, index), 2));
}

/// a[i] = b[i] + 1, preceded by `extra`. The parameters are at bytes 0 and 8.
template <class Extra>
std::uint64_t streamed_of(const Extra& extra) {
  IrBuilder b;
  const Value to = b.param(Type::i64), from = b.param(Type::i64);
  const Value index = b.global_index();
  extra(b, to, index);
  b.store(element(b, to, index), b.add(b.load(Type::i32, element(b, from, index)), b.i32(1)));
  b.ret();
  return compile_ir(b.module(), fastest())->streamed;
}

TEST_CASE("an array that the kernel only writes may be stored past the caches") {
  CHECK(streamed_of([](IrBuilder&, Value, Value) {}) == 1);
}

TEST_CASE("an array that the kernel reads, too, stays in the caches") {
  const auto reads = [](IrBuilder& b, Value to, Value index) {
    b.store(element(b, to, index), b.load(Type::i32, element(b, to, b.add(index, b.i32(5)))));
  };
  CHECK(streamed_of(reads) == 0);
}

TEST_CASE("nothing bypasses the caches if other workers may look for it while the kernel runs") {
  for (const Op op : {Op::fence, Op::atomic}) {
    const auto signals = [&](IrBuilder& b, Value to, Value) {
      if (op == Op::fence)
        b.op(op, Type::none, {});
      else
        b.op(op, Type::i32, {to, b.i32(1)}, 0, {.space = Space::global});
    };
    CAPTURE(ir::name(op));
    CHECK(streamed_of(signals) == 0);
  }
}

TEST_CASE("a kernel that computes long for each number leaves writing to the caches") {
  const auto computes = [](IrBuilder& b, Value to, Value index) {
    Value x = index;
    for (int i = 0; i < 100; ++i) x = b.mul(b.add(x, index), b.xor_(x, b.i32(i)));
    b.store(element(b, to, index), x);
  };
  CHECK(streamed_of(computes) == 0);
}

/// Thread t stores `count` numbers from t * 100 on, at each of them and at the block's 16 x 16 transposed
/// place.
ir::Module writer(std::uint32_t count) {
  IrBuilder b;
  const Value rows = b.param(Type::i64), tiles = b.param(Type::i64);
  const Value index = b.global_index();
  std::vector<Value> args{b.add(rows, b.mul(b.zext(Type::i64, index), b.i64(4 * count)))};
  for (std::uint32_t i = 0; i < count; ++i)
    args.push_back(b.add(b.mul(index, b.i32(100)), b.i32(static_cast<int>(i))));
  ir::Attributes attributes;
  attributes.count = static_cast<std::uint8_t>(count);
  attributes.space = Space::global;
  b.op(Op::store, Type::none, args, 0, attributes);
  const Value half = b.and_(b.tid(), b.i32(16)),
              place = b.add(b.mul(half, b.i32(16)), b.and_(b.tid(), b.i32(15)));
  b.store(element(b, tiles, b.add(b.mul(b.lshr(index, 5), b.i32(512)), place)), index);
  b.ret();
  return b.module();
}

TEST_CASE("memory contains the same whether stores bypass the caches or not, wherever an array begins") {
  TestDevice device;
  constexpr std::uint32_t kBlocks = 3, kGuard = 64;
  for (const std::uint32_t count : {1u, 2u, 4u})
    for (const std::uint32_t threads : {32u, 256u, 200u})
      for (const Specialisation& variant : variants({threads, 1, 1})) {
        const auto code = compile_ir(writer(count), variant);
        CAPTURE(name(variant));
        CAPTURE(count);
        const bool bypasses = !variant.dispatch && variant.opt_level != kQuickLevel;
        CHECK(code->streamed == (bypasses ? 3 : 0));
        for (const std::uint32_t shift : {0u, 4u, 12u, 16u})
          for (const std::uint64_t streams : {std::uint64_t{0}, ~std::uint64_t{0}}) {
            device.clear();
            device.streams = streams;
            const std::uint32_t all = kBlocks * threads;
            auto rows = device.allocate<std::uint32_t>(2 * kGuard + count * all);
            auto tiles = device.allocate<std::uint32_t>(2 * kGuard + 16 * all + 512);
            const std::uint32_t at = kGuard / 2 + shift;
            REQUIRE(!device.launch(*code, variant, {kBlocks, 1, 1},
                                   Params().add(rows.data() + at).add(tiles.data() + at)));
            std::vector<std::uint32_t> expected(rows.size()), places(tiles.size());
            for (std::uint32_t t = 0; t < all; ++t) {
              for (std::uint32_t i = 0; i < count; ++i) expected[at + t * count + i] = t * 100 + i;
              const std::uint32_t tid = t % threads;
              places[at + t / 32 * 512 + (tid & 16) * 16 + (tid & 15)] = t;
            }
            REQUIRE(std::vector<std::uint32_t>(rows.begin(), rows.end()) == expected);
            REQUIRE(std::vector<std::uint32_t>(tiles.begin(), tiles.end()) == places);
          }
      }
}

}  // namespace
}  // namespace quern::cpu::test
