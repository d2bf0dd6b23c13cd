// SPDX-License-Identifier: Apache-2.0
// Indices that go around an edge, and sums of bytes. Full code assumes of such remainders that they are the
// dividend, and computes such sums with 16 bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Op;
using ir::Type;
using ir::Value;

constexpr std::uint32_t kThreads = 96;

/// if (start + tid < n) out[tid] = (start + tid + distance) % n; signed or unsigned.
ir::Module around(Type type, bool is_signed, std::int64_t distance) {
  IrBuilder b;
  const auto inside = b.block(), over = b.block(), done = b.block();
  const Value out = b.param(Type::i64);
  Value start = b.param(Type::i64), n = b.param(Type::i64);
  Value thread = b.tid();
  if (type == Type::i32)
    start = b.trunc(type, start), n = b.trunc(type, n);
  else
    thread = b.zext(type, thread);
  const Value index = b.add(start, thread);
  const Value address = b.add(out, b.shl(b.zext(Type::i64, b.tid()), 3));
  b.cond_br(b.icmp(is_signed ? Icmp::slt : Icmp::ult, index, n), inside, over);
  b.at(inside);
  const Value moved = b.add(index, b.constant(type, static_cast<std::uint64_t>(distance)));
  const Value rest = b.op(is_signed ? Op::srem : Op::urem, type, {moved, n});
  b.store(address, type == Type::i32 ? b.zext(Type::i64, rest) : rest);
  b.br(done);
  b.at(over).br(done);
  b.at(done).ret();
  return b.module();
}

/// The expected number, or `otherwise` if the thread stores none.
template <class Number>
std::uint64_t wrapped(std::int64_t start, std::uint32_t thread, std::int64_t divisor, std::int64_t distance,
                      std::uint64_t otherwise) {
  using Unsigned = std::make_unsigned_t<Number>;
  const auto sum = [](auto a, auto b) {
    return static_cast<Number>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  };
  const auto n = static_cast<Number>(divisor);
  const Number index = sum(start, thread);
  if (index >= n) return otherwise;
  const Number moved = sum(index, distance);
  if constexpr (std::is_signed_v<Number>)
    if (n == -1) return 0;
  return static_cast<Unsigned>(static_cast<Number>(moved % n));
}

std::uint64_t expected(Type type, bool is_signed, std::int64_t start, std::uint32_t thread, std::int64_t n,
                       std::int64_t distance, std::uint64_t otherwise) {
  if (type == Type::i32)
    return is_signed ? wrapped<std::int32_t>(start, thread, n, distance, otherwise)
                     : wrapped<std::uint32_t>(start, thread, n, distance, otherwise);
  return is_signed ? wrapped<std::int64_t>(start, thread, n, distance, otherwise)
                   : wrapped<std::uint64_t>(start, thread, n, distance, otherwise);
}

TEST_CASE("a remainder of an index goes around the edge in each lane") {
  constexpr std::uint64_t kUnset = 0x1234'5678'9abc'def0u;
  TestDevice device;
  std::vector<std::pair<std::int64_t, std::int64_t>> cases;  // start and n
  for (const std::int64_t least : {std::int64_t{0}, std::int64_t{std::numeric_limits<std::int32_t>::max()},
                                   std::int64_t{std::numeric_limits<std::int32_t>::min()},
                                   std::numeric_limits<std::int64_t>::max() - 200})
    for (const std::int64_t start : {-40, -1, 0, 1, 50})
      for (const std::int64_t n : {-33, -1, 1, 2, 31, 32, 33, 64, 95, 96, 97, 200})
        if (least + n != 0) cases.emplace_back(least + start, least + n);
  for (const Type type : {Type::i32, Type::i64})
    for (const bool is_signed : {true, false})
      for (const std::int64_t distance : {-31, -1, 0, 1, 31}) {
        const ir::Module module = around(type, is_signed, distance);
        for (const Specialisation& variant : variants({kThreads, 1, 1})) {
          const auto code = compile_ir(module, variant);
          for (const auto& [start, n] : cases) {
            if (type == Type::i32 && static_cast<std::int32_t>(n) == 0) continue;
            device.clear();
            auto out = device.allocate<std::uint64_t>(kThreads);
            for (std::uint32_t t = 0; t < kThreads; ++t) out[t] = kUnset;
            REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(out.data()).add(start).add(n)));
            for (std::uint32_t t = 0; t < kThreads; ++t) {
              if (out[t] == expected(type, is_signed, start, t, n, distance, kUnset)) continue;
              CAPTURE(name(variant));
              CAPTURE(static_cast<int>(type));
              CAPTURE(is_signed);
              CAPTURE(distance);
              CAPTURE(start);
              CAPTURE(n);
              CAPTURE(t);
              FAIL("stored ", out[t]);
            }
          }
        }
      }
}

/// out[tid] = a * 127 - b * c, and if that is less than `bound`, the least of it and a; a is unsigned.
TEST_CASE("sums and products of bytes are those of wide numbers") {
  TestDevice device;
  for (const Type type : {Type::i32, Type::i64}) {
    IrBuilder b;
    const auto small = b.block(), large = b.block(), done = b.block();
    const Value out = b.param(Type::i64), in = b.param(Type::i64), bound = b.constant(type, 1000);
    const Value thread = b.zext(Type::i64, b.tid());
    const Value from = b.add(in, b.mul(thread, b.i64(3))), to = b.add(out, b.shl(thread, 3));
    const auto byte = [&](bool is_signed, std::int64_t offset) {
      const Value loaded = b.load(Type::i8, from, ir::Space::global, offset);
      return is_signed ? b.sext(type, loaded) : b.zext(type, loaded);
    };
    const Value x = byte(false, 0), y = byte(true, 1), z = byte(true, 2);
    const Value sum = b.sub(b.and_(b.mul(x, b.constant(type, 127)), b.constant(type, 0x3fff)), b.mul(y, z));
    const auto wide = [&](Value value) { return type == Type::i64 ? value : b.sext(Type::i64, value); };
    b.cond_br(b.icmp(Icmp::slt, sum, bound), small, large);
    b.at(small);
    b.store(to, wide(b.binary(Op::smin, sum, x)));
    b.br(done);
    b.at(large);
    b.store(to, wide(sum));
    b.br(done);
    b.at(done).ret();
    for (const Specialisation& variant : variants({kThreads, 1, 1})) {
      CAPTURE(name(variant));
      const auto code = compile_ir(b.module(), variant);
      constexpr std::uint8_t kBytes[] = {0, 1, 7, 127, 128, 129, 200, 255};
      for (unsigned round = 0; round < 24; ++round) {
        device.clear();
        auto bytes = device.allocate<std::uint8_t>(kThreads * 3);
        auto results = device.allocate<std::int64_t>(kThreads);
        for (std::size_t i = 0; i < kThreads * 3; ++i)
          bytes[i] = kBytes[(i * i + i / 5 + i * round + round / 3) % std::size(kBytes)];
        REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(results.data()).add(bytes.data())));
        for (std::size_t t = 0; t < kThreads; ++t) {
          const std::int64_t a = bytes[3 * t], p = static_cast<std::int8_t>(bytes[3 * t + 1]),
                             q = static_cast<std::int8_t>(bytes[3 * t + 2]);
          const std::int64_t number = (a * 127 & 0x3fff) - p * q;
          REQUIRE(results[t] == (number < 1000 ? std::min(number, a) : number));
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::cpu::test
