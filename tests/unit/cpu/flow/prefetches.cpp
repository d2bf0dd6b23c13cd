// SPDX-License-Identifier: Apache-2.0
// Which loads of a loop are prefetched. The test reads the LLVM IR as it is first emitted: what a prefetch
// does to memory cannot be seen.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cpu/compiler/hooks.hpp"
#include "cpu/compiler/passes.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Type;
using ir::Value;

/// The sum of a row: each thread begins at its own number, advances by `stride` bytes, and reads a number at
/// each of `offsets` from there.
ir::Module row_sum(std::int64_t stride, const std::vector<std::int64_t>& offsets) {
  IrBuilder b;
  const Value to = b.param(Type::i64), from = b.param(Type::i64), count = b.param(Type::i32);
  const Value own = b.shl(b.zext(Type::i64, b.tid()), 2);
  const Value first = b.add(from, own), place = b.add(to, own);
  const Value one = b.i32(1), step = b.i64(stride);
  const auto before = b.here(), loop = b.block(), end = b.block();
  b.br(loop);
  b.at(loop);
  const Value round = b.phi(Type::i32), at = b.phi(Type::i64), kept = b.phi(Type::i32);
  Value sum = kept;
  for (const std::int64_t offset : offsets)
    sum = b.add(sum, b.load(Type::i32, at, ir::Space::global, offset));
  const Value next = b.add(round, one), further = b.add(at, step);
  b.incoming(round, before, b.i32(0));
  b.incoming(round, loop, next);
  b.incoming(at, before, first);
  b.incoming(at, loop, further);
  b.incoming(kept, before, b.i32(0));
  b.incoming(kept, loop, sum);
  b.cond_br(b.icmp(Icmp::slt, next, count), loop, end);
  b.at(end);
  b.store(place, b.phi(Type::i32, {{loop, sum}}));
  b.ret();
  return b.module();
}

/// True if the kernel prefetches anything. `gang`: warps in lockstep.
bool prefetches(const ir::Module& module, std::uint8_t gang = 1) {
  Specialisation specialisation;
  specialisation.block = {256, 1, 1};
  specialisation.gang = gang;
  std::string text;
  const AfterPass hooks[] = {print_after("emit_llvm", text)};
  Compilation compilation(module, specialisation);
  REQUIRE(run_passes(compilation, Form::checked, Form::llvm, hooks));
  return text.find("call void @llvm.prefetch") != std::string::npos;
}

TEST_CASE("a row that the warps of a block read side by side is prefetched") {
  CHECK(prefetches(row_sum(1024, {0})));
  CHECK(prefetches(row_sum(512, {0})));
  CHECK(prefetches(row_sum(1024, {0, 128, 256, 384})));
  CHECK(prefetches(row_sum(-1024, {0})));
}

TEST_CASE("a row that gangs read side by side is prefetched, and none that one gang reads") {
  CHECK(prefetches(row_sum(1024, {0}), 4));
  CHECK(prefetches(row_sum(2048, {0, 1024}), 4));
  CHECK_FALSE(prefetches(row_sum(1024, {0}), 8));
  CHECK_FALSE(prefetches(row_sum(2048, {0, 1024}), 8));
}

TEST_CASE("lines that a warp reads one after another are left to the processor") {
  CHECK_FALSE(prefetches(row_sum(128, {0})));
  CHECK_FALSE(prefetches(row_sum(256, {0})));
  CHECK_FALSE(prefetches(row_sum(512, {-256, -128, 0, 128})));
  CHECK_FALSE(prefetches(row_sum(512, {0, 128, 256})));
}

}  // namespace
}  // namespace quern::cpu::test
