// SPDX-License-Identifier: Apache-2.0
// Loads and stores of lanes that are a number apart which is known at run time alone: the channels of an
// image, arrays with strides. Full code takes vectors for some of these numbers.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Type;
using ir::Value;

constexpr std::uint32_t kWide = 16, kHigh = 6;  ///< a block of half warps in a row
constexpr std::uint32_t kMostStep = 9, kRow = kWide * kMostStep, kElements = kRow * kHigh + 64;

/// out[y * kRow + x * step] = in[y * kRow + x * step] + 1 for some x: in elements, or by strides in bytes.
ir::Module copy(Type type, bool by_stride, bool parts, std::int64_t offset) {
  IrBuilder b;
  const Value out = b.param(Type::i64), in = b.param(Type::i64), step = b.param(Type::i64),
              n = b.param(Type::i32);
  const Value x = b.tid(0), y = b.tid(1);
  const auto inside = b.block(), done = b.block();
  const std::int64_t bytes = ir::byte_size(type);
  if (parts)
    b.cond_br(b.icmp(ir::Icmp::ult, x, n), inside, done);
  else
    b.br(inside);
  b.at(inside);
  const Value row = b.mul(b.zext(Type::i64, y), b.i64(kRow));
  const Value column = b.mul(b.zext(Type::i64, x), step);
  const Value place =
      by_stride ? b.add(b.mul(row, b.i64(bytes)), column) : b.mul(b.add(row, column), b.i64(bytes));
  const Value loaded = b.load(type, b.add(in, place), ir::Space::global, offset * bytes);
  b.store(b.add(out, place), b.add(loaded, b.constant(type, 1)), ir::Space::global, offset * bytes);
  b.br(done);
  b.at(done).ret();
  return b.module();
}

TEST_CASE("lanes that are a number apart which is known at run time are loaded and stored") {
  TestDevice device;
  for (const Type type : {Type::i8, Type::i16, Type::i32, Type::i64})
    for (const auto& [by_stride, parts] :
         {std::pair{false, false}, {true, false}, {false, true}, {true, true}})
      for (const std::int64_t offset : {0, 2}) {
        const ir::Module module = copy(type, by_stride, parts, offset);
        const std::size_t bytes = ir::byte_size(type);
        for (const Specialisation& variant : variants({kWide, kHigh, 1})) {
          const auto code = compile_ir(module, variant);
          for (std::int64_t step = 0; step <= std::int64_t{kMostStep}; ++step)
            for (const std::int32_t n : {16, 5}) {
              device.clear();
              auto in = device.allocate<std::uint8_t>(kElements * 8),
                   out = device.allocate<std::uint8_t>(kElements * 8);
              std::vector<std::uint8_t> expected(kElements * 8, 0x5a);
              for (std::size_t i = 0; i < kElements * 8; ++i)
                in[i] = static_cast<std::uint8_t>(i * 7 + i / 256), out[i] = 0x5a;
              for (std::uint32_t y = 0; y < kHigh; ++y)
                for (std::uint32_t x = 0; x < kWide; ++x) {
                  if (parts && x >= static_cast<std::uint32_t>(n)) continue;
                  const std::size_t at =
                      (y * kRow + x * static_cast<std::size_t>(step) + static_cast<std::size_t>(offset)) *
                      bytes;
                  std::uint64_t number = 0;
                  std::memcpy(&number, in.data() + at, bytes);
                  ++number;
                  std::memcpy(expected.data() + at, &number, bytes);
                }
              const std::int64_t given = by_stride ? step * static_cast<std::int64_t>(bytes) : step;
              REQUIRE(!device.launch(*code, variant, {1, 1, 1},
                                     Params().add(out.data()).add(in.data()).add(given).add(n)));
              const bool same = std::memcmp(out.data(), expected.data(), expected.size()) == 0;
              CAPTURE(name(variant));
              CAPTURE(bytes);
              CAPTURE(by_stride);
              CAPTURE(parts);
              CAPTURE(step);
              CHECK(same);
            }
        }
      }
}

}  // namespace
}  // namespace quern::cpu::test
