// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <thread>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Type;
using ir::Value;

/// out[global index] = what; out is the first parameter.
void store_at(IrBuilder& b, Value out, Value index, Value what) {
  const Value wide = b.zext(Type::i64, index);
  b.store(b.add(out, b.shl(wide, 2)), what);
}

TEST_CASE("every thread of every block runs once") {
  TestDevice device;
  for (const Extents block : {Extents{1, 1, 1}, Extents{32, 1, 1}, Extents{33, 1, 1}, Extents{256, 1, 1},
                              Extents{7, 3, 2}, Extents{1024, 1, 1}}) {
    IrBuilder b;
    const Value out = b.param(Type::i64);
    const Value size = b.mul(b.mul(b.ntid(0), b.ntid(1)), b.ntid(2));
    const Value block_index =
        b.add(b.ctaid(0), b.mul(b.nctaid(0), b.add(b.ctaid(1), b.mul(b.nctaid(1), b.ctaid(2)))));
    const Value thread = b.add(b.tid(0), b.mul(b.ntid(0), b.add(b.tid(1), b.mul(b.ntid(1), b.tid(2)))));
    const Value index = b.add(b.mul(block_index, size), thread);
    store_at(b, out, index, b.add(b.mul(index, b.i32(3)), b.i32(1)));
    b.ret();
    for (const Specialisation& variant : variants(block)) {
      CAPTURE(name(variant));
      device.clear();
      const std::size_t total = std::size_t{variant.threads()} * 3 * 2 * 2;
      auto memory = device.allocate<std::uint32_t>(total + 64);
      const auto code = compile_ir(b.module(), variant);
      device.chunk = 5;
      CHECK(!device.launch(*code, variant, {3, 2, 2}, Params().add(memory.data())));
      for (std::size_t i = 0; i < total; ++i) REQUIRE(memory[i] == 3 * i + 1);
      for (std::size_t i = total; i < total + 64; ++i) REQUIRE(memory[i] == 0);
    }
  }
}

/// The values that the `thread` threads of one block store, each at its own index of a zeroed array. The
/// kernel's parameters are out and number.
std::vector<std::uint32_t> run_block(TestDevice& device, const ir::Module& module,
                                     const Specialisation& variant, std::uint32_t number) {
  device.clear();
  auto out = device.allocate<std::uint32_t>(variant.threads());
  const auto code = compile_ir(module, variant);
  REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(out.data()).add(number)));
  return {out.begin(), out.end()};
}

TEST_CASE("an index that wraps between the lanes of a warp is widened lane by lane") {
  TestDevice device;
  for (const bool is_signed : {true, false}) {
    IrBuilder b;
    const Value out = b.param(Type::i64);
    const Value start = b.param(Type::i32);
    const Value index = b.add(start, b.mul(b.tid(), b.i32(3)));
    const Value wide = is_signed ? b.sext(Type::i64, index) : b.zext(Type::i64, index);
    store_at(b, out, b.tid(), b.trunc(Type::i32, b.lshr(wide, 24)));
    b.ret();
    for (const Specialisation& variant : variants({96, 1, 1}))
      for (const std::uint32_t number : {0u, 0x7fffffc0u, 0x80000000u, 0xffffff00u, 0xfffffff0u}) {
        CAPTURE(name(variant));
        CAPTURE(number);
        const auto result = run_block(device, b.module(), variant, number);
        for (std::uint32_t t = 0; t < 96; ++t) {
          const std::uint32_t narrow = number + 3 * t;
          const std::uint64_t expected =
              is_signed ? static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(narrow)})
                        : narrow;
          REQUIRE(result[t] == static_cast<std::uint32_t>(expected >> 24));
        }
      }
  }
}

TEST_CASE("a runtime stride that makes an index wrap is noticed too") {
  TestDevice device;
  IrBuilder b;
  const Value out = b.param(Type::i64);
  const Value stride = b.param(Type::i32);
  const Value wide = b.sext(Type::i64, b.add(b.mul(b.tid(), stride), b.i32(5)));
  store_at(b, out, b.tid(), b.trunc(Type::i32, b.lshr(wide, 20)));
  b.ret();
  for (const Specialisation& variant : variants({64, 1, 1}))
    for (const std::uint32_t number :
         {1u, 0xffffffffu, 0x02000000u, 0x04000000u, 0x7fffffffu, 0x80000000u, 0xfc000000u}) {
      CAPTURE(name(variant));
      CAPTURE(number);
      const auto result = run_block(device, b.module(), variant, number);
      for (std::uint32_t t = 0; t < 64; ++t) {
        const auto narrow = static_cast<std::int32_t>(t * number + 5);
        REQUIRE(result[t] ==
                static_cast<std::uint32_t>(static_cast<std::uint64_t>(std::int64_t{narrow}) >> 20));
      }
    }
}

TEST_CASE("16-bit floating-point values keep their bits, NaNs too, through branches and selections") {
  TestDevice device;
  for (const Type type : {Type::f16, Type::bf16}) {
    IrBuilder b;
    const auto odd = b.block();
    const auto even = b.block();
    const auto join = b.block();
    const Value out = b.param(Type::i64);
    const Value t = b.tid();
    const auto number = [&](Value bits) { return b.op(ir::Op::bitcast, type, {b.trunc(Type::i16, bits)}); };
    b.cond_br(b.icmp(Icmp::eq, b.and_(t, b.i32(1)), b.i32(1)), odd, even);
    b.at(odd);
    const Value x = number(b.add(b.i32(0x7c01), t));  // signaling NaNs of f16
    b.br(join);
    b.at(even);
    const Value y = number(b.add(b.i32(0xff81), t));  // and of bf16
    b.br(join);
    b.at(join);
    const Value either = b.phi(type, {{odd, x}, {even, y}});
    const Value late = b.icmp(Icmp::ult, t, b.i32(20));
    const Value chosen = b.select(late, either, number(b.add(t, b.i32(0x7f81))));
    store_at(b, out, t, b.zext(Type::i32, b.op(ir::Op::bitcast, Type::i16, {chosen})));
    b.ret();
    for (const Specialisation& variant : variants({64, 1, 1})) {
      CAPTURE(name(variant));
      const auto result = run_block(device, b.module(), variant, 0);
      for (std::uint32_t i = 0; i < 64; ++i)
        REQUIRE(result[i] == (i >= 20 ? 0x7f81 + i : i % 2 == 1 ? 0x7c01 + i : 0xff81 + i));
    }
  }
}

/// The maximum or minimum of two 16-bit numbers of one format, as in PTX: -0 is less than +0; the result is
/// NaN only if both are, or if `nan` is true. The formats order their numbers by sign and magnitude.
std::uint16_t extremum_of(std::uint16_t a, std::uint16_t b, bool least, bool nan, Type type) {
  const std::uint16_t infinity = type == Type::f16 ? 0x7c00 : 0x7f80;
  const bool a_is_nan = (a & 0x7fff) > infinity, b_is_nan = (b & 0x7fff) > infinity;
  if (nan ? a_is_nan || b_is_nan : a_is_nan && b_is_nan) return 0x7fff;
  if (a_is_nan) return b;
  if (b_is_nan) return a;
  const auto rank = [](std::uint16_t bits) {
    return bits & 0x8000 ? -1 - (bits & 0x7fff) : static_cast<int>(bits);
  };
  return (rank(a) < rank(b)) == least ? a : b;
}

// LLVM folds these operations into calls of host functions if one operand is uniform and the other one
// constant.
TEST_CASE("extremes of 16-bit floating-point values that all threads share") {
  TestDevice device;
  for (const Type type : {Type::f16, Type::bf16})
    for (const bool least : {false, true})
      for (const bool nan : {false, true}) {
        const std::vector<std::uint32_t> constants = {0, 0x8000, 0x3c00, 0x7fff};
        const std::vector<std::uint32_t> numbers = {0, 0x8000, 1, 0x8001, 0x3c00, 0xbc00, 0x7fff, 0x7f80};
        IrBuilder b;
        const Value out = b.param(Type::i64);
        const Value shared = b.param(Type::i32);
        const auto number = [&](Value bits) {
          return b.op(ir::Op::bitcast, type, {b.trunc(Type::i16, bits)});
        };
        const auto put = [&](std::size_t at, Value x, Value y) {
          const Value chosen =
              b.op(least ? ir::Op::fmin : ir::Op::fmax, type, {x, y}, 0, ir::Attributes{.nan = nan});
          store_at(b, out, b.i32(static_cast<std::int64_t>(at)),
                   b.zext(Type::i32, b.op(ir::Op::bitcast, Type::i16, {chosen})));
        };
        for (std::size_t i = 0; i < constants.size(); ++i) {
          put(2 * i, number(shared), number(b.i32(constants[i])));
          put(2 * i + 1, number(b.i32(constants[i])), number(shared));
        }
        b.ret();
        for (const Specialisation& variant : variants({1, 1, 1})) {
          CAPTURE(name(variant));
          const auto code = compile_ir(b.module(), variant);
          for (const std::uint32_t value : numbers) {
            device.clear();
            auto result = device.allocate<std::uint32_t>(2 * constants.size());
            REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(result.data()).add(value)));
            for (std::size_t i = 0; i < result.size(); ++i) {
              const std::uint16_t expected =
                  extremum_of(static_cast<std::uint16_t>(value), static_cast<std::uint16_t>(constants[i / 2]),
                              least, nan, type);
              CAPTURE(value);
              CAPTURE(constants[i / 2]);
              REQUIRE(result[i] == expected);
            }
          }
        }
      }
}

// One logical instruction under a mask with a constant in memory. LLVM computes a wrong table for it.
TEST_CASE("bits of another value, inserted where a condition holds") {
  TestDevice device;
  for (const Type type : {Type::i32, Type::i64}) {
    const unsigned width = ir::bit_size(type), position = width - 23;
    IrBuilder b;
    const Value out = b.param(Type::i64), flags = b.param(Type::i64);
    const Value x = b.load(type, b.param(Type::i64)), y = b.load(type, b.param(Type::i64));
    const Value t = b.tid();
    const auto place = [&](Value base, std::uint64_t bytes) {
      return b.add(base, b.op(ir::Op::imul, Type::i64,
                              {b.zext(Type::i64, t), b.i64(static_cast<std::int64_t>(bytes))}));
    };
    const Value wanted = b.icmp(Icmp::ne, b.load(Type::i32, place(flags, 4)), b.i32(0));
    const Value inserted = b.op(ir::Op::bfi, type, {y, x, b.i32(position), t});
    b.store(place(out, width / 8), b.select(wanted, inserted, x));
    b.ret();
    for (const Specialisation& variant : variants({32, 1, 1})) {
      CAPTURE(name(variant));
      const auto code = compile_ir(b.module(), variant);
      device.clear();
      auto result = device.allocate<std::byte>(32 * 8);
      auto chosen = device.allocate<std::uint32_t>(32);
      auto values = device.allocate<std::uint64_t>(2);
      values[0] = 0x0123456789abcdefu, values[1] = 0xfedcba9876543211u;
      for (std::uint32_t i = 0; i < 32; ++i) chosen[i] = i % 3;
      REQUIRE(!device.launch(*code, variant, {1, 1, 1},
                             Params().add(result.data()).add(chosen.data()).add(&values[0]).add(&values[1])));
      const std::uint64_t all = width == 64 ? ~std::uint64_t{0} : 0xffffffffu;
      for (std::uint64_t i = 0; i < 32; ++i) {
        const std::uint64_t mask = ((std::uint64_t{1} << i) - 1) << position & all;
        const std::uint64_t mixed = (values[0] & ~mask & all) | (values[1] << position & mask);
        std::uint64_t got = 0;
        std::memcpy(&got, result.data() + i * width / 8, width / 8);
        CHECK(got == (i % 3 == 0 ? values[0] & all : mixed));
      }
    }
  }
}

TEST_CASE("a thread that traps ends the launch with its trap") {
  TestDevice device;
  IrBuilder b;
  const auto fatal = b.block();
  const auto fine = b.block();
  const Value out = b.param(Type::i64);
  const Value which = b.param(Type::i32);
  b.cond_br(b.icmp(Icmp::eq, b.tid(), which), fatal, fine);
  b.at(fatal).trap(ir::Trap::assert);
  b.at(fine);
  store_at(b, out, b.tid(), b.i32(1));
  b.ret();
  for (const Specialisation& variant : variants({48, 1, 1})) {
    CAPTURE(name(variant));
    device.clear();
    auto memory = device.allocate<std::uint32_t>(48);
    const auto code = compile_ir(b.module(), variant);
    CHECK(device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data()).add(std::uint32_t{41})) ==
          ir::Trap::assert);
    CHECK(device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data()).add(std::uint32_t{7})) ==
          ir::Trap::assert);
    CHECK(!device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data()).add(std::uint32_t{48})));
    for (const std::uint32_t word : memory) CHECK(word == 1);
  }
}

TEST_CASE("a kernel too long for two versions runs its masked one") {
  TestDevice device;
  IrBuilder b;
  const auto odd = b.block();
  const auto even = b.block();
  const auto join = b.block();
  const Value out = b.param(Type::i64);
  Value x = b.tid();
  b.cond_br(b.icmp(Icmp::eq, b.and_(x, b.i32(1)), b.i32(1)), odd, even);
  b.at(odd);
  Value y = x;
  for (unsigned i = 0; i < 1200; ++i) y = b.add(b.xor_(y, b.i32(i)), x);
  b.br(join);
  b.at(even);
  b.br(join);
  b.at(join);
  x = b.phi(Type::i32, {{odd, y}, {even, x}});
  store_at(b, out, b.tid(), x);
  b.ret();
  const std::vector<Specialisation> all = variants({64, 1, 1});
  for (const Specialisation& variant : all) {
    if (variant.isa != all.back().isa) continue;  // LLVM takes long for narrower instruction sets
    CAPTURE(name(variant));
    const auto result = run_block(device, b.module(), variant, 0);
    for (std::uint32_t t = 0; t < 64; ++t) {
      std::uint32_t expected = t;
      for (std::uint32_t i = 0; i < 1200 && t % 2 == 1; ++i) expected = (expected ^ i) + t;
      REQUIRE(result[t] == expected);
    }
  }
}

TEST_CASE("kernels are compiled by several threads at a time") {
  IrBuilder b;
  const Value out = b.param(Type::i64);
  store_at(b, out, b.tid(), b.mul(b.tid(), b.tid()));
  b.ret();
  const std::vector<Specialisation> all = variants({64, 1, 1});
  std::vector<std::shared_ptr<const KernelCode>> code(all.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i)
    threads.emplace_back([&, i] { code[i] = compile_ir(b.module(), all[i]); });
  for (std::thread& thread : threads) thread.join();
  TestDevice device;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto memory = device.allocate<std::uint32_t>(64);
    CHECK(!device.launch(*code[i], all[i], {1, 1, 1}, Params().add(memory.data())));
    for (std::uint32_t t = 0; t < 64; ++t) REQUIRE(memory[t] == t * t);
  }
}

}  // namespace
}  // namespace quern::cpu::test
