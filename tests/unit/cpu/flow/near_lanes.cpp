// SPDX-License-Identifier: Apache-2.0
// Elements whose index follows from a coordinate: lanes that are near each other are taken out of registers.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cpu/compiler/lowering.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Op;
using ir::Type;
using ir::Value;

constexpr std::uint32_t kThreads = 96, kElements = 6000;

ir::Attributes elements(std::uint32_t count, std::uint32_t bytes) {
  ir::Attributes attributes;
  attributes.space = ir::Space::global;
  attributes.count = static_cast<std::uint8_t>(count);
  attributes.alignment = count * bytes;
  return attributes;
}

/// out[tid] = in[int(tid * step + start)], an element of `count` times `type`, whose parts are stored in the
/// opposite order. `by_floats`: or in[int(tid * step) + int(start)] with integers alone.
ir::Module resampled(Type type, std::uint32_t count, bool by_floats) {
  const std::uint32_t bytes = ir::byte_size(type);
  IrBuilder b;
  const Value out = b.param(Type::i64), in = b.param(Type::i64), step = b.param(Type::f32),
              start = b.param(Type::f32);
  ir::Attributes truncated;
  truncated.rounding = ir::Rounding::rz;
  const auto whole = [&](Value number) { return b.op(Op::f_to_s, Type::i32, {number}, 0, truncated); };
  const Value place = by_floats ? whole(b.ffma(b.op(Op::u_to_f, Type::f32, {b.tid()}), step, start))
                                : b.add(b.mul(b.xor_(b.tid(), whole(step)), b.i32(3)), whole(start));
  const Value pitch = b.i64(count * bytes);
  const Value from = b.add(in, b.mul(b.sext(Type::i64, place), pitch));
  const Value to = b.add(out, b.mul(b.zext(Type::i64, b.tid()), pitch));
  const Value loaded = b.op(Op::load, type, {from}, 0, elements(count, bytes));
  std::vector<Value> stored{to};
  for (std::uint32_t part = count; part > 0; --part)
    stored.push_back(count == 1 ? loaded : b.op(Op::extract, type, {loaded}, part - 1));
  b.op(Op::store, Type::none, stored, 0, elements(count, bytes));
  b.ret();
  return b.module();
}

std::string text_of(const ir::Module& module, Isa isa) {
  Specialisation specialisation;
  specialisation.block = {kThreads, 1, 1};
  specialisation.isa = isa;
  const auto text = stage_text(module, specialisation, Stage::llvm);
  REQUIRE(text.has_value());
  return *text;
}

}  // namespace

TEST_CASE("elements near each other are those of each lane's own index") {
  struct Element {
    Type type;
    std::uint32_t count;
  };
  TestDevice device;
  for (const auto& [type, count] : {Element{Type::i32, 1}, {Type::i64, 1}, {Type::i8, 4}, {Type::i16, 4}}) {
    const std::uint32_t bytes = ir::byte_size(type), pitch = bytes * count;
    const ir::Module module = resampled(type, count, true);
    for (const Specialisation& variant : variants({kThreads, 1, 1})) {
      CAPTURE(name(variant));
      const auto code = compile_ir(module, variant);
      for (const float step : {0.0f, 0.4f, 1.0f, 1.5f, 2.0f, 2.07f, 3.0f, -0.5f, -1.0f, 40.0f})
        for (const float start : {0.0f, 97.25f, 1000.5f, 1023.0f, 2040.75f, 3.0f * kThreads}) {
          const float last = std::fma(static_cast<float>(kThreads - 1), step, start);
          if (last < 0 || last >= kElements) continue;
          device.clear();
          auto out = device.allocate<std::uint8_t>(std::size_t{kThreads} * pitch),
               in = device.allocate<std::uint8_t>(std::size_t{kElements} * pitch);
          for (std::size_t i = 0; i < in.size(); ++i)
            in[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
          REQUIRE(!device.launch(*code, variant, {1, 1, 1},
                                 Params().add(out.data()).add(in.data()).add(step).add(start)));
          for (std::uint32_t t = 0; t < kThreads; ++t) {
            const auto place = static_cast<std::size_t>(std::fma(static_cast<float>(t), step, start));
            for (std::uint32_t byte = 0; byte < pitch; ++byte) {
              const std::uint32_t part = count - 1 - byte / bytes;
              REQUIRE(out[std::size_t{t} * pitch + byte] == in[place * pitch + part * bytes + byte % bytes]);
            }
          }
        }
    }
  }
}

TEST_CASE("only indices that follow from coordinates are expected to be near each other") {
  const auto permutes = [](Isa isa, const char* permutation, Type type, std::uint32_t count, bool by_floats) {
    return text_of(resampled(type, count, by_floats), isa).find(permutation) != std::string::npos;
  };
  const char* const words = "vpermi2var.d.512";
  CHECK(permutes(Isa::avx512, words, Type::i32, 1, true));
  CHECK(permutes(Isa::avx512, words, Type::i8, 4, true));
  CHECK(permutes(Isa::avx512, "vpermi2var.q.512", Type::i64, 1, true));
  CHECK(!permutes(Isa::avx512, words, Type::i32, 1, false));
  CHECK(permutes(Isa::avx2, "avx2.permd", Type::i32, 1, true));
  CHECK(!permutes(Isa::avx2, "avx2.permd", Type::i64, 1, true));
}

/// out[tid * pitch] = {in[tid][1], 7, in[tid][0], in[tid][1] + in[tid][0]}
TEST_CASE("bytes that lanes store apart are stored as words") {
  IrBuilder b;
  const Value out = b.param(Type::i64), in = b.param(Type::i64), pitch = b.param(Type::i64);
  const Value thread = b.zext(Type::i64, b.tid());
  const Value pair = b.op(Op::load, Type::i8, {b.add(in, b.shl(thread, 1))}, 0, elements(2, 1));
  const Value first = b.op(Op::extract, Type::i8, {pair}, 0), second = b.op(Op::extract, Type::i8, {pair}, 1);
  const Value sum = b.trunc(Type::i8, b.add(b.zext(Type::i32, first), b.zext(Type::i32, second)));
  b.op(Op::store, Type::none,
       {b.add(out, b.mul(thread, b.shl(pitch, 2))), second, b.constant(Type::i8, 7), first, sum}, 0,
       elements(4, 1));
  b.ret();
  const ir::Module module = b.module();
  CHECK(text_of(module, Isa::avx512).find("masked.scatter.v32i32") != std::string::npos);
  CHECK(text_of(module, Isa::avx512).find("quern_cpu_scatter_8") == std::string::npos);
  TestDevice device;
  for (const Specialisation& variant : variants({kThreads, 1, 1}))
    for (const std::uint64_t apart : {1U, 3U}) {
      CAPTURE(name(variant));
      device.clear();
      auto to = device.allocate<std::uint8_t>(std::size_t{kThreads} * 4 * apart),
           from = device.allocate<std::uint8_t>(std::size_t{kThreads} * 2);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 37 + 90);
      const auto code = compile_ir(module, variant);
      REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(to.data()).add(from.data()).add(apart)));
      for (std::size_t t = 0; t < kThreads; ++t) {
        const std::uint8_t *of = &from[2 * t], *stored = &to[4 * t * apart];
        REQUIRE(stored[0] == of[1]);
        REQUIRE(stored[1] == 7);
        REQUIRE(stored[2] == of[0]);
        REQUIRE(stored[3] == static_cast<std::uint8_t>(of[0] + of[1]));
      }
    }
}

}  // namespace quern::cpu::test
